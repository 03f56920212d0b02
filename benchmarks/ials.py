"""CPU seconds of iALS beside the package implicit, on real sets and on generated ones."""

import time

import numpy as np
from measuring import CPU, Figures, Line, beside, job, main
from peers import pairs
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

RANK, SWEEPS = 64, 16


def fitted(name: str) -> Figures:
    from dprec.lists.ials import ImplicitOptions, ials

    users, items = pairs(name)
    sets = csr_array((np.ones(users.size), (users, items)))
    options = ImplicitOptions(unobserved=0.3, ridge=0.02, rank=RANK, sweeps=SWEEPS)
    with threadpool_limits(limits=1):
        ials(sets[:9], options)
        started = time.process_time()
        ials(sets, options)
        return {CPU: time.process_time() - started}


LARGE = "6034 x 3533 x 575000", "500 x 100000 x 17000"
LINES = tuple(
    Line(
        f"iALS, {SWEEPS} sweeps, {name}",
        job(__file__, "fitted", name),
        peer=beside("implicit", "implicit_als", name, RANK, SWEEPS),
        settings=f"rank {RANK}; one thread each",
        units=(CPU,),
    )
    for name in ("MovieLens 100K", "Steam", "CiteULike", *LARGE)
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"fitted": fitted})
