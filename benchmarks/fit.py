"""Fits of variational matrix factorisation at several ranks, beside LensKit's ALS: time and RMSE.

    python benchmarks/fit.py [--data ../shared/data] [--lenskit PYTHON]
    python benchmarks/fit.py --large

Ratings are generated, of the size of MovieLens 1M and of rank 12, or with `--data` real: MovieLens 100K, and
books and music on Douban. A tenth is held out. LensKit has an
environment of its own, whose interpreter is given (`python -m venv DIR; DIR/bin/pip install lenskit`).
`--large` is one fit at rank 20 of ratings of the size of LibimSeTi, with its peak memory. Targets are for two
cores that do nothing else.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dprec.completion import MatrixFactorization, Observations
from dprec.datasets import Dataset, Douban, MovieLens100K, Synthetic
from dprec.randomness import generator
from dprec.ratings import Ratings

RANKS: tuple[int | None, ...] = (5, 10, 20, 40, None)
REAL_RANKS = (20, 50)
TARGET_SECONDS = {20: 2, 40: 6.5}
MOVIELENS = Synthetic(users=6040, items=3706, ratings=1_000_209, rank=12)
LIBIMSETI = Synthetic(users=135_359, items=168_791, ratings=19_333_333, rank=12)
LARGE_RANK, LARGE_SECONDS, LARGE_GIGABYTES = 20, 300, 12
LENSKIT = Path(__file__).with_name("lenskit_als.py")


def parts(dataset: Dataset) -> tuple[Ratings, Ratings]:
    """Return nine tenths of the ratings, and the others."""
    ratings = dataset.load()
    judging = generator(0, "held out").random(ratings.count) < 0.1
    return ratings.select(~judging), ratings.select(judging)


def values_of(ratings: Ratings) -> NDArray[np.float64]:
    return ratings.scale.values[ratings.levels - 1]


def rmse(predictions: NDArray[np.float64], judging: Ratings) -> float:
    clipped = np.clip(predictions, judging.scale.low, judging.scale.high)
    return float(np.sqrt(np.mean((clipped - values_of(judging)) ** 2)))


def fitted(rank: int | None, train: Ratings, judging: Ratings) -> dict[str, Any]:
    """Fit at a rank, or at the default if None; return what is printed."""
    shape = train.n_users, train.n_items
    observations = Observations.of(train.users, train.items, values_of(train), shape, train.scale)
    start, start_cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(limits=1):  # As in a run.
        model = MatrixFactorization(rank=rank).fit(observations, seed=0)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - start_cpu,
        "rmse": rmse(model.predict(judging.users, judging.items), judging),
        "left": model.user_factors.shape[1],
        "sweeps": model.diagnostics["sweeps"],
    }


def report(name: str, measured: dict[str, Any], target: float | None = None) -> None:
    left = f"{measured['left']:4d} factors, {measured['sweeps']:2d} sweeps" if "left" in measured else ""
    goal = "" if target is None else f"  target {target} s"
    seconds, processor = measured["seconds"], measured["processor"]
    print(f"{name:22s} {seconds:7.1f} s {processor:7.1f} s  {measured['rmse']:.4f}  {left}{goal}", flush=True)


def lenskit_fits(interpreter: Path, ranks: Sequence[int | None], train: Ratings, judging: Ratings) -> None:
    """Print LensKit's fits at the same ranks, of the same ratings."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "ratings.npz"
        np.savez(
            data,
            users=train.users,
            items=train.items,
            values=values_of(train),
            test_users=judging.users,
            test_items=judging.items,
        )
        for rank in filter(None, ranks):
            command = [str(interpreter), str(LENSKIT), str(data), str(rank)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            measured = json.loads(done.stdout.splitlines()[-1])
            predictions = np.load(data.with_name("predictions.npy"))
            # LensKit predicts nothing for an item that nobody rated.
            predictions = np.where(np.isnan(predictions), values_of(train).mean(), predictions)
            report(f"LensKit, rank {rank}", measured | {"rmse": rmse(predictions, judging)})


def table(dataset: Dataset, ranks: Sequence[int | None], interpreter: Path | None) -> int:
    train, judging = parts(dataset)
    print(f"{train.n_users} users, {train.n_items} items, {train.count} ratings; wall, processor, RMSE")
    late = False
    for rank in ranks:
        measured = fitted(rank, train, judging)
        target = TARGET_SECONDS.get(rank or LARGE_RANK) if dataset == MOVIELENS else None
        late |= target is not None and measured["seconds"] > target
        report("dprec, default" if rank is None else f"dprec, rank {rank}", measured, target)
    if interpreter is None:
        print("LensKit: absent (--lenskit PYTHON, the interpreter of an environment that has it)")
    else:
        lenskit_fits(interpreter, ranks, train, judging)
    return int(late)


def real(folder: Path, interpreter: Path | None) -> int:
    fitted(5, *parts(Synthetic()))  # Kernels are loaded before anything is timed.
    table(MovieLens100K(path=str(folder / "ml-100k")), REAL_RANKS, interpreter)
    both = Douban(path=str(folder / "douban"), source="book", target="music")
    return table(both, REAL_RANKS, interpreter)


def large() -> int:
    train, judging = parts(LIBIMSETI)
    print(f"{train.n_users} users, {train.n_items} items, {train.count} ratings; wall, processor, RMSE")
    measured = fitted(LARGE_RANK, train, judging)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report(f"dprec, rank {LARGE_RANK}", measured, LARGE_SECONDS)
    print(f"peak {gigabytes:.1f} GB of {LARGE_GIGABYTES} GB, the generated ratings included")
    return int(measured["seconds"] > LARGE_SECONDS or gigabytes > LARGE_GIGABYTES)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--lenskit", type=Path, help="interpreter of an environment with LensKit")
    arguments.add_argument("--large", action="store_true", help="one fit of 17.4 million ratings instead")
    arguments.add_argument("--data", type=Path, help="folder of real ratings, which are fitted instead")
    chosen = arguments.parse_args()
    if chosen.large:
        return large()
    return real(chosen.data, chosen.lenskit) if chosen.data else table(MOVIELENS, RANKS, chosen.lenskit)


if __name__ == "__main__":
    sys.exit(main())
