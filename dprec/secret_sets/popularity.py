"""How often items are rated, from a noisy sum: a prior that is estimated from all items together.

The count of item i is a_i times a ratio. The prior of the ratios, the same for all, is the distribution on a
grid under which the noisy counts are most likely (Kiefer and Wolfowitz [kiefer1956], by expectation and
maximization as in Jiang and Zhang [jiang2009]); log a_i is linear in what is public of the item.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.arrays import Floats

_POINTS = 80
_LEAST = 0.02
"""Counts on the grid, and the least of them above 0: a user with 2,500 ratings adds as much."""

_MOVES, _STEPS = 20, 5
"""How often the public part moves, and steps of expectation and maximization before it does."""

_PUBLIC_VARIANCE = 0.1
"""Prior variance of a coefficient of a public feature of variance 1."""

_LARGEST_STEP, _LARGEST = 0.5, 3.0
"""How far log a_i moves at once, and altogether."""

_LOGARITHM_FLOOR = 0.3
"""What is added to a count before its logarithm is taken, in units of a user with one rating."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Posterior of how often items are rated, in units of the sum."""

    grid: Floats
    """What the count of each item can be, shape (items, points)."""
    weights: Floats
    """How likely that is; shape (items, points)."""
    likelihoods: Floats
    """Logarithm of the likelihood of the noisy counts; shape (items, points)."""

    @classmethod
    def of(cls, noisy: Floats, deviation: float, public: Floats, users: int) -> Self:
        """Estimate the prior, and return the posterior.

        Parameters
        ----------
        noisy : ndarray, shape (items,)
        deviation : float
            Of the noise, above 0.
        public : ndarray, shape (items, features)
            With mean 0 and variance 1, or less.
        users : int
            Who contributed, 1 at most each.
        """
        largest = min(max(float(noisy.max(initial=0.0)), 4 * deviation), users / 1.5)
        ratios = np.append(
            0.0, np.geomspace(min(max(deviation / 20, _LEAST), largest / 2), 1.5 * largest, _POINTS)
        )
        coefficients, prior = np.zeros(public.shape[1]), np.full(ratios.size, 1 / ratios.size)
        for _ in range(_MOVES):
            grid = _factors(public, coefficients)[:, None] * ratios
            likelihoods = -0.5 * ((noisy[:, None] - grid) / deviation) ** 2
            likely = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
            for _ in range(_STEPS):
                weights = _posterior(likely, prior)
                # No ratio is impossible.
                prior = 0.999 * weights.mean(axis=0) + 0.001 / ratios.size
            coefficients = _moved(coefficients, public, noisy, deviation, ratios, weights)
        return cls(grid, weights, likelihoods)

    @property
    def means(self) -> Floats:
        """Shape (items,)."""
        return (self.weights * self.grid).sum(axis=1)

    @property
    def squares(self) -> Floats:
        """Means of the squares, shape (items,)."""
        return (self.weights * self.grid**2).sum(axis=1)

    @property
    def shares(self) -> Floats:
        """Shares of all ratings, in the counts' weights, shape (items,)."""
        means = np.maximum(self.means, np.finfo(float).tiny)
        return means / means.sum()

    @property
    def popularity(self) -> Floats:
        """Mean logarithm, with mean 0 over ratings; shape (items,).

        Its variance is the share of that of the logarithms that is known, so that what is regressed on noise
        is shrunk with it.
        """
        logarithms = np.log(self.grid + _LOGARITHM_FLOOR)
        means, shares = (self.weights * logarithms).sum(axis=1), self.shares
        centred = means - shares @ means
        unknown = (self.weights * (logarithms - means[:, None]) ** 2).sum(axis=1)
        return centred / np.sqrt(max(float(shares @ (centred**2 + unknown)), 1e-6))

    def given(self, linear: Floats, quadratic: Floats) -> Self:
        """Return the posterior given observations besides.

        They add ``linear * count - quadratic * count**2 / 2`` to the logarithm of the likelihood of each
        item's count; shapes (items,).
        """
        log_likelihoods = (
            self.likelihoods + linear[:, None] * self.grid - 0.5 * quadratic[:, None] * self.grid**2
        )
        likely = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
        weights = self.weights
        for _ in range(_STEPS):
            weights = _posterior(likely, weights.mean(axis=0))
        return replace(self, weights=weights)


def standardised(columns: Floats, shares: Floats, least: float = 1e-3) -> Floats:
    """Return columns with mean 0 and variance 1 over ratings, deviations below ``least`` aside."""
    centred = columns - shares @ columns
    return centred / np.maximum(np.sqrt(shares @ centred**2), least)


def _posterior(likely: Floats, prior: Floats) -> Floats:
    """Return how likely each point is, shape (items, points)."""
    weights = likely * prior
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _factors(public: Floats, coefficients: Floats) -> Floats:
    return np.exp(np.clip(public @ coefficients, -_LARGEST, _LARGEST))


def _moved(
    coefficients: Floats, public: Floats, noisy: Floats, deviation: float, ratios: Floats, weights: Floats
) -> Floats:
    """Take a step of Gauss and Newton towards the likeliest coefficients of the public features."""
    factors = _factors(public, coefficients)
    expected, squared = factors * (weights @ ratios), factors**2 * (weights @ ratios**2)
    ridge = np.eye(coefficients.size) / _PUBLIC_VARIANCE
    system = (public * (squared / deviation**2)[:, None]).T @ public + ridge
    slopes = public.T @ ((noisy * expected - squared) / deviation**2) - coefficients / _PUBLIC_VARIANCE
    step = np.linalg.solve(system, slopes)
    farthest = float(np.abs(public @ step).max(initial=0.0))
    return coefficients + step * min(1.0, _LARGEST_STEP / max(farthest, np.finfo(float).tiny))
