"""Laplace noise cut into the cells of a grid, as used by all mechanisms that add it.

The first and the last cell collect the tails. Cutting is post-processing and cannot weaken privacy.
For a cell outside the range of the inputs, the ratio of its probabilities under the two ends of the
range is exactly exp((high - low) / b), so a grid whose end cells lie outside the range wastes none of
the budget either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

TAIL = 1e-3
"""Probability that the noise on an end of the scale falls into the end cell beyond it."""


def wide_grid(
    low: float, high: float, b: float, symbols: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the inner edges and the values of a grid that covers nearly all of the noise.

    Parameters
    ----------
    low, high : float
        Range of the inputs.
    b : float
        Scale of the noise.
    symbols : int
        Number of cells, at least 3.

    Returns
    -------
    edges : ndarray, shape (symbols - 1,)
        They reach ``log(1 / (2 TAIL)) b`` beyond the inputs, evenly spaced.
    values : ndarray, shape (symbols,)
        The middle of each cell; for the two end cells the mean of the tail, which lies ``b`` beyond the
        last edge for any input, since the exponential distribution is memoryless.
    """
    reach = np.log(0.5 / TAIL) * b
    edges = np.linspace(low - reach, high + reach, symbols - 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return edges, np.concatenate([[edges[0] - b], middles, [edges[-1] + b]])


def cell_probabilities(edges: NDArray[np.float64], centres: ArrayLike, b: float) -> NDArray[np.float64]:
    """Return the probability that Laplace(centre, b) falls into each cell, shape (centres, cells).

    Parameters
    ----------
    edges : ndarray, shape (cells - 1,)
        Inner edges, ascending; the first and the last cell are unbounded.
    centres : array_like, shape (centres,)
    b : float
        Scale of the noise.
    """
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    offsets = (bounds[None, :] - np.asarray(centres, dtype=np.float64)[:, None]) / b
    left, right = offsets[:, :-1], offsets[:, 1:]
    # Each half of the density is integrated as an exponential times a width, not as a difference of
    # two cumulative probabilities, so that the ratios between rows keep full precision.
    below = np.exp(np.minimum(right, 0.0)) * -np.expm1(np.minimum(left, 0.0) - np.minimum(right, 0.0))
    above = np.exp(-np.maximum(left, 0.0)) * -np.expm1(np.maximum(left, 0.0) - np.maximum(right, 0.0))
    probabilities: NDArray[np.float64] = (below + above) / 2
    return probabilities
