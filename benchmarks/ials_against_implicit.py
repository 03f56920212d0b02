"""Compares iALS with the package implicit at equal settings, by NDCG@10 on held-out items.

`pip install implicit`, and then `python benchmarks/ials_against_implicit.py ml-100k`, with the folder of
MovieLens 100K. Of a confidence of c on pairs and a ridge of r, ours are 1 / (c - 1) and r / c: see
`dprec.lists.ials`. Factors of the package are as much larger as the root of c / (c - 1). Begun with the same
factors, both are at the same factors after every sweep; begun with factors that each draws itself, they stop
at different ones, as the package does itself with another seed.
"""

import sys

import numpy as np
import scipy.sparse as sp
from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]

from dprec.arrays import AnyInts, Floats
from dprec.datasets import MovieLens100K, selected
from dprec.lists.ials import ImplicitOptions, first_factors, fold_in, ials
from dprec.metrics import LONGEST_LIST, RankedHits
from dprec.predictions import Unrated, best_items, cells_from_rows
from dprec.ratings import Ratings
from dprec.splits import UserHoldout

SWEEPS = 30


def ndcg(scores: Floats, train: Ratings, test: Ratings) -> float:
    """Return the mean NDCG@10 of scores, shape (users, items)."""

    def rows(users: AnyInts, n_items: int) -> Floats:
        return scores[users]

    users = np.flatnonzero(test.counts)
    predict = cells_from_rows(rows, train.n_items)
    lists = best_items(predict, Unrated(train), users, LONGEST_LIST, train.n_items, predict_rows=rows)
    return float(RankedHits.of(lists, users, test).ndcg(10).mean())


def main(path: str) -> None:
    """Print both figures for some settings and splits."""
    dataset = selected(MovieLens100K(path=path, positive=">= 4", min_items=5))
    print("factors confidence  ridge seed    ours  theirs, begun alike   apart  begun by itself   apart")
    for rank, confidence, ridge in ((16, 5.0, 20.0), (64, 5.0, 20.0), (64, 10.0, 50.0), (128, 20.0, 50.0)):
        for seed in (1, 2, 3):
            train, test = UserHoldout(test_fraction=0.2).split(dataset, seed)
            sets = train.to_sets()
            options = ImplicitOptions(
                rank=rank,
                sweeps=SWEEPS,
                unobserved=1 / (confidence - 1),
                ridge=ridge / confidence,
                frequency_scaling=0.0,
            )
            items = ials(sets, options)
            ours = ndcg(fold_in(sets, items, options) @ items.T, train, test)
            alike = first_factors(train.n_items, options) * np.sqrt(confidence / (confidence - 1))
            same, other = (
                ndcg(of_implicit(sets, rank, confidence, ridge, seed, first), train, test)
                for first in (alike, None)
            )
            figures = f"{ours:6.4f} {same:20.4f} {ours - same:+7.4f} {other:16.4f} {ours - other:+7.4f}"
            print(f"{rank:7} {confidence:10g} {ridge:6g} {seed:4}  {figures}")


def of_implicit(
    sets: sp.csr_array, rank: int, confidence: float, ridge: float, seed: int, first: Floats | None
) -> Floats:
    """Return the package's scores, shape (users, items), from given first item factors or its own."""
    model = AlternatingLeastSquares(
        rank,
        regularization=ridge,
        alpha=confidence,
        iterations=SWEEPS,
        use_cg=False,
        dtype=np.float64,
        random_state=seed,
    )
    model.item_factors = first
    matrix = sp.csr_matrix(sets)
    model.fit(matrix, show_progress=False)
    # Its users' factors are those before its last step on items.
    users = model.recalculate_user(np.arange(matrix.shape[0]), matrix)
    scores: Floats = users @ model.item_factors.T
    return scores


if __name__ == "__main__":
    main(sys.argv[1])
