"""Chooses what randomised sets change in the rules of a noisy table: dprec/lists/randomized_sets.py.

The ridge and the share of the weights are multiplied by a few factors, at three budgets of an item, on the
validation items of list_settings.py, of dense data alone: sparse ones want a table that is out of reach.
Figures are NDCG@10 of six draws. Fails if another factor is better than the rule by more than .002 and by
more than chance explains.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from unittest import mock

import numpy as np
from list_settings import FACTORS, LEAST, Draw, dense_draws, ndcg
from validation import asked, best_of, decide

from dprec.lists import randomized_sets
from dprec.observations import SetReports

BUDGETS, CONSTANTS = (0.5, 1.0, 2.0), ("_RIDGE", "_BESIDE_CONTENT")


def reported(draw: Draw, epsilon: float) -> SetReports:
    """Return what a server keeps of the sets of a draw, randomised."""
    random, lie = np.random.default_rng(draw.seed), 1 / (1 + math.exp(epsilon))
    answers = (draw.sets.toarray() > 0) ^ (random.random(draw.sets.shape) < lie)
    everybody = np.ones(len(answers), dtype=np.bool_)
    return SetReports(np.packbits(answers, axis=1), answers.shape[1], 1 - lie, lie, everybody)


def figures(
    every: Sequence[Draw], reports: Sequence[SetReports], factors: Mapping[str, float]
) -> list[float]:
    changed = {name: factor * getattr(randomized_sets, name) for name, factor in factors.items()}
    pairs = list(zip(every, reports, strict=True))
    with mock.patch.multiple(randomized_sets, **changed):
        models = [randomized_sets.list_model(own, draw.catalogue, None) for draw, own in pairs]
    return [ndcg(draw, model.scores) for draw, model in zip(every, models, strict=True)]


def judged(folder: str) -> Iterator[bool]:
    for title, drawn in dense_draws(folder).items():
        for epsilon in BUDGETS:
            found = partial(figures, drawn(), [reported(draw, epsilon) for draw in drawn()])
            for name in CONSTANTS:
                about = f"{title}, epsilon {epsilon:g},"
                yield best_of(about, {name: FACTORS}, found, {name: 1.0}, largest=True, least=LEAST)


if __name__ == "__main__":
    decide(judged(asked(__doc__).path))
