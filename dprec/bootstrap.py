"""Intervals over users: how far a figure would move with other users of the same population.

The users are drawn again with replacement, all ratings of a user together, since they share the user's
profile and noise. Figures that are compared use the same draws, so what makes a user hard to predict for
both does not count (Efron and Tibshirani [efron1993]; chapter 13 has the percentile interval).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import generator

CONFIDENCE = 0.95
"""Probability with which an interval is meant to hold."""

REPLICATES = 2000
"""Times that the users are drawn again: the ends of an interval are then off by a few hundredths of it."""

_SEED = 0
_CELLS_AT_ONCE = 1 << 22


def resampled_sums(sums: NDArray[np.float64], replicates: int = REPLICATES) -> NDArray[np.float64]:
    """Return the totals over users who are drawn again, shape (replicates, columns).

    Parameters
    ----------
    sums : ndarray of float64, shape (users, columns)
        What each user adds to each total.

    Notes
    -----
    The draws depend on the number of users alone, so totals of two calls are paired.
    """
    users = len(sums)
    random, totals = generator(_SEED, "users drawn again"), np.empty((replicates, sums.shape[1]))
    at_once = max(1, _CELLS_AT_ONCE // users)
    for start in range(0, replicates, at_once):
        count = min(at_once, replicates - start)
        drawn = random.integers(0, users, size=(count, users)) + np.arange(count)[:, None] * users
        times = np.bincount(drawn.ravel(), minlength=count * users).reshape(count, users)
        totals[start : start + count] = times.astype(np.float64) @ sums
    return totals


def interval(replicated: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the middle 95 % of the replicates (the percentile interval).

    Parameters
    ----------
    replicated : ndarray of float64, shape (replicates,)
        A replicate without a value, NaN, is left out.
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(replicated, [tail, 1 - tail])
    return float(low), float(high)
