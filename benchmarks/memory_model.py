"""The constants of `simulation/engine/ray_cluster.py`: what runs need for each rating, user and item.

    python benchmarks/memory_model.py [PRESET ...]

Each preset runs in this process on populations of four shapes, and the largest size of what Python and NumPy
have allocated (tracemalloc) is solved for a part per rating, per user and per item; on one larger population
it is compared with the model. What processes need for themselves (Python, Ray, its workers) is measured
by `scale.py`. The exit code is 1 if a run needed more than the model says, or less than a quarter of it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tracemalloc

import numpy as np
from scale import population

from dprec.protocols.iterative import IterativeProtocol
from dprec.ratings import Ratings
from simulation import RunConfig, load
from simulation.engine.ray_cluster import needed_memory
from simulation.execution import run_prepared

PRESETS = ["blp-mf", "item-average", "pg-mf", "blp-mog-mf", "best", "optimal-on-device"]
USERS, ITEMS, PROFILE = 4_000, 300, 20
LARGER, LEAST_SHARE = 5, 0.25


def configured(preset: str) -> RunConfig:
    """Return a preset that runs in this process, for a few rounds if it has any."""
    config = load(preset, ["simulation.backend=local"])
    if isinstance(config.protocol, IterativeProtocol):
        return load(config, ["protocol.rounds=2"])
    return config


def parted(users: int, items: int, profile: int) -> tuple[Ratings, Ratings]:
    """Return a population of which a rating of everybody is for testing."""
    ratings = population(users, items, profile)
    tested = np.arange(ratings.count) % profile == 0
    return ratings.select(~tested), ratings.select(tested)


def traced(config: RunConfig, users: int, items: int, profile: int) -> int:
    """Return the most bytes that were allocated at a time during a run."""
    train, test = parted(users, items, profile)
    gc.collect()
    tracemalloc.start()
    try:
        run_prepared(config, train, test, None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("presets", nargs="*", default=PRESETS, metavar="PRESET")
    print(f"{'':20}{'per rating':>12}{'per user':>10}{'per item':>10}{'larger: MB':>13}{'model: MB':>11}")
    missed = []
    for preset in arguments.parse_args().presets:
        config = configured(preset)
        traced(config, USERS // 8, ITEMS, PROFILE)  # what is computed once, and imports
        base = traced(config, USERS, ITEMS, PROFILE)
        rating = (traced(config, USERS, ITEMS, 2 * PROFILE) - base) / (USERS * PROFILE)
        user = (traced(config, 2 * USERS, ITEMS, PROFILE) - base) / USERS - PROFILE * rating
        item = (traced(config, USERS, 2 * ITEMS, PROFILE) - base) / ITEMS
        larger, users = traced(config, LARGER * USERS, ITEMS, PROFILE), LARGER * USERS
        model = _variable_part(config, users)
        print(
            f"{preset:20}{rating:>12.0f}{user:>10.0f}{item:>10.0f}{larger / 1e6:>13.1f}{model / 1e6:>11.1f}"
        )
        if not LEAST_SHARE * model <= larger <= model:
            missed.append(f"{preset}: {larger / 1e6:.1f} MB, and {model / 1e6:.1f} MB by the model")
    for miss in missed:
        print(f"MISSED: {miss}")
    return int(bool(missed))


def _variable_part(config: RunConfig, users: int) -> float:
    """Return what the model says beyond the processes themselves."""
    name, simulation = config.protocol.facts.learns, config.simulation
    cells = users * PROFILE
    whole = needed_memory(users, ITEMS, cells, completion=name, simulation=simulation)
    return whole - needed_memory(0, 0, 0, completion=name, simulation=simulation)


if __name__ == "__main__":
    sys.exit(main())
