"""Chooses the steps of the iterative presets on validation ratings; the papers leave them open.

    python benchmarks/choose_gradient_steps.py [--path ../shared/data/ml-100k] [NAME ...]

pg-mf-anchored : length of the first step and the pull, on a tenth of the train ratings of the preset's
    synthetic users, for two draws; pg-mf has the same.
federated-mf : step length, on a tenth of MovieLens 100K's u1.base, for two draws.

Figures are RMSE.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from validation import Parts, arguments, best_of, measured, tenth_of_u1

from dprec.datasets import Synthetic
from dprec.randomness import generator
from dprec.splits import Holdout
from simulation import load
from simulation.configuration.strict_yaml import at

SIZE, PULL = "protocol.step.size", "protocol.step.regularization"
MOMENTUM = "protocol.step.momentum"
TRIED: dict[str, dict[str, tuple[float, ...]]] = {
    "pg-mf-anchored": {SIZE: (0.1, 0.2, 0.4), PULL: (0.0, 0.01, 0.1)},
    "federated-mf": {SIZE: (0.025, 0.05, 0.1), MOMENTUM: (0.8,)},
}


def tenth_of_synthetic(seed: int) -> Parts:
    """Return nine tenths of the train ratings of a synthetic population, and a random tenth."""
    train, _ = Holdout().split(Synthetic(users=200_000, items=100, ratings=4_000_000), 1)
    judging = generator(seed, "validation").random(train.count) < 0.1
    return train.select(~judging), train.select(judging)


def judged(preset: str, draws: Sequence[Parts], settings: dict[str, Any]) -> list[float]:
    """Return the RMSE on every draw."""
    return [measured(preset, settings, parts, seed) for seed, parts in enumerate(draws, start=1)]


def main() -> int:
    """Print every figure; return 1 if a preset's values do not stand."""
    folder, names = arguments(__doc__, list(TRIED))
    agree = True
    for name in names:
        private = name == "pg-mf-anchored"
        draws = [tenth_of_synthetic(seed) if private else tenth_of_u1(folder, seed) for seed in (1, 2)]
        values = load(name).model_dump(mode="json")
        current = {key: at(values, *key.split(".")) for key in TRIED[name]}
        agree &= best_of(name, TRIED[name], partial(judged, name, draws), current)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
