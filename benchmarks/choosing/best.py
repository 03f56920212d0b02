"""Chooses what `kind: best` picks: RMSE of the candidates on validation ratings of MovieLens 100K.

The validation ratings are those of on_device.py: no test rating is read. Fails if the table of
dprec/protocols/best_ratings.py picks a mechanism that is worse than another one by more than 0.002.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from on_device import validation_split
from validation import asked, decide, stands

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


def judged(given: argparse.Namespace) -> Iterator[bool]:
    dataset = MovieLens100K(path=given.path, items=True)
    parts = validation_split(*dataset.load_fold("u1"))
    for predicts in ("device", "server"):
        config = load("best", ["simulation.backend=local", f"protocol.predicts={predicts}"])
        for epsilon in given.epsilons:
            best = config.protocol.at_budget(MatchedBudget(epsilon))
            assert isinstance(best, BestProtocol)
            picked = best.pick(None)[0]
            assert isinstance(picked, OneShotProtocol)
            figures: dict[str, float] = {}
            for mechanism in CANDIDATES:
                values = {"dataset": dataset, "protocol": replace(picked, mechanism=mechanism)}
                errors = [
                    run_prepared(config.model_copy(update={**values, "seed": seed}), *parts, None)
                    for seed in range(1, given.seeds + 1)
                ]
                figures[mechanism.kind] = float(np.mean([each.summary.accuracy.rmse for each in errors]))
            words = ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items())
            behind = figures[picked.facts.protects] - min(figures.values())
            yield stands(f"{predicts} at {epsilon:g}: {words}; {picked.facts.protects}", behind, TOLERANCE)


if __name__ == "__main__":
    decide(judged(asked(__doc__, seeds=2, epsilons=EPSILONS)))
