"""EASE: an item-item model without hidden factors, in closed form (Steck [steck2019]).

A user's score of an item is the sum of the weights B from the user's own items to it. B minimises
||X - X B||^2 + ridge ||B||^2 subject to diag(B) = 0, for the sets X. One array of items x items is held:
pairs are counted in it, it is inverted in place, and becomes the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from dprec.arrays import Floats, Ints

RIDGE = 6.0
"""Ridge for each item of a set, in the mean; `benchmarks/choosing/list_references.py` judges it."""

LARGEST = 46_340
"""Items of which LAPACK can number all pairs."""

_CELLS_AT_ONCE = 1 << 22
"""Cells that are counted together; bounds the memory beside the array."""

_ROWS_AT_ONCE = 1 << 9
"""Rows that are copied to the other side of the diagonal together."""


@dataclass(frozen=True, eq=False)
class PopularWeights:
    """Weights between the most popular items; all others stand below these, by popularity."""

    items: Ints
    """Those between which there are weights, ascending; shape (items with weights,)."""
    weights: Floats
    """Shape (items with weights, items with weights)."""
    counts: Ints
    """How many users have each item, shape (items,)."""

    @classmethod
    def of(cls, sets: scipy.sparse.csr_array, ridge: float, most_items: int) -> Self:
        """Return the weights that fit sets, shape (users, items), between at most so many items."""
        counts = np.bincount(sets.indices, minlength=sets.shape[1])
        items = np.sort(np.argsort(-counts, kind="stable")[:most_items])
        return cls(items, ease(co_occurrences(_among(sets, items)), ridge), counts)

    def scores(self, sets: scipy.sparse.csr_array) -> Floats:
        """Return the scores of all items for the users of some sets, shape (users, items)."""
        item_scores = scores(_among(sets, self.items), self.weights)
        if item_scores.shape == sets.shape:
            return item_scores
        below = item_scores.min(axis=1, keepdims=True) - 1
        ranked: Floats = below + self.counts / (self.counts.max() + 1)
        ranked[:, self.items] = item_scores
        return ranked


def _among(sets: scipy.sparse.csr_array, items: Ints) -> scipy.sparse.csr_array:
    return sets if items.size == sets.shape[1] else scipy.sparse.csr_array(sets[:, items])


def co_occurrences(sets: scipy.sparse.csr_array) -> Floats:
    """Return how many users have both items of every pair, G = X^T X, shape (items, items)."""
    n_items, of_items = sets.shape[1], sets.T.tocsr()
    gram = np.empty((n_items, n_items))
    for start in range(0, n_items, step := max(1, _CELLS_AT_ONCE // n_items)):
        gram[start : start + step] = (of_items[start : start + step] @ sets).toarray()
    return gram


def ease(gram: Floats, ridge: float) -> Floats:
    """Return the weights B, in the array that held G; shape (items, items).

    With P = (G + ridge I)^-1: B_ij = -P_ij / P_jj, and 0 on the diagonal [steck2019].

    Parameters
    ----------
    gram : ndarray of float64, shape (items, items)
        G = X^T X, or an estimate of it that is positive semidefinite, by rows; it is overwritten.
    ridge : float
        Above 0.
    """
    gram[np.diag_indices_from(gram)] += ridge
    # By columns, as LAPACK reads it, the array is its transpose, which is the same.
    half, wrong = scipy.linalg.lapack.dpotrf(gram.T, lower=0, clean=0, overwrite_a=1)
    if not wrong:
        half, wrong = scipy.linalg.lapack.dpotri(half, lower=0, overwrite_c=1)
    if wrong:
        raise np.linalg.LinAlgError("co-occurrences that are not positive semidefinite")
    weights: Floats = half.T
    for start in range(0, len(weights), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        block, above = weights[rows, rows], np.triu_indices(len(weights[rows]), 1)
        block[above] = block.T[above]
        weights[rows, rows.stop :] = weights[rows.stop :, rows].T
    weights /= -np.diag(weights)
    np.fill_diagonal(weights, 0.0)
    return weights


def ridge_of(sets: scipy.sparse.csr_array) -> float:
    """Return the ridge that suits sets, shape (users, items): 6 times the mean size where it is not 0."""
    return RIDGE * max(sets.nnz, 1) / max(int(np.count_nonzero(np.diff(sets.indptr))), 1)


def scores(sets: scipy.sparse.csr_array, weights: Floats) -> Floats:
    """Return X B, the scores of all items for the users of the sets, shape (users, items)."""
    return np.asarray(sets @ weights)
