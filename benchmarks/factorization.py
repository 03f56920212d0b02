"""CPU seconds and RMSE of fits of `mf` beside LensKit's ALS, on real ratings."""

import time

import numpy as np
from measuring import CPU, Figures, Line, beside, job, main
from peers import STARS, error_of, ratings
from threadpoolctl import threadpool_limits

FITTED = (CPU, "RMSE")


def fitted(name: str, rank: int) -> Figures:
    from dprec.completion import MatrixFactorization, Observations
    from dprec.ratings import RatingScale

    (users, items, values), (test_users, test_items, wanted) = ratings(name)
    shape = 1 + max(users.max(), test_users.max()), 1 + max(items.max(), test_items.max())

    def fit(some: slice, rank: int):  # type: ignore[no-untyped-def]
        columns = users[some].astype(np.int32), items[some].astype(np.int32), values[some].astype(float)
        observations = Observations.of(*columns, shape, RatingScale.evenly(1, STARS, 1))
        started = time.process_time()
        with threadpool_limits(limits=1):  # as in a run
            return MatrixFactorization(rank=rank).fit(observations, seed=0), time.process_time() - started

    fit(slice(1000), 2)
    model, seconds = fit(slice(None), rank)
    predictions = model.predict(test_users.astype(np.int32), test_items.astype(np.int32))
    return {CPU: seconds, "RMSE": error_of(predictions, wanted)}


LINES = tuple(
    Line(
        f"`mf` at rank {rank}, {name}",
        job(__file__, "fitted", name, rank),
        peer=beside("lenskit", "lenskit_als", name, rank),
        settings="LensKit: BiasedMFScorer, its settings but the rank",
        units=FITTED,
    )
    for name in ("MovieLens 100K, u1", "Douban, books", "Douban, music")
    for rank in (20, 50)
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"fitted": fitted})
