"""Chooses the settings that Neera et al. leave open, on a tenth of MovieLens 100K's u1.base.

    python benchmarks/choose_neera_settings.py [--data ../shared/data/ml-100k] [mog-mf | sgd-mf]

The devices of the other nine tenths send noisy ratings at epsilon 0.1, 1 and 3; a setting is judged by
its RMSE on the clean tenth, averaged over these budgets and two seeds. The test ratings are never read.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dprec.completion import COMPLETIONS, Observations
from dprec.mechanisms import MECHANISMS
from dprec.randomness import generator, words
from dprec.ratings import Ratings, RatingScale

STARS = RatingScale.evenly(1, 5, 1)
SHAPE = (943, 1682)
EPSILONS, SEEDS = (0.1, 1.0, 3.0), (1, 2)
MECHANISM = {"mog-mf": "bounded-laplace", "sgd-mf": "clamped-laplace"}
GRID: dict[str, dict[str, tuple[float, ...]]] = {
    "mog-mf": {"rank": (1, 2, 3, 5)},
    "sgd-mf": {
        "rank": (1, 2),
        "step": (0.001, 0.003, 0.01),
        "epochs": (40, 80, 160),
    },
}


def halves(folder: Path) -> tuple[Ratings, Ratings]:
    """Return nine tenths of u1.base, and the tenth that judges."""
    users, items, stars = np.loadtxt(folder / "u1.base", dtype=int)[:, :3].T
    judges = generator(0, "validation").random(users.size) < 0.1
    fitted, judging = (
        Ratings.from_triples(
            users[part],
            items[part],
            stars[part],
            STARS,
            user_ids=np.arange(1, SHAPE[0] + 1),
            item_ids=np.arange(1, SHAPE[1] + 1),
        )
        for part in (~judges, judges)
    )
    return fitted, judging


def error(kind: str, fitted: Ratings, judging: Ratings, settings: dict[str, Any]) -> list[float]:
    """Return the RMSE at every epsilon, averaged over the seeds."""
    mechanism = MECHANISMS[MECHANISM[kind]](kind=MECHANISM[kind])
    errors = []
    for epsilon, seed in itertools.product(EPSILONS, SEEDS):
        channel = mechanism.channel(STARS, epsilon)
        values = channel.values[channel.sample(fitted.levels, words(seed, "report", 0, fitted.count))]
        observations = Observations(fitted.users, fitted.items, values, SHAPE, STARS)
        completed = COMPLETIONS[kind](kind=kind, **settings).fit(observations, seed)
        predictions = np.clip(completed.predict(judging.users, judging.items), STARS.low, STARS.high)
        errors.append(float(np.sqrt(np.mean((predictions - judging.values) ** 2))))
    by_epsilon: list[float] = np.reshape(errors, (len(EPSILONS), len(SEEDS))).mean(axis=1).tolist()
    return by_epsilon


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/ml-100k"))
    arguments.add_argument("kinds", nargs="*", default=list(GRID))
    chosen = arguments.parse_args()
    fitted, judging = halves(chosen.data)
    agree = True
    for kind in chosen.kinds:
        grid = GRID[kind]
        errors: dict[tuple[Any, ...], float] = {}
        for values in itertools.product(*grid.values()):
            settings = dict(zip(grid, values, strict=True))
            by_epsilon = error(kind, fitted, judging, settings)
            errors[values] = float(np.mean(by_epsilon))
            print(kind, settings, "RMSE", " ".join(f"{rmse:.3f}" for rmse in by_epsilon), flush=True)
        best = min(errors, key=lambda values: errors[values])
        default = tuple(getattr(COMPLETIONS[kind](kind=kind), name) for name in grid)
        print(f"{kind}: best {dict(zip(grid, best, strict=True))}, default {default}")
        agree &= best == default
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
