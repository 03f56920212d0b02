"""The exact privacy loss between every two levels of a rating, from a mechanism's matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pairwise_losses(weights: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the largest log ratio of every two rows over all symbols, shape (levels, levels).

    Parameters
    ----------
    weights : ndarray of uint64, shape (levels, symbols)
        Whole draws that turn each level into each symbol.

    Returns
    -------
    ndarray of float64
        Entry (x, y) is the largest log of row x over row y; infinite if a symbol is possible for x alone.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(weights.astype(np.float64))
    losses = np.empty((len(logs), len(logs)))
    for level, row in enumerate(logs):
        possible = np.isfinite(row)
        losses[level] = (row[possible] - logs[:, possible]).max(axis=1)
    return losses


def worst_pair(weights: NDArray[np.uint64]) -> tuple[float, tuple[int, int]]:
    """Return the largest loss between two levels, and the two rows, ascending."""
    losses = pairwise_losses(weights)
    one, other = np.unravel_index(int(np.argmax(losses)), losses.shape)
    return float(losses[one, other]), (int(min(one, other)), int(max(one, other)))
