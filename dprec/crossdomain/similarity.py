"""How similar two items are: adjusted cosine, significance and mutuality, for blocks of items at once.

Every quantity of a block is a product of two sparse users x items matrices; a pair exists where at
least one user rated both items.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import find, places_of, rows_of

SimilarityKind = Literal["adjusted-cosine", "cosine"]

LOWEST: dict[SimilarityKind, float] = {"adjusted-cosine": -1.0, "cosine": 0.0}
"""The least value that each similarity can take; the greatest is 1 for both."""

_ROWS = 512


def global_sensitivity(kind: SimilarityKind) -> float:
    """Return the most by which one user can move a similarity: the width of its range.

    It is 2 for adjusted cosine and 1 for cosine of non-negative ratings (Guerraoui et al.
    [guerraoui2017], Theorem 1).
    """
    return 1.0 - LOWEST[kind]


@dataclass(frozen=True, eq=False)
class RatedItems:
    """The items of a rating matrix, prepared for comparison."""

    deviations: sp.csc_array
    """Ratings minus the user's mean for adjusted cosine, plain ratings for cosine; shape (users, items)."""
    rated: sp.csc_array
    """1 where there is a rating; shape (users, items)."""
    opinions: sp.csc_array
    """1 for a rating of at least the item's mean, -1 for one below it; shape (users, items)."""
    norms: NDArray[np.float64]
    """Euclidean norms of the columns of `deviations`; shape (items,)."""
    raters: NDArray[np.int64]
    """Shape (items,)."""
    means: NDArray[np.float64]
    """Mean rating, mixed with the prior; the overall mean for an item without ratings; shape (items,)."""

    @classmethod
    def of(
        cls, ratings: sp.csr_array, kind: SimilarityKind = "adjusted-cosine", prior: float = 0.0
    ) -> RatedItems:
        """Prepare a users x items matrix whose stored entries are the ratings, zeros included.

        Parameters
        ----------
        ratings : csr_array, shape (users, items)
        kind : {"adjusted-cosine", "cosine"}
        prior : float
            Number of ratings at the overall mean that are added to each item's own for its mean.
        """
        counts = np.diff(ratings.indptr)
        values, users = ratings.data, rows_of(counts)
        raters = np.bincount(ratings.indices, minlength=ratings.shape[1])
        overall = float(values.mean()) if values.size else 0.0
        sums = np.bincount(ratings.indices, weights=values, minlength=raters.size)
        weights = raters + prior
        means = (sums + prior * overall) / np.where(weights > 0, weights, 1.0)
        means = np.where(weights > 0, means, overall)
        user_sums = np.bincount(users, weights=values, minlength=counts.size)
        user_means = user_sums / np.maximum(counts, 1)
        deviations = values - user_means[users] if kind == "adjusted-cosine" else values
        # The rounding error of a rating at the user's mean must not count as an opinion.
        deviations = np.where(np.abs(deviations) < 1e-12, 0.0, deviations)
        opinions = np.where(values >= means[ratings.indices] - 1e-12, 1.0, -1.0)
        return cls(
            deviations=_columns(ratings, deviations),
            rated=_columns(ratings, np.ones(values.size)),
            opinions=_columns(ratings, opinions),
            norms=np.sqrt(np.bincount(ratings.indices, weights=deviations**2, minlength=raters.size)),
            raters=raters,
            means=means,
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.raters.size


@dataclass(frozen=True, eq=False)
class Edges:
    """Similar pairs of items, one from each of two sets."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    """The items, ascending by left and then by right; shape (edges,)."""
    similarity: NDArray[np.float64]
    """Never 0; shape (edges,)."""
    mutuality: NDArray[np.float64]
    """Users whose ratings of both are on the same side of the items' means; shape (edges,)."""
    confidence: NDArray[np.float64]
    """Mutuality over the users who rated either; shape (edges,)."""

    @property
    def count(self) -> int:
        """Number of edges."""
        return self.left.size

    def select(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Edges:
        """Return some of the edges."""
        return Edges(
            self.left[which],
            self.right[which],
            self.similarity[which],
            self.mutuality[which],
            self.confidence[which],
        )

    def strongest(self, k: int) -> Edges:
        """Return the edges among the k most similar of either end; ties go to lower items."""
        return self.select(
            _top(self.left, self.right, self.similarity, k) | _top(self.right, self.left, self.similarity, k)
        )


def dense_similarities(
    items: RatedItems, left: NDArray[np.integer], right: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the similarities of two sets of items, shape (left, right).

    sum_u a_ui a_uj / (|a_i| |a_j|), where a are the deviations and the norms run over all raters of an
    item; 0 if no user rated both or a norm is 0 (Guerraoui et al. [guerraoui2017], section 2).
    """
    dots = (items.deviations[:, left].T @ items.deviations[:, right]).toarray()
    norms = items.norms[left][:, None] * items.norms[right]
    similarities: NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return np.clip(similarities, -1.0, 1.0)


def edges_between(
    items: RatedItems, left: NDArray[np.int64], right: NDArray[np.int64], significance: int
) -> Edges:
    """Return the edges between two disjoint sets of items, zero similarities dropped.

    Parameters
    ----------
    left, right : ndarray of int64
        Ascending.
    significance : int
        Number of common raters at which a similarity counts in full: it is scaled by
        min(common, significance) / significance.

    Notes
    -----
    Mutuality S is the number of users whose ratings of both items are on the same side of their means,
    and the confidence is S / |U_i or U_j| (Guerraoui et al. [guerraoui2017], section 3, Definitions 1
    and 2).
    """
    parts = [
        _edges_of_rows(items, left[start : start + _ROWS], right, significance)
        for start in range(0, left.size, _ROWS)
    ]
    if not parts:
        nothing = np.zeros(0)
        return Edges(nothing.astype(np.int64), nothing.astype(np.int64), nothing, nothing, nothing)
    return Edges(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.similarity for part in parts]),
        np.concatenate([part.mutuality for part in parts]),
        np.concatenate([part.confidence for part in parts]),
    )


def _edges_of_rows(
    items: RatedItems, left: NDArray[np.int64], right: NDArray[np.int64], significance: int
) -> Edges:
    similar = (items.deviations[:, left].T @ items.deviations[:, right]).tocsr()
    similar.sort_indices()
    rows = rows_of(np.diff(similar.indptr))
    pairs = rows * right.size + similar.indices
    common = _at(items.rated[:, left].T @ items.rated[:, right], pairs)
    balance = _at(items.opinions[:, left].T @ items.opinions[:, right], pairs)
    one, other = left[rows], right[similar.indices]
    norms = items.norms[one] * items.norms[other]
    plain = np.divide(similar.data, norms, out=np.zeros(pairs.size), where=norms > 0)
    # Products that cancel leave a rounding error, which is no edge.
    plain = np.where(np.abs(plain) < 1e-12, 0.0, np.clip(plain, -1.0, 1.0))
    mutuality = (common + balance) / 2
    edges = Edges(
        one,
        other,
        plain * np.minimum(common, significance) / significance,
        mutuality,
        mutuality / (items.raters[one] + items.raters[other] - common),
    )
    return edges.select(edges.similarity != 0)


def _at(product: sp.sparray, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return entries of a sparse matrix by row-major position; SciPy stores no zeros in a product."""
    matrix = product.tocsr()
    matrix.sort_indices()
    rows = rows_of(np.diff(matrix.indptr))
    stored = rows * matrix.shape[1] + matrix.indices
    places, present = find(stored, pairs)
    entries = np.zeros(pairs.size)
    entries[present] = matrix.data[places[present]]
    return entries


def _columns(ratings: sp.csr_array, values: NDArray[np.float64]) -> sp.csc_array:
    return sp.csr_array((values, ratings.indices, ratings.indptr), shape=ratings.shape).tocsc()


def _top(
    ends: NDArray[np.int64], others: NDArray[np.int64], similarity: NDArray[np.float64], k: int
) -> NDArray[np.bool_]:
    """Return which edges are among the k most similar at their end."""
    by_end = np.argsort(ends, kind="stable")
    values = similarity[by_end]
    stretches = np.flatnonzero(np.diff(ends[by_end], prepend=-1, append=np.iinfo(np.int64).max))
    # Edges below the k-th largest of their end are dropped at once; only the few others are ranked.
    within = np.ones(values.size, dtype=np.bool_)
    for start, stop in pairwise(stretches.tolist()):
        if stop - start > k:
            own = values[start:stop]
            within[start:stop] = own >= np.partition(own, stop - start - k)[stop - start - k]
    left = by_end[within]
    order = left[np.lexsort((others[left], -similarity[left], ends[left]))]
    ranks = places_of(np.unique(ends[order], return_counts=True)[1])
    strongest = np.zeros(similarity.size, dtype=np.bool_)
    strongest[order[ranks < k]] = True
    return strongest
