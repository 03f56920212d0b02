"""Item-based prediction: an item's mean, moved by the user's ratings of similar items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_neighbors(similarities: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the k most similar candidates of each row, ties to the earlier; shape (rows, at most k)."""
    return np.argsort(-similarities, axis=1, kind="stable")[:, :k]


def item_based(
    bases: NDArray[np.float64],
    weights: NDArray[np.float64],
    deviations: NDArray[np.float64],
    shrinkage: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """Predict ratings from neighbours.

    r_bar_i + sum_j s_j (r_j - r_bar_j) / (sum_j |s_j| + shrinkage); just r_bar_i if the denominator
    is 0 (Guerraoui et al. [guerraoui2017], section 4.4, who have no shrinkage).

    Parameters
    ----------
    bases : ndarray of float64, shape (rows,)
        Means of the items whose ratings are predicted.
    weights, deviations : ndarray of float64, shape (rows, neighbours)
        Similarity to each neighbour, and the user's rating of it minus its mean.
    shrinkage : ndarray of float64, shape (rows,), or float
        Pulls predictions based on little similarity towards the item's mean.
    """
    totals = np.abs(weights).sum(axis=1) + shrinkage
    moves = (weights * deviations).sum(axis=1)
    predictions: NDArray[np.float64] = bases + np.divide(
        moves, totals, out=np.zeros_like(moves), where=totals > 0
    )
    return predictions
