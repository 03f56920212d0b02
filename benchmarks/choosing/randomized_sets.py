"""Chooses what randomised sets change in the rules of a noisy table: dprec/lists/randomized_sets.py.

    python benchmarks/choosing/randomized_sets.py [--path ../shared/data/ml-100k]

The ridge and the share of the weights are multiplied by a few factors, at three budgets of an item, on the
validation items of list_settings.py, of dense data alone: sparse ones want a table that is out of reach.
Figures are NDCG@10 of six draws. Fails if another factor is better than the rule by more than .002 and by
more than chance explains.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from unittest import mock

import numpy as np
from list_settings import LEAST, Draw, dense_draws, ndcg
from validation import arguments, best_of

from dprec.lists import randomized_sets
from dprec.observations import SetReports

BUDGETS = (0.5, 1.0, 2.0)
CONSTANTS = ("_RIDGE", "_BESIDE_CONTENT")
FACTORS = (0.4, 1.0, 2.5)


def reported(draw: Draw, epsilon: float) -> SetReports:
    """Return what a server keeps of the sets of a draw, randomised."""
    random, lie = np.random.default_rng(draw.seed), 1 / (1 + math.exp(epsilon))
    answers = (draw.sets.toarray() > 0) ^ (random.random(draw.sets.shape) < lie)
    everybody = np.ones(len(answers), dtype=np.bool_)
    return SetReports(np.packbits(answers, axis=1), answers.shape[1], 1 - lie, lie, everybody)


def judged(every: Sequence[Draw], reports: Sequence[SetReports], factors: Mapping[str, float]) -> list[float]:
    """Return the NDCG@10 of every draw, with constants times some factors."""
    changed = {name: factor * getattr(randomized_sets, name) for name, factor in factors.items()}
    with mock.patch.multiple(randomized_sets, **changed):
        models = [
            randomized_sets.list_model(own, draw.catalogue, None)
            for draw, own in zip(every, reports, strict=True)
        ]
    return [ndcg(draw, model.scores) for draw, model in zip(every, models, strict=True)]


def main() -> int:
    """Print every figure; return 1 if the rule does not stand."""
    folder, _ = arguments(__doc__, [])
    agree = True
    for title, drawn in dense_draws(folder).items():
        every = drawn()
        for epsilon in BUDGETS:
            figures = partial(judged, every, [reported(draw, epsilon) for draw in every])
            for name in CONSTANTS:
                about = f"{title}, epsilon {epsilon:g},"
                agree &= best_of(about, {name: FACTORS}, figures, {name: 1.0}, largest=True, least=LEAST)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
