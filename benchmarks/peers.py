"""What other packages do, in an interpreter that has them, and data for them and for dprec.

Benchmarks call it by themselves with ``--peers PYTHON``, the interpreter of an environment with LensKit,
implicit, pfl with PyTorch, and pure-ldp with scikit-learn, statsmodels, bitarray and xxhash; dprec need not
be in it. Settings are those of the packages but for what jobs are given. Fits begin with a small one, so that
no loading and compiling is counted.
"""
# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, misc"

import time
from typing import Any

import numpy as np
from measuring import CPU, DATA, Figures, main
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]
SETS, STARS = {"CiteULike": "citeulike", "Steam": "steam"}, 5


def pairs(name: str) -> Arrays:
    """Return users and items of sets: real ones by their name, or generated "USERS x ITEMS x PAIRS"."""
    if name in SETS:
        lines = (DATA / SETS[name] / "users.dat").read_text(encoding="utf-8").splitlines()
        sets = [np.array(line.split()[1:], dtype=np.int64) for line in lines]
        return np.repeat(np.arange(len(sets)), [own.size for own in sets]), np.concatenate(sets)
    if name == "MovieLens 100K":
        users, items, values = table("ml-100k/u.data")
        return users[values >= 4] - 1, items[values >= 4] - 1
    users, items, count = map(int, name.split(" x "))
    random = np.random.default_rng(0)
    cells = random.integers(0, users, 2 * count) * items + (random.random(2 * count) ** 3 * items).astype(int)
    return np.divmod(random.permutation(np.unique(cells))[:count], items)


def table(path: str) -> NDArray[np.int64]:
    return np.loadtxt(DATA / path, dtype=np.int64, usecols=(0, 1, 2)).T


def ratings(name: str) -> tuple[Arrays, Arrays]:
    """Return users, items and values of real ratings to learn from, and of those that judge."""
    if name == "MovieLens 100K, u1":
        columns = (table(f"ml-100k/u1.{part}") for part in ("base", "test"))
        learned, judging = ((users - 1, items - 1, values) for users, items, values in columns)
        return learned, judging
    users, items, values = table(f"douban/{name.split()[1].removesuffix('s')}.dat")
    users, items = (np.unique(each, return_inverse=True)[1] for each in (users, items))
    held = np.random.default_rng(0).random(users.size) < 0.1
    return (users[~held], items[~held], values[~held]), (users[held], items[held], values[held])


def error_of(predictions: NDArray[np.float64], values: NDArray[Any]) -> float:
    """Return the RMSE of predictions of one to five stars."""
    return float(np.sqrt(np.mean((np.clip(predictions, 1, STARS) - values) ** 2)))


def implicit_als(name: str, rank: int, sweeps: int) -> Figures:
    """Fit sets by alternating least squares with conjugate gradients, in one thread."""
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits

    users, items = pairs(name)
    sets = csr_matrix((np.ones(users.size, dtype=np.float32), (users, items)))
    with threadpool_limits(limits=1):
        AlternatingLeastSquares(rank, iterations=1, num_threads=1).fit(sets[:9], show_progress=False)
        started = time.process_time()
        AlternatingLeastSquares(rank, iterations=sweeps, num_threads=1).fit(sets, show_progress=False)
        return {CPU: time.process_time() - started}


def lenskit_als(name: str, rank: int) -> Figures:
    """Fit ratings by LensKit's biased ALS."""
    import pandas
    from lenskit.als import BiasedMFScorer
    from lenskit.data import ItemList, from_interactions_df

    learned, (users, items, values) = ratings(name)

    def trained(columns: Arrays) -> tuple[Any, float]:
        named = dict(zip(("user_id", "item_id", "rating"), columns, strict=True))
        dataset, scorer = from_interactions_df(pandas.DataFrame(named)), BiasedMFScorer(embedding_size=rank)
        started = time.process_time()
        scorer.train(dataset)
        return scorer, time.process_time() - started

    trained(tuple(column[:1000] for column in learned))
    scorer, seconds = trained(learned)
    predictions = np.full(values.size, np.nan)
    for user in np.unique(users):
        rows = np.flatnonzero(users == user)
        predictions[rows] = scorer(query=int(user), items=ItemList(item_ids=items[rows])).scores()
    # LensKit predicts nothing for an item that nobody rated.
    predictions[np.isnan(predictions)] = learned[2].mean()
    return {CPU: seconds, "RMSE": error_of(predictions, values)}


def pfl_federated(rank: int, rounds: int) -> Figures:
    """Train items' biases and factors on MovieLens 100K; users' factors begin anew in every round.

    A device takes two full-batch steps of SGD; its change is clipped and added up, in one process.
    """
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel
    from pfl.privacy.gaussian_mechanism import GaussianMechanism
    from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism

    torch.set_num_threads(1)
    (users, items, values), _ = ratings("MovieLens 100K, u1")
    n_users, n_items, own = int(users.max()) + 1, 1682, torch.ones(rank + 1)

    class Factors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(0.1 * torch.randn(n_items, rank + 1))

        def loss(self, items, ratings, eval=False):
            return ((self.table[items] @ own - ratings) ** 2).mean()

        def metrics(self, items, ratings):
            return {}  # no round is evaluated

    people = [
        [torch.tensor(items[users == user]), torch.tensor(values[users == user].astype(np.float32))]
        for user in range(n_users)
    ]
    sampler = get_user_sampler("minimize_reuse", list(range(n_users)))
    data = FederatedDataset(lambda user: Dataset(people[user], user_id=str(user)), sampler)
    module = Factors()
    model = PyTorchModel(
        module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), 1.0),
    )
    noise = CentrallyAppliedPrivacyMechanism(GaussianMechanism(clipping_bound=1.0, relative_noise_stddev=1.0))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[noise])
    training = NNTrainHyperParams(local_num_epochs=2, local_learning_rate=0.1, local_batch_size=None)
    evaluating = NNEvalHyperParams(local_batch_size=None)

    def seconds(rounds: int) -> float:
        started = time.process_time()
        sizes = {"train_cohort_size": n_users, "val_cohort_size": 0, "evaluation_frequency": 10**9}
        FederatedAveraging().run(
            NNAlgorithmParams(central_num_iterations=rounds, **sizes),
            backend=backend,
            model=model,
            **{"model_train_params": training, "model_eval_params": evaluating, "callbacks": []},
        )
        return time.process_time() - started

    first = seconds(1)
    return {"µs a user": 1e6 * (seconds(rounds + 1) - first) / rounds / n_users}


def pfl_laplace(users: int, profile: int) -> Figures:
    """Report ratings with Laplace noise, and add the reports up: the least of what a user takes."""
    from pfl.aggregate.base import SumAggregator
    from pfl.context import UserContext
    from pfl.internal.ops import numpy_ops
    from pfl.internal.ops.selector import set_framework_module
    from pfl.privacy.laplace_mechanism import LaplaceMechanism
    from pfl.stats import MappedVectorStatistics

    set_framework_module(numpy_ops)
    values = np.random.default_rng(0).integers(1, STARS + 1, (users, profile)).astype(np.float64)
    mechanism = LaplaceMechanism(clipping_bound=float(STARS * profile), epsilon=1.0)
    aggregator, total = SumAggregator(), None
    started = time.process_time()
    for user, own in enumerate(values):
        context = UserContext(num_datapoints=profile, seed=user, user_id=str(user))
        statistics = MappedVectorStatistics({"ratings": own})
        report, _ = mechanism.postprocess_one_user(stats=statistics, user_context=context)
        total = aggregator.accumulate(accumulated=total, user_stats=report)
    return {"µs a rating": 1e6 * (time.process_time() - started) / users / profile}


def pure_ldp_stars(epsilon: float) -> Figures:
    """Randomise the stars of MovieLens 100K one by one (direct encoding), and estimate their histogram."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

    (_, _, values), _ = ratings("MovieLens 100K, u1")
    stars = (values - 1).tolist()
    client, server = (each(epsilon, STARS, index_mapper=int) for each in (DEClient, DEServer))
    started = time.process_time()
    for star in stars:
        server.aggregate(client.privatise(star))
    [server.estimate(star, suppress_warnings=True) for star in range(STARS)]
    return {"µs a rating": 1e6 * (time.process_time() - started) / len(stars)}


JOBS = implicit_als, lenskit_als, pfl_federated, pfl_laplace, pure_ldp_stars

if __name__ == "__main__":
    main(__file__, __doc__, (), {each.__name__: each for each in JOBS})
