"""What a total with Skellam noise costs: Renyi divergences, and the (epsilon, delta) that they imply.

A contribution is a vector of integers of L2 norm at most D; whoever takes part changes the total by so
much. Skellam noise of variance v per number bounds the Renyi divergence of every integer order a > 1 by

    a D^2 / (2 v) + min(((2 a - 1) D^2 + 6 D1) / (4 v^2), 3 D1 / (2 v))

(Agarwal, Kairouz and Liu [agarwal2021], Section 3), D1 being the L1 norm, which for integers is at
most D^2. With noise multiplier m = sqrt(v) / D, the last terms are at most ((2 a - 1) D^-2 + 6 D^-2) / (4
m^4) and 3 / (2 m^2). As a sum of m_t^-4 is at most the square of that of m_t^-2, several releases cost no
more than one with the multiplier (sum of m_t^-2)^-1/2.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dprec.secure_aggregation import DISTANCE

_ORDERS = np.unique(np.concatenate([np.arange(2, 129), np.geomspace(128, 1 << 40, 256).round()])).astype(
    np.int64
)
"""Orders of which the best is taken."""

_TABLE_SLACK = 2.0**44 * DISTANCE
"""Bound on what the tables of all shares of a run are off by in all: 2**44 draws."""

_SHARE_OF_SLACK = 2.0**-10
"""Part of delta that is set aside for it."""

_LARGEST = 2.0**40
"""Multiplier above which none is sought."""

LEAST_DELTA = 1e-15
"""The least delta for which that part is enough."""


def renyi_divergences(multiplier: float, norm: float, orders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return bounds on the Renyi divergences between totals with and without a user.

    Parameters
    ----------
    multiplier : float
        Standard deviation of the noise over the norm, above 0.
    norm : float
        Largest L2 norm of a contribution, at least 1.
    orders : ndarray of int64
        Above 1.
    """
    gaussian = orders / (2 * multiplier**2)
    near = ((2 * orders - 1) + 6) / (4 * norm**2 * multiplier**4)
    return gaussian + np.minimum(near, 3 / (2 * multiplier**2))


def skellam_epsilon(multiplier: float, norm: float, delta: float) -> float:
    """Return the epsilon of a release; infinite without noise.

    From Renyi divergences by Canonne, Kamath and Steinke [canonne2020], Proposition 12.

    Parameters
    ----------
    multiplier, norm : float
        See `renyi_divergences`.
    delta : float
        Above 0 and below 1.
    """
    if multiplier <= 0:
        return math.inf
    kept = delta * (1 - _SHARE_OF_SLACK)
    divergences = renyi_divergences(multiplier, norm, _ORDERS)
    spared = (math.log(1 / kept) - np.log(_ORDERS)) / (_ORDERS - 1) + np.log1p(-1 / _ORDERS)
    epsilon = max(0.0, float((divergences + spared).min()))
    # A distribution at a distance of x from each of two moves delta by (1 + e^epsilon) x.
    off = _TABLE_SLACK * (1 + math.exp(min(epsilon, 700.0)))
    return epsilon if off <= delta * _SHARE_OF_SLACK else math.inf


@lru_cache(maxsize=256)
def skellam_multiplier(epsilon: float, norm: float, delta: float) -> float:
    """Return the smallest multiplier, to nine digits, with which a release costs at most epsilon.

    It is infinite where one of 2**40 would not do.

    Parameters
    ----------
    epsilon : float
        Above 0.
    norm, delta : float
        See `skellam_epsilon`; delta is at least `LEAST_DELTA`.
    """
    low, high = 0.0, 1.0
    while skellam_epsilon(high, norm, delta) > epsilon:
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if skellam_epsilon(middle, norm, delta) <= epsilon else (middle, high)
    return high
