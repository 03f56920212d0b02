"""Shows what public and learned shares of the levels are worth: RMSE on validation ratings of MovieLens 100K.

    python benchmarks/learned_histogram.py [--path ../shared/data/ml-100k] [--draws 3]

The validation ratings are those of `choose_on_device.py`. Learned shares start from a public histogram, and a
share of the ratings has its bit about another threshold than the middle.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from choose_on_device import COMPLETION, PROCESS, error, fitted, validation_split
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.completion import Calibrated
from dprec.datasets import MovieLens100K
from dprec.mechanisms import ThresholdBit
from dprec.metrics import root_mean_squared_error
from dprec.ordinal import Histogram

BUDGETS = (0.1, 0.5, 1.0, 3.0)

PUBLIC: dict[str, Histogram | None] = {"Netflix": "netflix", "equal": None, "J-shaped": (10, 3, 7, 20, 60)}


def rows() -> Iterator[tuple[str, Calibrated, ThresholdBit]]:
    """Yield what is compared: a name, the completion and the mechanism."""
    for name, histogram in PUBLIC.items():
        stated = replace(COMPLETION, histogram=histogram)
        yield f"{name}, stated", stated, ThresholdBit()
        for share in (0.05, 0.1, 0.2) if name == "equal" else (0.1,):
            learned = replace(stated, learn_histogram=True)
            yield f"{name}, learned from {share:.0%}", learned, ThresholdBit(other_thresholds=share)


def main() -> None:
    """Print the mean RMSE of server and devices, a row per histogram and a column per budget."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=3, help="draws of the noise")
    chosen = arguments.parse_args()
    known, validation = validation_split(*MovieLens100K(path=chosen.path).load_fold("u1"))
    print("| histogram |", " | ".join(f"{epsilon:g}" for epsilon in BUDGETS), "|")
    with threadpool_limits(limits=1):
        for name, completion, mechanism in rows():
            cells = []
            for epsilon in BUDGETS:
                budget = PrivacyBudget(epsilon=epsilon)
                models = [fitted(completion, known, draw, mechanism, budget) for draw in range(chosen.draws)]
                predictions = [model.predict(validation.users, validation.items) for model in models]
                server = np.mean([root_mean_squared_error(own, validation.values) for own in predictions])
                device = np.mean([error(model, PROCESS, known, validation) for model in models])
                cells.append(f"{server:.4f} / {device:.4f}")
            print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
