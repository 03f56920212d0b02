"""Chooses the settings of private alternating least squares on validation ratings.

    python benchmarks/choose_private_als.py [--path ../shared/data/ml-100k] [NAME ...]

effects : how the rounds of item biases spend and clip, on a tenth of MovieLens 100K's u1.base at an epsilon
    of 5.
factors : how rounds of factors spend, on a tenth of the train ratings of generated users at an epsilon of 5.
popular : which items have factors, on the tenth of u1.base at an epsilon of 20.

Figures are RMSE of two draws. An epsilon of 5 for 20,000 users is about as one of 1 for 100,000.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from validation import Parts, arguments, best_of, measured, tenth_of_u1

from dprec.datasets import Synthetic
from dprec.private_als import FactorizationOptions
from dprec.randomness import generator
from dprec.splits import Holdout

PREFIX = "protocol.factorization."
EPSILON = "protocol.privacy.epsilon"
TRIED: dict[str, tuple[str, float, dict[str, tuple[float, ...]]]] = {
    "biases": ("dp-item-effects", 5.0, {"bias_rounds": (1, 2, 3), "residual_clip": (0.25, 0.3, 0.375)}),
    "factors": ("dp-als", 5.0, {"factor_rounds": (5, 8, 12), "bias_share": (0.2, 0.4)}),
    "popular": ("dp-als", 20.0, {"popular_from": (2.0, 6.0, 12.0), "matrix_share": (0.2, 0.3)}),
}


def tenth_of_generated(seed: int) -> Parts:
    """Return nine tenths of the train ratings of generated users, and a random tenth."""
    train, _ = Holdout().split(Synthetic(users=20_000, items=1682, ratings=1_000_000, rank=3), 1)
    judging = generator(seed, "validation").random(train.count) < 0.1
    return train.select(~judging), train.select(judging)


def judged(preset: str, epsilon: float, draws: Sequence[Parts], settings: dict[str, Any]) -> list[float]:
    """Return the RMSE on every draw."""
    own = {EPSILON: epsilon, **settings}
    return [measured(preset, own, parts, seed) for seed, parts in enumerate(draws, start=1)]


def main() -> int:
    """Print every figure; return 1 if the default values do not stand."""
    folder, names = arguments(__doc__, list(TRIED))
    agree, defaults = True, asdict(FactorizationOptions())
    for name in names:
        preset, epsilon, options = TRIED[name]
        draws = [tenth_of_generated(s) if name == "factors" else tenth_of_u1(folder, s) for s in (1, 2)]
        tried = {PREFIX + key: values for key, values in options.items()}
        current = {PREFIX + key: defaults[key] for key in options}
        agree &= best_of(name, tried, partial(judged, preset, epsilon, draws), current)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
