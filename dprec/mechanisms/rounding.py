"""Rounding of a matrix of probabilities to integer weights that keep to a budget."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import DRAWS, most_draws

_KEPT = 4096
"""Draws by which floating-point rounding may miss the sum of a row, and more."""

_TOLERANCE = 1e-7
"""Amount by which floating-point errors may make a matrix exceed its budget before it is rounded."""


def rounded_to_draws(probabilities: NDArray[np.float64], epsilon: float) -> NDArray[np.int64]:
    """Return integer weights with nearly the given probabilities, whose exact loss is at most epsilon.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (inputs, symbols)
        Non-negative; rows are normalised.
    epsilon : float
        Infinite if nothing is promised: symbols that cannot occur keep 0 draws. With a promise, a symbol
        that one input can send has a draw for every input.

    Returns
    -------
    ndarray of int64, shape (inputs, symbols)
        Rows sum to `DRAWS`.

    Raises
    ------
    ValueError
        When the probabilities cost more than epsilon, or integer weights are too coarse for so small an one.
    """
    used = (probabilities.max(axis=0) > 0) & math.isfinite(epsilon)
    rows = np.maximum(probabilities / probabilities.sum(axis=1, keepdims=True), used / DRAWS)
    _check(rows[:, rows.max(axis=0) > 0], epsilon)
    # Some draws are kept back, so that no row sums to more than `DRAWS`.
    total = DRAWS - _KEPT - 4 * rows.shape[1]
    # The smallest number of a column is rounded up and one more, so that the largest can be what it should.
    fewest = (np.ceil(rows.min(axis=0) * total).astype(np.int64) + 1) * used
    most = most_draws(fewest, epsilon)
    return _filled(np.clip(np.floor(rows * total).astype(np.int64), fewest, most), most)


def _check(rows: NDArray[np.float64], epsilon: float) -> None:
    if math.isfinite(epsilon):
        loss = float((np.log(rows.max(axis=0)) - np.log(rows.min(axis=0))).max())
        if loss > epsilon + _TOLERANCE:
            raise ValueError(f"probabilities that cost {loss:.9g}, at epsilon {epsilon:.9g}")


def _filled(draws: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the draws left over to the likeliest symbols that have room, where they matter least."""
    draws, inputs = draws.copy(), np.arange(len(draws))
    while np.any(left := DRAWS - draws.sum(axis=1)):
        likeliest = np.where(draws < most, draws, -1).argmax(axis=1)
        added = np.minimum(left, most[likeliest] - draws[inputs, likeliest])
        if np.any((added == 0) & (left > 0)):
            raise ValueError("so small an epsilon that integer weights are too coarse for it")
        draws[inputs, likeliest] += added
    return draws
