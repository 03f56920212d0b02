"""Chooses the settings of the references of lists, `ease` and `ials`, on validation splits of train items.

    python benchmarks/choosing/list_references.py ml-100k msweb

with the folders of MovieLens 100K and MSWeb. No test item of the splits that comparisons use is seen: of
their train items, a share is held out once more. Printed are means of NDCG@10 over splits; the defaults are
what is best for the mean of both data sets.
"""

import sys
from itertools import product

import numpy as np

from dprec.arrays import AnyInts, Floats
from dprec.datasets import Dataset, MovieLens100K, MsWeb, selected
from dprec.lists.ease import co_occurrences, ease
from dprec.lists.ials import ImplicitOptions, fold_in, ials
from dprec.metrics import LONGEST_LIST, RankedHits
from dprec.predictions import Unrated, cells_from_rows, scored_lists
from dprec.ratings import Ratings
from dprec.splits import UserHoldout

SEEDS = (1, 2)


def parts(dataset: Dataset, test_fraction: float, seed: int) -> tuple[Ratings, Ratings]:
    """Return the train items of a split, divided again into train and validation."""
    split = UserHoldout(test_fraction=test_fraction)
    train, _ = split.split(selected(dataset), seed)
    held = np.zeros(train.count, dtype=np.bool_)
    held[split.test_rows(train, seed + 1000)] = True
    return train.select(~held), train.select(held)


def ndcg(scores: Floats, train: Ratings, test: Ratings) -> float:
    """Return the mean NDCG@10 of scores, shape (users, items)."""

    def rows(users: AnyInts, n_items: int) -> Floats:
        return scores[users]

    users = np.flatnonzero(test.counts)
    predict = cells_from_rows(rows, train.n_items)
    lists = scored_lists(predict, Unrated(train), users, LONGEST_LIST, train.n_items, predict_rows=rows).items
    return float(RankedHits.of(lists, users, test).ndcg(10).mean())


def main(movielens: str, msweb: str) -> None:
    """Print what every setting reaches on both data sets."""
    films = [parts(MovieLens100K(path=movielens, positive=">= 4", min_items=5), 0.2, seed) for seed in SEEDS]
    visits = [parts(MsWeb(path=msweb, min_items=3), 0.3, seed) for seed in SEEDS]

    def report(name: str, reached: list[list[float]]) -> None:
        means = [float(np.mean(own)) for own in reached]
        print(f"{name:50} {means[0]:.4f} {means[1]:.4f} {np.mean(means):.4f}", flush=True)

    print(f"{'':50} {'films':6} {'visits':6} {'mean':6}")
    for ridge in (50.0, 100.0, 150.0, 200.0, 300.0, 500.0):
        reached = [
            [
                ndcg(train.to_sets() @ ease(co_occurrences(train.to_sets()), ridge), train, test)
                for train, test in own
            ]
            for own in (films, visits)
        ]
        report(f"ease, ridge {ridge:g}", reached)
    # Only with a scaling of 1 do copies of a population have the same factors.
    grid = [(1.0, alpha0, ridge) for alpha0, ridge in product((0.3, 1.0), (0.005, 0.01, 0.02, 0.04))]
    grid += [(0.5, 0.1, 0.6), (0.0, 0.1, 10.0)]
    for scaling, alpha0, ridge in grid:
        options = ImplicitOptions(
            rank=64, sweeps=10, unobserved=alpha0, ridge=ridge, frequency_scaling=scaling
        )
        reached = [[_of_factors(train, test, options) for train, test in own] for own in (films, visits[:1])]
        report(f"ials, scaling {scaling:g}, unobserved {alpha0:g}, ridge {ridge:g}", reached)


def _of_factors(train: Ratings, test: Ratings, options: ImplicitOptions) -> float:
    sets = train.to_sets()
    items = ials(sets, options)
    return ndcg(fold_in(sets, items, options) @ items.T, train, test)


if __name__ == "__main__":
    main(*sys.argv[1:])
