"""What sums with Skellam noise cost: as much as with Gaussian noise of nearly the same variance.

A contribution is a vector of integers of L2 norm at most D, and every number of a sum has Skellam noise of
variance v. If that is fine, with a deviation of 512 steps or more, the sum is nearly one that could be made
of a sum with Gaussian noise of variance w by anybody: rounded, and with an independent integer added to each
number, which is 14 times a Skellam number of variance l. For that noise has the same moments if

    l 14^4 = v + 1 / 120,    w + 1 / 12 + l 14^2 = v.

So the sum costs what one with Gaussian noise of variance w does, 1 - w / v being less than 1 / 196 + 2^-20,
and what the two noises can be told apart by.

Let p and q be the probabilities of x under Skellam noise and under the other, and s the root of v. Their
cumulant generating functions differ by g, of which no power of z below the sixth is left, and where |z| < 1,
|g(z)| <= l (cosh 14 |z| - 1 - (14 |z|)^2 / 2 - (14 |z|)^4 / 24). Both follow from their transforms, each
integrated through the saddle point of p, at sinh a = x / v, from where that of p falls like exp(-v t^2 / 2).
Therefore, as far as 12 s,

    |log(p / q)| <= 1.03 * 14^2 / (720 s^4) E[(x^2 / v + T^2)^3],    T ~ N(0, 1).

At s = 512 that is at most 1.3e-5, and its mean square is at most (8.8e-10)^2, as E[(S^2 + T^2)^6] is 46,080
for normal S and T; with larger s both are less. Either noise is beyond 12 s with a probability below 1.1e-31.
Over the 2^32 numbers that all releases of a run have at most, each asked for after those before, the sum of
the logarithms is therefore above 2^-10, by Bernstein's inequality, with a probability below 2^-69. From the
one noise to the other and back, epsilon moves by 2^-9, and delta by (1 + e^epsilon) 2^-69 and a factor of
exp(2^-10).

Of any noise, coarser too, Renyi divergences bound the loss: that of an integer order a > 1 is at most

    a D^2 / (2 v) + min(((2 a - 1) D^2 + 6 D1) / (4 v^2), 3 D1 / (2 v))

(Agarwal, Kairouz and Liu [agarwal2021], Section 3), D1 being the L1 norm, which for integers is at most
D^2. With noise multiplier m = sqrt(v) / D, the last terms are at most ((2 a - 1) D^-2 + 6 D^-2) / (4 m^4)
and 3 / (2 m^2). As a sum of m_t^-4 is at most the square of that of m_t^-2, several releases cost no more
than one with the multiplier (sum of m_t^-2)^-1/2.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dprec.accounting.events import gaussian_epsilon
from dprec.arrays import Floats, Ints
from dprec.errors import check_least
from dprec.secure_aggregation import BEYOND_BOUNDS, DISTANCE

MOST_NUMBERS = 1 << 32
"""Of all releases of a run."""

MOST_DRAWS = 1 << 44
"""Of noise, by all devices for all releases of a run."""

FINE = 512.0
"""Least standard deviation of noise, in steps, that hides as Gaussian noise does."""

_GAUSSIAN_PART = 1 - 1 / 196 - 2.0**-20
"""Of its variance, that the Gaussian noise has."""

_NOT_BELOW = 1 + 2.0**-40
"""So that rounding makes nothing coarser than fine."""

_APART = 2.0**-9
"""What telling both apart adds to epsilon."""

_BEYOND_APART = 2.0**-69
"""Probability that they are further apart, in each direction."""

_ORDERS = np.unique(np.append(np.arange(2, 129), np.geomspace(128, 1 << 40, 256).round().astype(np.int64)))
"""Orders of which the best is taken."""

_SLACK = MOST_DRAWS * DISTANCE + MOST_NUMBERS * BEYOND_BOUNDS
"""Bound on how far a run's releases are from those that are accounted for: the tables of all draws, and
honest devices whose proofs fail, in 2**32 proofs.
"""

_SHARE_OF_SLACK = 2.0**-10
"""Part of delta that is set aside for it."""

LEAST_DELTA = 1e-15
"""The least delta for which that part is enough."""


def renyi_divergences(multiplier: float, norm: float, orders: Ints) -> Floats:
    """Return bounds on the Renyi divergences between totals with and without a user.

    ``multiplier``: standard deviation of the noise over the norm, above 0; ``norm``: largest L2 norm of a
    contribution, at least 1; ``orders``: above 1.
    """
    gaussian = orders / (2 * multiplier**2)
    excess = ((2 * orders - 1) + 6) / (4 * norm**2 * multiplier**4)
    return gaussian + np.minimum(excess, 3 / (2 * multiplier**2))


def skellam_epsilon(multiplier: float, norm: float, delta: float) -> float:
    """Return the epsilon of a release; infinite without noise.

    By Renyi divergences ([canonne2020], Proposition 12), and of fine noise by what Gaussian noise costs, if
    that is less.
    """
    if multiplier <= 0:
        return math.inf
    check_least("a noise multiplier", multiplier)
    return min(_by_divergences(multiplier, norm, delta), _by_gaussian(multiplier, norm, delta))


def _by_divergences(multiplier: float, norm: float, delta: float) -> float:
    divergences = renyi_divergences(multiplier, norm, _ORDERS)
    logarithm = math.log(1 / (delta * (1 - _SHARE_OF_SLACK)))
    conversion = (logarithm - np.log(_ORDERS)) / (_ORDERS - 1) + np.log1p(-1 / _ORDERS)
    return _with_slack(max(0.0, float((divergences + conversion).min())), _SLACK, delta)


def _by_gaussian(multiplier: float, norm: float, delta: float) -> float:
    if _NOT_BELOW * multiplier * norm < FINE:
        return math.inf
    distance = 1 / (multiplier * math.sqrt(_GAUSSIAN_PART))
    # exp(2^-10) times as much is still no more than what is not set aside.
    epsilon = gaussian_epsilon(distance, delta * (1 - _SHARE_OF_SLACK - _APART)) + _APART
    return _with_slack(epsilon, _SLACK + _BEYOND_APART, delta)


def _with_slack(epsilon: float, slack: float, delta: float) -> float:
    """Return epsilon, if what is set aside of delta covers the slack; infinity otherwise."""
    # A distribution at a distance of x from each of two moves delta by (1 + e^epsilon) x.
    moved = slack * (1 + math.exp(min(epsilon, 700.0)))
    return epsilon if moved <= delta * _SHARE_OF_SLACK else math.inf


@dataclass(frozen=True)
class SkellamLoss:
    """What releases with Skellam noise cost together; equal for those that compose with each other.

    The largest L2 norm of a contribution has at least `least_norm` steps of the grid, and as many as make the
    noise fine, if `most_norm` do.
    """

    least_norm: float
    most_norm: float

    def norm(self, distance: float) -> float:
        """Return the least norm of sums at a distance, above 0, together or each: it makes noise fine."""
        return min(self.most_norm, max(self.least_norm, _NOT_BELOW * FINE * distance))

    def __call__(self, distance: float, delta: float) -> float:
        """Return the epsilon of sums at a distance of so many standard deviations, above 0."""
        return skellam_epsilon(1 / distance, self.norm(distance), delta)


@lru_cache(maxsize=256)
def skellam_multiplier(epsilon: float, loss: SkellamLoss, delta: float) -> float:
    """Return the least multiplier that costs epsilon, to nine digits; infinite if 2**40 would not do."""
    low, high = 0.0, 1.0
    while loss(1 / high, delta) > epsilon:
        low, high = high, 2 * high
        if high > 2.0**40:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if loss(1 / middle, delta) <= epsilon else (middle, high)
    return high
