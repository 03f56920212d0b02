"""Chooses the settings that Neera et al. leave open, on a tenth of MovieLens 100K's u1.base.

    python benchmarks/choose_neera_settings.py [--path ../shared/data/ml-100k] [mog-mf | sgd-mf]

The devices of the other nine tenths send noisy ratings at epsilon 0.1, 1 and 3; figures are the RMSE on the
clean tenth, at each of these budgets and for two seeds. One setting is varied at a time, the others being the
defaults; no default is the largest value that is tried. The test ratings are never read.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial
from typing import Any

import numpy as np
from validation import Parts, arguments, best_of, tenth_of_u1

from dprec.completion import COMPLETIONS, Observations
from dprec.mechanisms import MECHANISMS
from dprec.metrics import root_mean_squared_error
from dprec.randomness import generator

EPSILONS, SEEDS = (0.1, 1.0, 3.0), (1, 2)
MECHANISM = {"mog-mf": "bounded-laplace", "sgd-mf": "clamped-laplace"}
TRIED: dict[str, dict[str, tuple[float, ...]]] = {
    "mog-mf": {"rank": (1, 2, 3, 5)},
    "sgd-mf": {"rank": (1, 2), "step": (0.001, 0.003, 0.01), "epochs": (40, 80, 160, 320)},
}


def judged(kind: str, parts: Parts, settings: dict[str, Any]) -> list[float]:
    """Return the RMSE at every epsilon, for every seed."""
    learned, judging = parts
    scale, shape = learned.scale, (learned.n_users, learned.n_items)
    mechanism = MECHANISMS[MECHANISM[kind]](kind=MECHANISM[kind])
    errors = []
    for epsilon, seed in itertools.product(EPSILONS, SEEDS):
        channel = mechanism.channel(scale, epsilon)
        random_words = generator(seed, "report").integers(2**64, size=learned.count, dtype=np.uint64)
        values = channel.values[channel.sample(learned.levels, random_words)]
        observations = Observations.of(learned.users, learned.items, values, shape, scale)
        completed = COMPLETIONS[kind](kind=kind, **settings).fit(observations, seed)
        predictions = np.clip(completed.predict(judging.users, judging.items), scale.low, scale.high)
        errors.append(root_mean_squared_error(predictions, judging.values))
    return errors


def main() -> int:
    """Print every figure; return 1 if a default does not stand."""
    folder, kinds = arguments(__doc__, list(TRIED))
    parts = tenth_of_u1(folder, 0)
    agree = True
    for kind in kinds:
        for name, values in TRIED[kind].items():
            current = {name: getattr(COMPLETIONS[kind](kind=kind), name)}
            agree &= best_of(kind, {name: values}, partial(judged, kind, parts), current)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
