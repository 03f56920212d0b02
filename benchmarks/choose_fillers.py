"""Chooses how many more contrasts than targets fake profiles have, and how many ratings active ones.

    python benchmarks/choose_fillers.py [--path ../shared/data/ml-100k]

Prints the median rank of targets that 5 % of liars promote among the users of MovieLens 100K (u2, train
ratings alone), for profiles of contrasts and of active users, under protocols that each are weak against.
Fails if another number brings targets nearer to the top than that of dprec, in the mean of log ranks.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from validation import arguments

import simulation
from dprec.attacks import liars

CONTRASTS, QUANTILES, SEEDS = (0, 1, 3), (0.5, 0.8, 0.95, 1.0), (1, 2)
PROTOCOLS = {
    "contrast": ("one-bit-on-device", "user-level-on-device", "user-level-bit", "blp-mf"),
    "active": ("best-hidden-set", "item-average"),
}
TOLERANCE = 0.25
"""Of log ranks: noise of two seeds."""


def rank(preset: str, fillers: str, path: str, seed: int) -> float:
    """Return the median rank of the targets under a preset."""
    loaded: dict[str, Any] = simulation.load(preset).plain_values()
    attack = {"kind": "promotion", "fillers": fillers}
    result = simulation.run(
        loaded
        | {"seed": seed, "attacks": [attack], "simulation": {"backend": "local"}}
        | {"dataset": {"kind": "movielens-100k", "path": path}, "split": {"kind": "predefined", "fold": "u2"}}
    )
    return float(result.summary["attacks"]["target_rank"]["value"])


def chosen(path: str, fillers: str, name: str, numbers: tuple[float, ...]) -> bool:
    """Print the ranks for each number, and return whether that of dprec stands."""
    own, means = getattr(liars, name), []
    for number in numbers:
        setattr(liars, name, number)
        ranks = [[rank(preset, fillers, path, seed) for seed in SEEDS] for preset in PROTOCOLS[fillers]]
        means.append(float(np.log(ranks).mean()))
        print(name, number, np.round(np.exp(np.log(ranks).mean(axis=1)), 1), round(means[-1], 3), flush=True)
    setattr(liars, name, own)
    return means[numbers.index(own)] <= min(means) + TOLERANCE


def main() -> int:
    """Print all ranks; return 1 if a number does not stand."""
    path, _ = arguments(__doc__, ())
    stand = [
        chosen(path, "contrast", "_CONTRASTS", CONTRASTS),
        chosen(path, "active", "_MOST_ACTIVE", QUANTILES),
    ]
    return 0 if all(stand) else 1


if __name__ == "__main__":
    sys.exit(main())
