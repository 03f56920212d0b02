"""Where Ray pays: runs of generated populations in one process and on Ray with two workers.

    python benchmarks/backends.py [--users 30000 100000 300000 1000000] [--presets blp-mf pg-mf]

Each user has 20 ratings. `RAY_PAYS_FROM` of `simulation/engine/choosing.py`, from which the backend `auto`
is Ray, follows from the elapsed seconds, of which a user sees all but the loading of ratings: have the
machine idle. Processor seconds and memory are those of all processes. Predictions of blp-mf are item
averages, so that what devices do weighs as much as it can; pg-mf has 20 rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from multiprocessing.connection import Connection

from process_memory import GIGABYTE, measured, processor_seconds

RATINGS_PER_USER = 20
SETTINGS = {"blp-mf": ("protocol.completion.kind=item-average",), "pg-mf": ("protocol.rounds=20",)}


def timed(result: Connection, preset: str, users: int, backend: str) -> None:
    """Send the elapsed and the processor seconds of a run, its loading of ratings and kernels left out."""
    from dprec.kernels.compilation import prepare
    from simulation.configuration.loading import load
    from simulation.execution import load_ratings, run_prepared

    data = f"dataset={{kind: synthetic, users: {users}, items: 2000, ratings: {RATINGS_PER_USER * users}}}"
    config = load(preset, [data, f"simulation.backend={backend}", *SETTINGS.get(preset, ())])
    train, test = load_ratings(config)
    prepare()
    started, used = time.perf_counter(), processor_seconds(os.getpid())
    run_prepared(config, train, test, None)
    result.send((time.perf_counter() - started, processor_seconds(os.getpid()) - used))


def main() -> None:
    """Print a line for each preset, number of users and backend."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, nargs="+", default=[30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--presets", nargs="+", default=[*SETTINGS])
    chosen = parser.parse_args()
    print(f"{'preset':10}{'users':>12}{'backend':>9}{'elapsed s':>11}{'CPU s':>8}{'GB':>7}", flush=True)
    for preset in chosen.presets:
        for users in chosen.users:
            for backend in ("local", "ray"):
                for (elapsed, used), peak in measured(timed, preset, users, backend):
                    gigabytes = peak.everything / GIGABYTE
                    line = f"{preset:10}{users:>12,}{backend:>9}{elapsed:>11.1f}{used:>8.1f}{gigabytes:>7.2f}"
                    print(line, flush=True)


if __name__ == "__main__":
    main()
