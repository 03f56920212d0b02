"""Shows on how many ratings a device should report: RMSE on validation ratings of MovieLens 100K, by budget.

    python benchmarks/choose_residual_bits.py [--path ../shared/data/ml-100k] [--draws 10]

The ratings are those of benchmarks/choose_on_device.py; no test rating is read. Each number of bits divides
the same budget per user.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from choose_on_device import error, validation_split
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.completion import CalibratedModel
from dprec.datasets import MovieLens100K
from dprec.mechanisms.thresholds import ResidualBits
from dprec.observations import Observations
from dprec.randomness import words
from dprec.ratings import Ratings
from dprec.reports import ResidualBitFamily
from simulation import load

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
BITS = (1, 2, 3, 4, 6)

PROTOCOL: Any = load("user-level-on-device").protocol


def fitted(
    learned: Ratings, epsilon: float, bits: int, draw: int, catalogue: Catalogue | None
) -> CalibratedModel:
    """Return what the server learns from so many bits per user."""
    budget = PrivacyBudget(epsilon=epsilon, per="user")
    calibrated = ResidualBitFamily(ResidualBits(bits=bits), budget, learned.scale, learned.n_items)
    choice, noise = (words(draw, purpose, 0, learned.count) for purpose in ("choice", "report"))
    symbols = calibrated.answers(learned.counts, learned.levels, choice, noise)
    seen = Observations.of(
        learned.users.astype(np.int32),
        learned.items,
        calibrated.read(learned.counts, symbols),
        (learned.n_users, learned.n_items),
        learned.scale,
        evidence=calibrated.evidence_of(learned.counts, symbols, learned.counts >= 0),
    )
    model: CalibratedModel = PROTOCOL.completion.fit(replace(seen, catalogue=catalogue), seed=1)
    return model


def main() -> None:
    """Print the mean RMSE of every number of bits at every budget, and the default."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=10, help="draws of the noise")
    chosen = arguments.parse_args()
    dataset = MovieLens100K(path=chosen.path, items=True)
    learned, validation = validation_split(*dataset.load_fold("u1"))
    catalogue = dataset.catalogue(learned.item_ids)
    with threadpool_limits(limits=1):
        for epsilon in EPSILONS:
            print(f"epsilon {epsilon:g} per user, {ResidualBits().asked(epsilon)} by default:", end="")
            for bits in BITS:
                errors = [
                    error(
                        fitted(learned, epsilon, bits, draw, catalogue), PROTOCOL.process, learned, validation
                    )
                    for draw in range(chosen.draws)
                ]
                deviation = np.std(errors) / np.sqrt(chosen.draws)
                print(f"  {bits}: {np.mean(errors):.4f} +- {deviation:.4f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
