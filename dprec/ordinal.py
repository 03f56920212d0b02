"""Ordinal probit: levels are a latent rating and normal noise, cut at points (McCullagh [mccullagh1980])."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

_INVERSE_SQRT_2_PI = float(1 / np.sqrt(2 * np.pi))


def cut_points(histogram: Sequence[float] | NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Return the points at which levels with given shares change.

    Parameters
    ----------
    histogram : sequence of float, length levels
        Shares of the levels over everybody, all above 0; they are normalised.
    variance : float
        Of the latent rating, whose distribution is Normal(0, variance); the noise on it has variance 1.

    Returns
    -------
    ndarray, shape (levels - 1,)
        Ascending.
    """
    shares = np.asarray(histogram, dtype=np.float64)
    below = np.cumsum(shares)[:-1] / shares.sum()
    points: NDArray[np.float64] = ndtri(below) * np.sqrt(1 + variance)
    return points


def level_probabilities(
    latent: NDArray[np.float64], cuts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr(level | latent rating) and its derivative by the latent rating.

    Parameters
    ----------
    latent : ndarray, shape (points,)
    cuts : ndarray, shape (levels - 1,)

    Returns
    -------
    probabilities, slopes : ndarray, shape (points, levels)
    """
    offsets = cuts[None, :] - latent[:, None]
    ends = np.ones((latent.size, 1))
    below = np.hstack([0 * ends, ndtr(offsets), ends])
    heights = np.hstack([0 * ends, np.exp(-(offsets**2) / 2) * _INVERSE_SQRT_2_PI, 0 * ends])
    return np.diff(below, axis=1), -np.diff(heights, axis=1)
