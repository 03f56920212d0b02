"""Chooses the one-bit settings that Li et al. leave open, and ours, on a tenth of MovieLens 100K's u1.base.

    python benchmarks/choose_one_bit_settings.py [--path ../shared/data/ml-100k] [NAME ...]

step : length of the step of gradient perturbation in one round, at epsilon 1 and 3.
ridge : of the user and item biases, without privacy and under input perturbation at epsilon 1.
presets : the nuclear norm's bound alpha sqrt(users items rank), by its rank at the presets' alpha, without
    privacy and under input perturbation at epsilon 1.
fig2-logistic, fig2-gaussian : the same for configs/experiments/one-bit-fig2.yaml, at epsilon 3 and 10.

Entries are not held within alpha, so alpha and rank act through that bound alone. Figures are shares of signs
that are predicted correctly; Fig. 2 is judged on one draw of the tenth, the others on two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from validation import Parts, arguments, best_of, measured, tenth_of_u1

from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import at

EPSILON, LINK = "protocol.privacy.epsilon", "protocol.completion.link"
STEP, RIDGE, RANK = "protocol.step", "protocol.completion.ridge", "protocol.completion.rank"
RANKS = (1.0, 2.0, 4.0, 8.0, 16.0)
Runs = Sequence[tuple[str, dict[str, Any]]]
"""Presets with what is set besides what is tried."""


def figure2(link: str) -> Runs:
    """Return the runs by which the bounds of Fig. 2 are judged."""
    private = [("one-bit-input", {LINK: link, EPSILON: epsilon}) for epsilon in (3, 10)]
    return [("one-bit-clear", {LINK: link}), *private]


CHOICES: dict[str, tuple[str, Sequence[float], Runs, int]] = {
    "step": (
        STEP,
        (1.0, 2.0, 4.0, 8.0, 16.0),
        [
            (preset, {EPSILON: epsilon})
            for preset in ("one-bit-gradient", "one-bit-gradient-effects")
            for epsilon in (1, 3)
        ],
        2,
    ),
    "ridge": (
        RIDGE,
        (0.5, 1.0, 2.0, 4.0, 8.0),
        [("one-bit-clear-effects", {}), ("one-bit-input-effects", {EPSILON: 1})],
        2,
    ),
    "presets": (RANK, RANKS, [("one-bit-clear", {}), ("one-bit-input", {EPSILON: 1})], 2),
    "fig2-logistic": (RANK, RANKS, figure2("logistic"), 1),
    "fig2-gaussian": (RANK, RANKS, figure2("gaussian"), 1),
}
"""What is tried, its values, by which runs, and on how many draws of the tenth."""


def judged(runs: Runs, draws: Sequence[Parts], settings: dict[str, Any]) -> list[float]:
    """Return the share of correct signs in every run, on every draw."""
    return [
        measured(preset, fixed | settings, parts, seed, "sign_accuracy")
        for preset, fixed in runs
        for seed, parts in enumerate(draws, start=1)
    ]


def configured(name: str) -> RunConfig:
    """Return the configuration whose value is checked."""
    if not name.startswith("fig2"):
        return load({"step": "one-bit-gradient", "ridge": "one-bit-clear-effects"}.get(name, "one-bit-input"))
    protocol = f"input-{name.removeprefix('fig2-')}"
    return next(cell.config for cell in load_comparison("one-bit-fig2").cells if cell.protocol == protocol)


def main() -> int:
    """Print every figure; return 1 if a value does not stand."""
    folder, names = arguments(__doc__, list(CHOICES))
    parts = [tenth_of_u1(folder, seed) for seed in (1, 2)]
    agree = True
    for name in names:
        key, values, runs, draws = CHOICES[name]
        current = {key: at(configured(name).model_dump(mode="json"), *key.split("."))}
        agree &= best_of(name, {key: values}, partial(judged, runs, parts[:draws]), current, largest=True)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
