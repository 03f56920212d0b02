"""EASE: an item-item model without hidden factors, in closed form (Steck [steck2019]).

A user's score of an item is the sum of the weights B from the user's own items to it. B minimises
||X - X B||^2 + ridge ||B||^2 subject to diag(B) = 0, for the sets X.
"""

from __future__ import annotations

import numpy as np
import scipy

from dprec.arrays import Floats


def co_occurrences(sets: scipy.sparse.csr_array) -> Floats:
    """Return how many users have both items of every pair, G = X^T X, shape (items, items)."""
    return np.asarray((sets.T @ sets).todense(), dtype=np.float64)


def ease(gram: Floats, ridge: float) -> Floats:
    """Return the weights B, shape (items, items).

    With P = (G + ridge I)^-1: B_ij = -P_ij / P_jj, and 0 on the diagonal [steck2019].

    Parameters
    ----------
    gram : ndarray of float64, shape (items, items)
        G = X^T X, or an estimate of it that is positive semidefinite.
    ridge : float
        Above 0.
    """
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += ridge
    inverse = scipy.linalg.cho_solve(
        scipy.linalg.cho_factor(shifted, overwrite_a=True), np.eye(len(gram)), overwrite_b=True
    )
    weights: Floats = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def scores(sets: scipy.sparse.csr_array, weights: Floats) -> Floats:
    """Return X B, the scores of all items for the users of the sets, shape (users, items)."""
    return np.asarray(sets @ weights)
