"""Two rounds of pg-mf with up to ten million users, and a one-shot report beside pfl-research's.

    python benchmarks/scale_rounds.py [--users 100000 1000000 10000000] [--pfl PYTHON]

A run is the preset pg-mf with two rounds, on 20 ratings of each user: devices solve for their factors and
report one bit in each round, on Ray; the server steps; then the factors are delivered and the predictions
evaluated. All of the run is timed, but for the generation of the ratings, which the driver holds. Memory is
that of all processes, as in `scale.py`; the driver's is its peak resident size, and grows by what is printed
for every further user.

`--pfl` is an interpreter that has pfl-research 0.6 (`pip install pfl==0.6.0` in an environment of its own):
one Laplace report of 20 ratings in its one process, beside our one-shot round at 100,000 users. Per core, the
time of our round counts once for each worker. Nothing is written; the exit code is 1 if a figure misses its
requirement.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from process_memory import GIGABYTE, measured
from scale import RATINGS_PER_USER, Rounds, dprec_rounds, population

from dprec.ratings import Ratings
from simulation.configuration.loading import load
from simulation.execution import run_prepared

ROUNDS, ITEMS = 2, 100
REQUIRED_USERS, REQUIRED_SECONDS, REQUIRED_GIGABYTES = 10_000_000, 300.0, 8.0
LINEAR_FROM, LINEAR_WITHIN = 100_000, 1.5
"""A larger population may take so many times what growing linearly would."""
REQUIRED_RATIO, RATIO_USERS = 10.0, 100_000
_GENERATED = 1_000_000
_TESTED_EVERY = 2_000


@dataclass(frozen=True)
class Run:
    """A run of pg-mf.

    Parameters
    ----------
    startup, seconds : float
        The start of Ray, and the rest.
    rounds : list of float
        Seconds of each round.
    gigabytes : float
        Peak resident size of the driver.
    error : float
        Root mean square error.
    """

    startup: float
    seconds: float
    rounds: list[float]
    gigabytes: float
    error: float | None


def repeated(users: int) -> Ratings:
    """Return 20 ratings per user; after the first million, the same profiles again."""
    ratings = population(min(users, _GENERATED), ITEMS)
    cells = users * RATINGS_PER_USER
    return Ratings(
        indptr=np.arange(users + 1, dtype=np.int64) * RATINGS_PER_USER,
        items=np.resize(ratings.items, cells),
        levels=np.resize(ratings.levels, cells),
        scale=ratings.scale,
        user_ids=np.arange(users),
        item_ids=ratings.item_ids,
    )


def pg_mf(result: Connection, users: int, chosen: argparse.Namespace) -> None:
    """Send a run of the preset."""
    settings = [f"protocol.rounds={ROUNDS}", f"simulation.workers={chosen.workers}"]
    config = load("pg-mf", settings)
    train = repeated(users)
    tested = np.zeros(train.count, dtype=np.bool_)
    tested[::_TESTED_EVERY] = True
    test = train.select(tested)
    started = time.perf_counter()
    record = run_prepared(config, train, test, None)
    startup = record.summary.time.startup_s
    result.send(
        Run(
            startup,
            time.perf_counter() - started - startup,
            [each.seconds for each in record.rounds],
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            record.summary.accuracy.rmse,
        )
    )


def pfl_microseconds(interpreter: str) -> float:
    """Return what a report costs in pfl-research."""
    script = Path(__file__).with_name("pfl_laplace.py")
    command = [interpreter, str(script), "--users", str(RATIO_USERS), "--ratings", str(RATINGS_PER_USER)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


HEADER = f"{'users':>12}{'start-up s':>12}{'run s':>9}{'rounds s':>14}{'us/user/round':>15}"
HEADER += f"{'peak GB':>9}{'driver GB':>11}{'RMSE':>9}"


def _line(users: int, run: Run, peak: float) -> str:
    rounds = " ".join(f"{seconds:.1f}" for seconds in run.rounds)
    each = 1e6 * sum(run.rounds) / len(run.rounds) / users
    return (
        f"{users:>12,}{run.startup:>12.1f}{run.seconds:>9.1f}{rounds:>14}{each:>15.2f}"
        f"{peak:>9.2f}{run.gigabytes:>11.2f}{run.error:>9.4f}"
    )


def _populations(sizes: list[int], chosen: argparse.Namespace) -> list[str]:
    """Print a line for each population; return what missed its requirement."""
    print(HEADER, flush=True)
    runs: dict[int, Run] = {}
    missed = []
    for users in sizes:
        [(run, most)] = measured(pg_mf, users, chosen)
        peak = most.everything / GIGABYTE
        runs[users] = run
        print(_line(users, run, peak), flush=True)
        if users >= REQUIRED_USERS and run.seconds + run.startup > REQUIRED_SECONDS:
            missed.append(f"{users:,} users take more than {REQUIRED_SECONDS:g} s")
        if users >= REQUIRED_USERS and peak > REQUIRED_GIGABYTES:
            missed.append(f"{users:,} users take more than {REQUIRED_GIGABYTES:g} GB")
    for before, users in itertools.pairwise(size for size in sizes if size >= LINEAR_FROM):
        growth = sum(runs[users].rounds) / sum(runs[before].rounds) / (users / before)
        if growth > LINEAR_WITHIN:
            missed.append(f"{users:,} users take {growth:.1f} times what growing linearly would")
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        per_user = (runs[last].gigabytes - runs[first].gigabytes) * 2**30 / (last - first)
        own = 5 * RATINGS_PER_USER
        print(f"The driver's memory grows by {per_user:.0f} bytes per user, of which ratings are {own}")
    return missed


def _beside_pfl(chosen: argparse.Namespace) -> list[str]:
    """Print our one-shot round and pfl's report; return what missed its requirement."""
    one_shot = argparse.Namespace(items=2_000, workers=chosen.workers, repeats=3, sweeps=0)
    results = list(measured(dprec_rounds, RATIO_USERS, one_shot))
    rounds = next(each for each, _ in results if isinstance(each, Rounds))
    own = 1e6 * rounds.best / RATIO_USERS
    print(f"one-shot, {RATIO_USERS:,} users: {own:.1f} microseconds per user, {chosen.workers} workers")
    if chosen.pfl is None:
        print("pfl-research: not measured, for want of --pfl")
        return []
    other = pfl_microseconds(chosen.pfl)
    ratio = other / (own * chosen.workers)
    print(f"pfl-research: {other:.1f} microseconds per user in one process, {ratio:.1f} times ours per core")
    return [f"less than {REQUIRED_RATIO:g} times as fast as pfl per core"] if ratio < REQUIRED_RATIO else []


def main() -> int:
    """Run the benchmark."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--users", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--pfl", help="interpreter that has pfl-research 0.6")
    chosen = arguments.parse_args()
    if min([*chosen.users, chosen.workers]) < 1:
        arguments.error("users and workers are at least 1")
    missed = _populations(sorted({*chosen.users}), chosen)
    missed += _beside_pfl(chosen)
    for miss in missed:
        print(f"MISSED: {miss}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
