"""What sums with noise cost: Gaussian DP, and Skellam noise by Renyi divergences.

A release whose Gaussian noise has ``m`` times its sensitivity as standard deviation is as easy to tell
apart as two normal distributions whose means are ``mu = 1 / m`` deviations apart. Releases that are chosen
one after the other, each from what came before, compose exactly: ``mu^2`` is the sum of theirs (Dong, Roth
and Su [dong2022], Corollary 3.3).

A contribution to a sum with Skellam noise is a vector of integers of L2 norm at most D; whoever takes part
changes the sum by so much. Noise of variance v per number bounds the Renyi divergence of every integer
order a > 1 by

    a D^2 / (2 v) + min(((2 a - 1) D^2 + 6 D1) / (4 v^2), 3 D1 / (2 v))

(Agarwal, Kairouz and Liu [agarwal2021], Section 3), D1 being the L1 norm, which for integers is at most
D^2. With noise multiplier m = sqrt(v) / D, the last terms are at most ((2 a - 1) D^-2 + 6 D^-2) / (4 m^4)
and 3 / (2 m^2). As a sum of m_t^-4 is at most the square of that of m_t^-2, several releases cost no more
than one with the multiplier (sum of m_t^-2)^-1/2.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dprec.arrays import Floats, Ints
from dprec.secure_aggregation import DISTANCE

_PRECISION = 1e-12
"""Relative error of a root; results are moved by as much to the side that costs more."""

_NEAREST, _FURTHEST = 1e-12, 1e6
"""Between these, in deviations, the distance of two means is sought."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of one release, for mu above 0 (Balle and Wang [balle2018], Theorem 8)."""
    above = float(log_ndtr(mu / 2 - epsilon / mu))
    below = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(above) * -math.expm1(min(below - above, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon of one release at a delta, rounded up; infinite without noise."""
    if math.isinf(mu):
        return math.inf
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    root = brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, most, rtol=_PRECISION)
    return float(root) * (1 + 2 * _PRECISION)


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-private, for a delta from 1e-12 to 1."""
    root = brentq(
        lambda mu: gaussian_delta(mu, epsilon) - delta, _NEAREST, _FURTHEST, xtol=1e-15, rtol=_PRECISION
    )
    return float(root) * (1 - 2 * _PRECISION)


_ORDERS = np.unique(np.concatenate([np.arange(2, 129), np.geomspace(128, 1 << 40, 256).round()])).astype(
    np.int64
)
"""Orders of which the best is taken."""

_SLACK_OF_TABLES = 2.0**44 * DISTANCE
"""Bound on what the tables of all shares of a run are off by in all: 2**44 draws."""

_SHARE_OF_SLACK = 2.0**-10
"""Part of delta that is set aside for it."""

_LARGEST_MULTIPLIER = 2.0**40
"""Multiplier above which none is sought."""

LEAST_DELTA = 1e-15
"""The least delta for which that part is enough."""


def renyi_divergences(multiplier: float, norm: float, orders: Ints) -> Floats:
    """Return bounds on the Renyi divergences between totals with and without a user.

    ``multiplier``: standard deviation of the noise over the norm, above 0; ``norm``: largest L2 norm of a
    contribution, at least 1; ``orders``: above 1.
    """
    gaussian = orders / (2 * multiplier**2)
    near = ((2 * orders - 1) + 6) / (4 * norm**2 * multiplier**4)
    return gaussian + np.minimum(near, 3 / (2 * multiplier**2))


def skellam_epsilon(multiplier: float, norm: float, delta: float) -> float:
    """Return the epsilon of a release; infinite without noise ([canonne2020], Proposition 12)."""
    if multiplier <= 0:
        return math.inf
    kept = delta * (1 - _SHARE_OF_SLACK)
    divergences = renyi_divergences(multiplier, norm, _ORDERS)
    spared = (math.log(1 / kept) - np.log(_ORDERS)) / (_ORDERS - 1) + np.log1p(-1 / _ORDERS)
    epsilon = max(0.0, float((divergences + spared).min()))
    # A distribution at a distance of x from each of two moves delta by (1 + e^epsilon) x.
    off = _SLACK_OF_TABLES * (1 + math.exp(min(epsilon, 700.0)))
    return epsilon if off <= delta * _SHARE_OF_SLACK else math.inf


@lru_cache(maxsize=256)
def skellam_multiplier(epsilon: float, norm: float, delta: float) -> float:
    """Return the least multiplier that costs epsilon, to nine digits; infinite if 2**40 would not do."""
    low, high = 0.0, 1.0
    while skellam_epsilon(high, norm, delta) > epsilon:
        low, high = high, 2 * high
        if high > _LARGEST_MULTIPLIER:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if skellam_epsilon(middle, norm, delta) <= epsilon else (middle, high)
    return high
