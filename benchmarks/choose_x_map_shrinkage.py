"""Chooses how far our forms of X-Map pull predictions, on validation users of MovieLens 100K.

    python benchmarks/choose_x_map_shrinkage.py [--path ../shared/data/ml-100k] [NAME ...]

A tenth of the users of both domains are taken to be new to the target domain; figures are the RMSE on their
target ratings, for five draws of these users. At the presets' epsilon.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from validation import Parts, arguments, best_of, measured, new_to_the_target

from simulation import load
from simulation.configuration.strict_yaml import at

SEEDS = (11, 12, 13, 14, 15)
SHRINKAGE, NOISE = "protocol.recommendation.shrinkage", "protocol.recommendation.noise_shrinkage"
PRIOR = "protocol.recommendation.prior_ratings"
TRIED: dict[str, dict[str, tuple[float, ...]]] = {
    "nx-map-shrunk": {SHRINKAGE: (0.0, 0.25, 0.5, 1.0, 2.0)},
    "x-map-shrunk": {SHRINKAGE: (0.5, 1.0, 4.0), NOISE: (0.25, 0.5, 1.0)},
    "x-map-local": {SHRINKAGE: (30.0, 100.0, 300.0), PRIOR: (50.0, 100.0, 200.0)},
}


def judged(preset: str, parts: dict[int, Parts], settings: dict[str, Any]) -> list[float]:
    """Return the RMSE for every draw of users."""
    return [measured(preset, settings, own, seed) for seed, own in parts.items()]


def main() -> int:
    """Print every figure; return 1 if a preset's values do not stand."""
    folder, names = arguments(__doc__, list(TRIED))
    parts = {seed: new_to_the_target(folder, seed) for seed in SEEDS}
    agree = True
    for name in names:
        values = load(name).model_dump(mode="json")
        current = {key: at(values, *key.split(".")) for key in TRIED[name]}
        agree &= best_of(name, TRIED[name], partial(judged, name, parts), current)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
