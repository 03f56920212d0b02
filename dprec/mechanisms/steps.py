"""Mechanisms whose noise has a density of steps, sent as the step that it falls on.

Where the density is the same for every rating, the place within a step tells nothing about the rating. So
the device sends the number of the step, and its middle has the expectation of the noisy rating itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.ratings import RatingScale

MOST_EPSILON = 20.0
"""Loss beyond which steps get too narrow for floating point; the rest of a budget stays unspent."""

_SAME = 1e-12
"""Distance, relative to the whole range, below which two edges count as one."""


def edges_of(*places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return all places in ascending order, those that differ by rounding only once."""
    edges = np.unique(np.concatenate([np.ravel(place) for place in places]))
    apart = np.diff(edges) > _SAME * (edges[-1] - edges[0])
    kept: NDArray[np.float64] = edges[np.append(True, apart)]
    return kept


def wave(
    left: NDArray[np.float64], right: NDArray[np.float64], low: float, high: float, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps of a density that is e^epsilon times as high within an interval as outside.

    Parameters
    ----------
    left, right : ndarray, shape (inputs,)
        Ends of each input's interval; all are equally long and lie within the range.
    low, high : float
        The range of the noisy value.

    Returns
    -------
    probabilities : ndarray, shape (inputs, steps)
        Rows sum to 1.
    middles : ndarray, shape (steps,)
    """
    edges = edges_of(left, right, np.array([low, high]))
    middles = (edges[1:] + edges[:-1]) / 2
    inside = (middles > left[:, None]) & (middles < right[:, None])
    # Rounding makes the intervals differ in length; what that would cost is taken from epsilon.
    lengths = inside @ np.diff(edges)
    spent = epsilon - np.log(lengths.max() / lengths.min())
    weights = np.where(inside, 1.0, np.exp(-spent)) * np.diff(edges)
    return weights / weights.sum(axis=1, keepdims=True), middles


def on_interval(scale: RatingScale, low: float, high: float) -> NDArray[np.float64]:
    """Map the levels of a scale to an interval, linearly, shape (levels,)."""
    shares = (scale.values - scale.low) / (scale.high - scale.low)
    mapped: NDArray[np.float64] = low + (high - low) * shares
    return mapped


def on_scale(scale: RatingScale, values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Map values from an interval back to a scale; the inverse of `on_interval`, also beyond its ends."""
    mapped: NDArray[np.float64] = scale.low + (scale.high - scale.low) * (values - low) / (high - low)
    return mapped
