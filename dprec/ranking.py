"""How good ranked lists are: NDCG, hit rate, reciprocal rank, recall, precision, coverage, at cutoffs.

A test rating makes its item relevant or not; an item without one counts as not relevant, although the user
may like it. So the measures compare lists with each other and do not estimate what users enjoy. Predicted
ratings order what users would like after choosing it, and so rank poorly over a whole catalogue (Cremonesi et
al. [cremonesi2010]).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import find
from dprec.ratings import Ratings


@dataclass(frozen=True, eq=False)
class RankedHits:
    """Where the relevant items are in the users' lists."""

    lists: NDArray[np.integer]
    """Recommended items, the best first; negative after the last one of a short list; shape (users, length).
    """
    hits: NDArray[np.bool_]
    """Which of them are relevant; shape (users, length)."""
    relevant: NDArray[np.int64]
    """Relevant items of each user, listed or not; at least 1; shape (users,)."""

    @classmethod
    def of(cls, lists: NDArray[np.integer], users: NDArray[np.integer], relevant: Ratings) -> RankedHits:
        """Compare lists with the relevant test ratings.

        Parameters
        ----------
        lists : ndarray of int, shape (users, length)
        users : ndarray of int, shape (users,)
            Whose lists they are: users with a relevant rating, each once.
        relevant : Ratings
            The test ratings that make an item relevant.
        """
        return cls(lists, listed_cells(lists, users, relevant), relevant.counts[users])

    @property
    def length(self) -> int:
        """Length of the lists."""
        return int(self.hits.shape[1])

    def ndcg(self, cutoff: int) -> NDArray[np.float64]:
        """Return each user's normalised discounted cumulative gain, shape (users,), from 0 to 1.

        A relevant item at rank r gains 1 / log2(1 + r), divided by what the best list gains (Järvelin and
        Kekäläinen [jarvelin2002], section 2.2, with binary gains and the logarithm's argument moved by one).
        """
        gains = 1 / np.log2(np.arange(2, cutoff + 2))
        ideal = np.cumsum(gains)[np.minimum(self.relevant, cutoff) - 1]
        ndcg: NDArray[np.float64] = self.hits[:, :cutoff] @ gains[: self.length] / ideal
        return ndcg

    def hit_rate(self, cutoff: int) -> NDArray[np.float64]:
        """Return 1 for each user with a relevant item among the first ones, else 0."""
        return (self._hits_until(cutoff) > 0).astype(np.float64)

    def mrr(self, cutoff: int) -> NDArray[np.float64]:
        """Return one over the rank of each user's first relevant item; 0 if it is beyond the cutoff."""
        hits = self.hits[:, :cutoff]
        if not self.length:
            return np.zeros(len(hits))
        return np.where(self._hits_until(cutoff) > 0, 1 / (1 + hits.argmax(axis=1)), 0.0)

    def recall(self, cutoff: int) -> NDArray[np.float64]:
        """Return the share of each user's relevant items that are among the first ones."""
        recall: NDArray[np.float64] = self._hits_until(cutoff) / self.relevant
        return recall

    def precision(self, cutoff: int) -> NDArray[np.float64]:
        """Return the share of each user's first places that a relevant item fills."""
        precision: NDArray[np.float64] = self._hits_until(cutoff) / cutoff
        return precision

    def _hits_until(self, cutoff: int) -> NDArray[np.int64]:
        hits: NDArray[np.int64] = self.hits[:, :cutoff].sum(axis=1, dtype=np.int64)
        return hits

    def distinct_items(self, cutoff: int) -> int:
        """Return how many different items anybody is recommended."""
        first = self.lists[:, :cutoff]
        return np.unique(first[first >= 0]).size


USER_METRICS = {
    "ndcg": RankedHits.ndcg,
    "hit_rate": RankedHits.hit_rate,
    "mrr": RankedHits.mrr,
    "recall": RankedHits.recall,
    "precision": RankedHits.precision,
}
"""The measures that are means over users."""


def ranking_figures(
    ranked: RankedHits, cutoffs: Sequence[int], n_items: int
) -> dict[str, dict[int, float | None]]:
    """Return every measure at every cutoff: the means over users, and the share of items that are listed.

    Parameters
    ----------
    cutoffs : sequence of int
        At least 1 each.
    n_items : int
        Items that might be recommended.

    Returns
    -------
    dict
        The keys of `USER_METRICS` and ``coverage``; None where there is no user.
    """
    users = len(ranked.hits)
    figures: dict[str, dict[int, float | None]] = {
        name: {k: float(np.mean(metric(ranked, k))) if users else None for k in cutoffs}
        for name, metric in USER_METRICS.items()
    }
    figures["coverage"] = {k: ranked.distinct_items(k) / n_items if users else None for k in cutoffs}
    return figures


def listed_cells(
    lists: NDArray[np.integer], users: NDArray[np.integer], ratings: Ratings
) -> NDArray[np.bool_]:
    """Return which places of users' lists hold an item that the user has a rating for, shape of the lists."""
    listed = lists >= 0
    _, present = find(ratings.cells, (users.astype(np.int64)[:, None] * ratings.n_items + lists)[listed])
    rated = np.zeros(listed.shape, dtype=np.bool_)
    rated[listed] = present
    return rated
