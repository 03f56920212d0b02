"""What Gaussian noise costs: one release of sensitivity 1, and the several that compose to one.

A release whose noise has ``m`` times its sensitivity as standard deviation is as easy to tell apart as two
normal distributions whose means are ``mu = 1 / m`` deviations apart. ChannelDraws that are chosen one after the
other, each from what came before, compose exactly: ``mu^2`` is the sum of theirs (Dong, Roth and Su
[dong2022], Corollary 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

_PRECISION = 1e-12
"""Relative error of a root; results are moved by as much to the side that costs more."""

_SMALLEST, _LARGEST = 1e-12, 1e6
"""Between these, in deviations, the distance of two means is sought."""


@dataclass(frozen=True, eq=False)
class NoisySum:
    """ChannelDraws about some users, with Gaussian noise."""

    distance: float
    """Of the two means with and without a user, in standard deviations, of all releases together."""
    users: NDArray[np.bool_]
    """Whom they are about; shape (users,)."""

    def losses(self, delta: float) -> NDArray[np.float64]:
        """Return what every user loses at a delta, shape (users,)."""
        return np.where(self.users, gaussian_epsilon(self.distance, delta), 0.0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of one release (Balle and Wang [balle2018], Theorem 8).

    Parameters
    ----------
    mu : float
        Distance of the means in standard deviations, above 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        From 0 to 1.
    """
    above = float(log_ndtr(mu / 2 - epsilon / mu))
    below = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(above) * -math.expm1(min(below - above, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon of one release at a delta, rounded up.

    Parameters
    ----------
    mu : float
        Distance of the means in standard deviations, at least 0; infinite without noise.
    delta : float
        Above 0 and below 1.
    """
    if math.isinf(mu):
        return math.inf
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    root = brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, most, rtol=_PRECISION)
    return float(root) * (1 + 2 * _PRECISION)


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest distance of two means, in standard deviations, that is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        Above 1e-12 and below 1.
    """
    root = brentq(
        lambda mu: gaussian_delta(mu, epsilon) - delta, _SMALLEST, _LARGEST, xtol=1e-15, rtol=_PRECISION
    )
    return float(root) * (1 - 2 * _PRECISION)
