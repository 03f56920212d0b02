"""Chooses what `kind: best` picks: RMSE of the candidates on validation ratings of MovieLens 100K.

    python benchmarks/choosing/best.py [--path ../shared/data/ml-100k] [--seeds 2] [--epsilons 0.1 1]

The validation ratings are those of on_device.py: no test rating is read. Fails if the table of
dprec/protocols/best_ratings.py picks a mechanism that is worse than another one by more than 0.002.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np
from on_device import validation_split
from threadpoolctl import threadpool_limits

from dprec.accounting import MatchedBudget
from dprec.datasets import MovieLens100K
from dprec.mechanisms import BitsAndCounts, FisherOptimal, ThresholdBit
from dprec.protocols.best import BestProtocol
from dprec.protocols.one_shot import OneShotProtocol
from simulation import load
from simulation.execution import run_prepared

EPSILONS = (0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 3.0)
CANDIDATES = (ThresholdBit(), FisherOptimal(histogram="netflix"), BitsAndCounts())
TOLERANCE = 0.002


def main() -> int:
    """Print the mean RMSE of every candidate; return 1 if the table does not stand."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--seeds", type=int, default=2, help="draws of the noise")
    arguments.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, help="budgets per rating")
    chosen = arguments.parse_args()
    dataset = MovieLens100K(path=chosen.path, items=True)
    parts = validation_split(*dataset.load_fold("u1"))
    stands = True
    for predicts in ("device", "server"):
        config = load("best", ["simulation.backend=local", f"protocol.predicts={predicts}"])
        for epsilon in chosen.epsilons:
            best = config.protocol.at_budget(MatchedBudget(epsilon))
            assert isinstance(best, BestProtocol)
            picked = best.pick(None)[0]
            assert isinstance(picked, OneShotProtocol)
            figures: dict[str, float] = {}
            for mechanism in CANDIDATES:
                values = {"dataset": dataset, "protocol": replace(picked, mechanism=mechanism)}
                errors = [
                    run_prepared(config.model_copy(update={**values, "seed": seed}), *parts, None)
                    for seed in range(1, chosen.seeds + 1)
                ]
                figures[mechanism.kind] = float(np.mean([each.summary.accuracy.rmse for each in errors]))
            good = figures[picked.facts.protects] <= min(figures.values()) + TOLERANCE
            stands &= good
            words = ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items())
            verdict = "stands" if good else "does not stand"
            print(f"{predicts} at {epsilon:g}: {words}; {picked.facts.protects} {verdict}", flush=True)
    return 0 if stands else 1


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        sys.exit(main())
