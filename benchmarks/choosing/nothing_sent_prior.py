"""How much nothing-sent weighs its prior, and public data: RMSE on validation ratings of MovieLens 100K.

    python benchmarks/choosing/nothing_sent_prior.py [--path ../shared/data/ml-100k] [--draws 10]

A tenth of the train ratings of u1 is held back, several times; no test rating is read. The prior is the
middle of the scale. The best of the tried values is the default of `prior_ratings`; with years and genres,
that of `process.number` and `process.category`.
"""

from __future__ import annotations

import argparse

import numpy as np

from dprec.catalogue import Catalogue
from dprec.completion import own_averages
from dprec.datasets import MovieLens100K
from dprec.metrics import root_mean_squared_error
from dprec.personalization import OrdinalProcess
from dprec.protocols.baselines import NothingSentProtocol
from dprec.randomness import generator
from dprec.ratings import Ratings

TRIED = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0)
TRIED_OF_CONTENT = ((0.02, 0.03), (0.05, 0.05), (0.05, 0.1), (0.1, 0.05), (0.1, 0.1), (0.1, 0.2), (0.2, 0.2))
HELD_BACK = 0.1


def validation_errors(ratings: Ratings, seed: int) -> list[float]:
    """Return the RMSE of every value of `TRIED` on a random tenth of the ratings."""
    held_back = generator(seed, "validation").random(ratings.count) < HELD_BACK
    learned, validation = ratings.select(~held_back), ratings.select(held_back)
    prior = (ratings.scale.low + ratings.scale.high) / 2
    return [
        root_mean_squared_error(
            own_averages(learned, prior, weight).predict(validation.users, validation.items),
            validation.values,
        )
        for weight in TRIED
    ]


def errors_with_content(ratings: Ratings, catalogue: Catalogue, seed: int) -> list[float]:
    """Return the RMSE of every pair of `TRIED_OF_CONTENT`, with public data, on a random tenth."""
    held_back = generator(seed, "validation").random(ratings.count) < HELD_BACK
    learned, validation = ratings.select(~held_back), ratings.select(held_back)
    errors = []
    for number, category in TRIED_OF_CONTENT:
        process = OrdinalProcess(number=number, category=category)
        alone = NothingSentProtocol(process=process).alone(learned, catalogue)
        predicted = np.clip(alone.predict(validation.users, validation.items), 1, 5)
        errors.append(root_mean_squared_error(predicted, validation.values))
    return errors


def main() -> None:
    """Print the mean RMSE of every value of `TRIED`, and of `TRIED_OF_CONTENT`."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=10, help="random tenths that are held back")
    chosen = arguments.parse_args()
    train, _ = MovieLens100K(path=chosen.path).load_fold("u1")
    errors = np.mean([validation_errors(train, seed) for seed in range(chosen.draws)], axis=0)
    best = TRIED[int(errors.argmin())]
    for weight, error in zip(TRIED, errors, strict=True):
        print(f"prior_ratings {weight:4g}: RMSE {error:.5f}{'  best' if weight == best else ''}")
    print(f"default {NothingSentProtocol().prior_ratings:g}")
    catalogue = MovieLens100K(path=chosen.path, items=True).catalogue(train.item_ids)
    assert catalogue is not None
    draws = range(min(chosen.draws, 3))
    errors = np.mean([errors_with_content(train, catalogue, seed) for seed in draws], axis=0)
    for place, (number, category) in enumerate(TRIED_OF_CONTENT):
        best_of_all = "  best" if place == errors.argmin() else ""
        print(f"number {number:g}, category {category:g}: RMSE {errors[place]:.5f}{best_of_all}")
    default = NothingSentProtocol().process
    print(f"default {default.number:g}, {default.category:g}")


if __name__ == "__main__":
    main()
