"""Compares iALS with the package implicit at equal settings, by NDCG@10 on held-out items.

`pip install implicit`, and then `python benchmarks/ials_against_implicit.py ml-100k`, with the folder of
MovieLens 100K. Of a confidence of c on pairs and a ridge of r, ours are 1 / (c - 1) and r / c: see
`dprec.lists.ials`.
"""

import sys

import numpy as np
import scipy.sparse as sp
from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]

from dprec.arrays import AnyInts, Floats
from dprec.datasets import MovieLens100K, selected
from dprec.lists.ials import ImplicitOptions, fold_in, ials
from dprec.metrics import LONGEST_LIST, RankedHits
from dprec.predictions import Unrated, best_items, cells_from_rows
from dprec.ratings import Ratings
from dprec.splits import UserHoldout


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
    print(
        f"{'factors':>7} {'confidence':>10} {'ridge':>6} {'seed':>4}  {'ours':>6} {'theirs':>6} {'apart':>7}"
    )
    for rank, confidence, ridge in ((16, 5.0, 20.0), (64, 5.0, 20.0), (64, 10.0, 50.0), (128, 20.0, 50.0)):
        for seed in (1, 2, 3):
            train, test = UserHoldout(test_fraction=0.2).split(dataset, seed)
            sets = train.to_sets()
            options = ImplicitOptions(
                rank=rank,
                sweeps=30,
                unobserved=1 / (confidence - 1),
                ridge=ridge / confidence,
                frequency_scaling=0.0,
            )
            items = ials(sets, options)
            ours = ndcg(fold_in(sets, items, options) @ items.T, train, test)
            model = AlternatingLeastSquares(
                rank,
                regularization=ridge,
                alpha=confidence,
                iterations=30,
                use_cg=False,
                dtype=np.float64,
                random_state=seed,
            )
            model.fit(sp.csr_matrix(sets), show_progress=False)
            theirs = ndcg(model.user_factors @ model.item_factors.T, train, test)
            apart = ours - theirs
            print(f"{rank:7} {confidence:10g} {ridge:6g} {seed:4}  {ours:6.4f} {theirs:6.4f} {apart:+7.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
