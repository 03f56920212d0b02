"""How much nothing-sent weighs its prior, and public data: RMSE on validation ratings of MovieLens 100K.

A tenth of the train ratings of u1 is held back, several times; no test rating is read. The prior is the
middle of the scale. Fails if another value is better than the default of `prior_ratings` or, with years and
genres, of `process.number` and `process.category`, by more than .002 and by more than chance explains.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from validation import Parts, asked, best_of, decide, tenth_of_u1

from dprec.completion import own_averages
from dprec.datasets import MovieLens100K
from dprec.metrics import root_mean_squared_error
from dprec.personalization import OrdinalProcess
from dprec.protocols.baselines import NothingSentProtocol

PRIORS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0)
CONTENT = ((0.02, 0.03), (0.05, 0.05), (0.05, 0.1), (0.1, 0.05), (0.1, 0.1), (0.1, 0.2), (0.2, 0.2))
"""Variances by numbers and by categories."""
DEFAULT, TOLERANCE = NothingSentProtocol(), 0.002


def of_prior(parts: Parts, weight: float) -> float:
    """Return the RMSE of averages with a prior."""
    learned, judging = parts
    prior = (learned.scale.low + learned.scale.high) / 2
    predicted = own_averages(learned, prior, weight).predict(judging.users, judging.items)
    return root_mean_squared_error(predicted, judging.values)


def errors(error: Callable[..., float], every: Sequence[Parts], tried: Mapping[str, Any]) -> list[float]:
    return [error(each, *tried.values()) for each in every]


def judged(given: argparse.Namespace) -> Iterator[bool]:
    public = MovieLens100K(path=given.path, items=True)

    def of_content(parts: Parts, variances: tuple[float, float]) -> float:
        learned, judging = parts
        process = OrdinalProcess(number=variances[0], category=variances[1])
        alone = NothingSentProtocol(process=process).alone(learned, public.catalogue(learned.item_ids))
        predicted = np.clip(alone.predict(judging.users, judging.items), 1, 5)
        return root_mean_squared_error(predicted, judging.values)

    process = DEFAULT.process
    choices: tuple[tuple[str, tuple[Any, ...], Any, Callable[..., float], int], ...] = (
        ("prior_ratings", PRIORS, DEFAULT.prior_ratings, of_prior, given.draws),
        ("variances", CONTENT, (process.number, process.category), of_content, min(given.draws, 3)),
    )
    for name, tried, default, error, draws in choices:
        figures = partial(errors, error, [tenth_of_u1(given.path, seed) for seed in range(draws)])
        yield best_of("nothing-sent,", {name: tried}, figures, {name: default}, least=TOLERANCE)


if __name__ == "__main__":
    decide(judged(asked(__doc__, draws=10)))
