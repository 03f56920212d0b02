"""Links: from an entry of the hidden matrix to the probability of a +1, and back to likelihoods.

Both links are distribution functions of symmetric noise, so Pr(-1 | x) = h(-x). Everything is
computed from log h and from the ratio h'/h, neither of which loses precision in the tails.

Entries are rounded to fixed levels on [-C, C], so that noise and clamping together are a channel
with an exact privacy loss, as for ratings.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import erf, erfcx, expit, log_ndtr, ndtr

from dprec.arrays import Floats, Uint8s
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.mechanisms.laplace import cell_probabilities, wide_grid

LinkKind = Literal["logistic", "gaussian"]

_GRID = 4001
"""Points at which suprema over an interval are evaluated; its ends and its middle are among them."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Link(ABC):
    """The probability h(x) of a +1 if the hidden matrix has the entry x (Li et al. [li2021], Eq. 1)."""

    @abstractmethod
    def probability(self, x: Floats) -> Floats:
        """Return h(x)."""

    @abstractmethod
    def log_probability(self, x: Floats) -> Floats:
        """Return log h(x); log(1 - h(x)) is the same at -x."""

    @abstractmethod
    def hazard(self, x: Floats) -> Floats:
        """Return h'(x) / h(x), the derivative of `log_probability`."""

    @abstractmethod
    def curvature(self, x: Floats) -> Floats:
        """Return the second derivative of -log h(x); never negative."""

    @abstractmethod
    def expected_sign(self, x: Floats) -> Floats:
        """Return 2 h(x) - 1, the mean rating; its sign is that of x, however small x is."""

    @property
    @abstractmethod
    def largest_curvature(self) -> float:
        """Least upper bound of `curvature`."""

    def density(self, x: Floats) -> Floats:
        """Return h'(x)."""
        return self.hazard(x) * self.probability(x)


@dataclass(frozen=True)
class Logistic(Link):
    """h(x) = 1 / (1 + e^-x)."""

    def probability(self, x: Floats) -> Floats:
        """Return h(x)."""
        return np.asarray(expit(x), dtype=np.float64)

    def log_probability(self, x: Floats) -> Floats:
        """Return log h(x)."""
        return -np.logaddexp(0.0, -np.asarray(x, dtype=np.float64))

    def hazard(self, x: Floats) -> Floats:
        """Return h'(x) / h(x) = h(-x)."""
        return self.probability(-np.asarray(x, dtype=np.float64))

    def curvature(self, x: Floats) -> Floats:
        """Return h(x) h(-x)."""
        return self.probability(x) * self.hazard(x)

    def expected_sign(self, x: Floats) -> Floats:
        """Return 2 h(x) - 1."""
        return np.tanh(np.asarray(x, dtype=np.float64) / 2)

    @property
    def largest_curvature(self) -> float:
        """Attained at 0."""
        return 0.25


@dataclass(frozen=True)
class Gaussian(Link):
    """h(x) = Phi(x / sigma), the probit link."""

    sigma: float = 1.0
    """Standard deviation of the noise from which the signs arise, above 0."""

    def probability(self, x: Floats) -> Floats:
        """Return h(x)."""
        return np.asarray(ndtr(np.asarray(x) / self.sigma), dtype=np.float64)

    def log_probability(self, x: Floats) -> Floats:
        """Return log h(x)."""
        return np.asarray(log_ndtr(np.asarray(x) / self.sigma), dtype=np.float64)

    def hazard(self, x: Floats) -> Floats:
        """Return h'(x) / h(x)."""
        # exp(-t^2/2) cancels against the scaled complementary error function, which never underflows.
        scaled = erfcx(-np.asarray(x) / (self.sigma * np.sqrt(2)))
        return np.asarray(np.sqrt(2 / np.pi) / (self.sigma * scaled), dtype=np.float64)

    def curvature(self, x: Floats) -> Floats:
        """Return hazard (hazard + x / sigma^2)."""
        hazard = self.hazard(x)
        return np.maximum(hazard * (hazard + np.asarray(x) / self.sigma**2), 0.0)

    def expected_sign(self, x: Floats) -> Floats:
        """Return 2 h(x) - 1."""
        return np.asarray(erf(np.asarray(x) / (self.sigma * np.sqrt(2))), dtype=np.float64)

    @property
    def largest_curvature(self) -> float:
        """Approached as x goes to minus infinity, where -log h becomes a parabola."""
        return 1 / self.sigma**2


def link_of(kind: LinkKind, sigma: float) -> Link:
    """Return a link by its name; raises InputError for another, or a sigma that is not above 0."""
    if kind == "logistic":
        return Logistic()
    if kind != "gaussian":
        raise InputError("link", repr(kind), "logistic, gaussian")
    if not sigma > 0:
        raise InputError("sigma", repr(sigma), "greater than 0")
    return Gaussian(sigma)


def steepness(link: Link, alpha: float) -> float:
    """Return L = sup over |x| <= alpha of |h'(x)| / (h(x) (1 - h(x))) (Li et al. [li2021], section 3.1).

    The supremum is attained at alpha; it is 1 for the logistic link.
    """
    if not alpha > 0:
        raise InputError("alpha", repr(alpha), "greater than 0")
    x = np.linspace(-alpha, alpha, _GRID)
    chances = link.probability(x) * link.probability(-x)
    return float(np.max(np.abs(link.density(x)) / np.maximum(chances, _TINY)))


_LEVELS = 129
"""Levels C / 64 apart: far below the noise of any budget that protects anything."""


def slope_channel(clamp: float, symbols: int, epsilon: float) -> Channel:
    """Return the channel of one gradient entry at the budget of one round.

    Laplace noise of scale 2 C / epsilon, where epsilon is a K-th of the whole budget: the 2 C K / epsilon of
    Li et al. [li2021], section 4.3, in terms of the whole. Cut into cells, its loss is exactly epsilon.
    """
    levels = np.linspace(-clamp, clamp, _LEVELS)
    b = 2 * clamp / epsilon
    edges, values = wide_grid(-clamp, clamp, b, symbols)
    return Channel.from_probabilities(cell_probabilities(edges, levels, b), levels, values, epsilon)


def levels_of(slopes: Floats, clamp: float) -> Uint8s:
    """Return the input level, from 1, that stands for each entry."""
    inside = np.clip(slopes, -clamp, clamp)
    return (np.rint((inside / clamp + 1) * ((_LEVELS - 1) / 2)) + 1).astype(np.uint8)
