"""Links: from an entry of the hidden matrix to the probability of a +1, and back to likelihoods.

Both links are distribution functions of symmetric noise, so Pr(-1 | x) = h(-x). Everything is
computed from log h and from the ratio h'/h, neither of which loses precision in the tails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, expit, log_ndtr, ndtr

from dprec.errors import InputError

LinkKind = Literal["logistic", "gaussian"]

_GRID = 4001
"""Points at which suprema over an interval are evaluated; its ends and its middle are among them."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Link(ABC):
    """The probability h(x) of a +1 if the hidden matrix has the entry x (Li et al. [li2021], Eq. 1)."""

    @abstractmethod
    def probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h(x)."""

    @abstractmethod
    def log_probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log h(x); log(1 - h(x)) is the same at -x."""

    @abstractmethod
    def hazard(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h'(x) / h(x), the derivative of `log_probability`."""

    @abstractmethod
    def curvature(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivative of -log h(x); never negative."""

    @abstractmethod
    def expected_sign(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 2 h(x) - 1, the mean rating; its sign is that of x, however small x is."""

    @property
    @abstractmethod
    def largest_curvature(self) -> float:
        """Least upper bound of `curvature`."""

    def density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h'(x)."""
        return self.hazard(x) * self.probability(x)


@dataclass(frozen=True)
class Logistic(Link):
    """h(x) = 1 / (1 + e^-x)."""

    def probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h(x)."""
        return np.asarray(expit(x), dtype=np.float64)

    def log_probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log h(x)."""
        return -np.logaddexp(0.0, -np.asarray(x, dtype=np.float64))

    def hazard(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h'(x) / h(x) = h(-x)."""
        return self.probability(-np.asarray(x, dtype=np.float64))

    def curvature(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h(x) h(-x)."""
        return self.probability(x) * self.hazard(x)

    def expected_sign(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
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

    def probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h(x)."""
        return np.asarray(ndtr(np.asarray(x) / self.sigma), dtype=np.float64)

    def log_probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log h(x)."""
        return np.asarray(log_ndtr(np.asarray(x) / self.sigma), dtype=np.float64)

    def hazard(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h'(x) / h(x)."""
        # exp(-t^2/2) cancels against the scaled complementary error function, which never underflows.
        scaled = erfcx(-np.asarray(x) / (self.sigma * np.sqrt(2)))
        return np.asarray(np.sqrt(2 / np.pi) / (self.sigma * scaled), dtype=np.float64)

    def curvature(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return hazard (hazard + x / sigma^2)."""
        hazard = self.hazard(x)
        return np.maximum(hazard * (hazard + np.asarray(x) / self.sigma**2), 0.0)

    def expected_sign(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 2 h(x) - 1."""
        return np.asarray(erf(np.asarray(x) / (self.sigma * np.sqrt(2))), dtype=np.float64)

    @property
    def largest_curvature(self) -> float:
        """Approached as x goes to minus infinity, where -log h becomes a parabola."""
        return 1 / self.sigma**2


def link_of(kind: LinkKind, sigma: float) -> Link:
    """Return a link by its name; ``sigma`` is the Gaussian's.

    Raises
    ------
    InputError
        When there is no such link or sigma is not above 0.
    """
    if kind == "logistic":
        return Logistic()
    if kind != "gaussian":
        raise InputError("link", repr(kind), "logistic, gaussian")
    if not sigma > 0:
        raise InputError("sigma", repr(sigma), "greater than 0")
    return Gaussian(sigma)


def steepness(link: Link, alpha: float, flips: tuple[float, float] = (0.0, 0.0)) -> float:
    """Return L = sup over |x| <= alpha of |c'(x)| / (c(x) (1 - c(x))) (Li et al. [li2021], section 3.1).

    Parameters
    ----------
    alpha : float
        Largest entry of the hidden matrix, above 0.
    flips : tuple of float
        Probabilities p1 and p2 with which a +1 and a -1 are flipped; c(x) is then
        h(x) (1 - p1) + (1 - h(x)) p2, and h itself by default.

    Notes
    -----
    Without flips the supremum is attained at alpha; it is 1 for the logistic link.
    """
    slope, chance, other = _flipped(link, alpha, flips)
    return float(np.max(np.abs(slope) / np.maximum(chance * other, _TINY)))


def flatness(link: Link, alpha: float, flips: tuple[float, float] = (0.0, 0.0)) -> float:
    """Return beta = sup over |x| <= alpha of c(x) (1 - c(x)) / c'(x)^2 (Li et al. [li2021], section 3.1).

    See `steepness` for the parameters. For the logistic link without flips this is (1 + e^alpha)^2 /
    e^alpha, as in Davenport et al. [davenport2014]; the e^alpha of Li et al. [li2021], Appendix A,
    is its leading term. With flips of probability p it is at most beta + p (1 - p) / ((1 - 2 p) min
    h')^2; the bound in the appendix omits the h'.
    """
    slope, chance, other = _flipped(link, alpha, flips)
    with np.errstate(divide="ignore"):
        return float(np.max(chance * other / slope**2))


def _flipped(
    link: Link, alpha: float, flips: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return c', c and 1 - c on a grid over [-alpha, alpha]."""
    if not alpha > 0:
        raise InputError("alpha", repr(alpha), "greater than 0")
    p1, p2 = flips
    x = np.linspace(-alpha, alpha, _GRID)
    plus, minus = link.probability(x), link.probability(-x)
    return (1 - p1 - p2) * link.density(x), plus * (1 - p1) + minus * p2, plus * p1 + minus * (1 - p2)
