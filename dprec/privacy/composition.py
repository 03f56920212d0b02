"""What many draws tell together: the sum of their privacy losses, and the (epsilon, delta) that follow.

The distribution of the sum is a convolution, found by fast Fourier transform (Koskela et al.
[koskela2020]). All errors are counted as delta, so that epsilon is never below the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len

from dprec.accounting import PrivacyLossDistribution
from dprec.accounting.pld import POINTS
from dprec.channel import Channel

TAIL = 1e-13
"""Mass that may lie beyond either end of the window in which the sum is found."""

EXPONENTS = np.geomspace(0.25, 4.0, 33)
"""Where Chernoff's bound is tried, as multiples of what suits a normal distribution."""

NEGLIGIBLE = -60.0
"""Logarithm of the modulus below which a frequency is left out."""

_FINEST = 32 * POINTS
"""Most points of a grid from 0 to the largest epsilon of several channels."""


@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """The distribution of a sum of privacy losses."""

    losses: NDArray[np.float64]
    masses: NDArray[np.float64]
    """Losses, evenly spaced and ascending, and their probabilities; shape (points,)."""
    error: float
    """Most by which the probability of a range of losses can be too small."""
    largest: float
    """Sum of the epsilons, which the loss cannot exceed."""

    @classmethod
    def of_transform(
        cls, masses: NDArray[np.float64], step: float, first: int, count: int, points: int
    ) -> ComposedLoss:
        """Return the sum whose distribution was found by a Fourier transform.

        Parameters
        ----------
        masses : ndarray of float64, shape (length,)
            As transformed back: of the losses j step, j modulo the length.
        first : int
            The least j.
        count, points : int
            Losses that were added up, and the most that their sum can be, in steps.
        """
        length = masses.size
        inside: NDArray[np.float64] = np.maximum(0.0, np.roll(masses, -(first % length)))
        # The transform of each draw has relative errors of a few units in the last place, which add up.
        rounding = np.finfo(np.float64).eps * count * math.log2(2 * length) * math.sqrt(length)
        error = TAIL + rounding * math.sqrt(float((inside**2).sum()))
        return cls(step * (first + np.arange(length, dtype=np.float64)), inside, error, step * points)

    def delta(self, epsilon: float) -> float:
        """Return a delta with which an epsilon holds: E[max(0, 1 - exp(epsilon - loss))]."""
        if epsilon >= self.largest:
            return 0.0
        above = self.losses > epsilon
        gains = -np.expm1(epsilon - self.losses[above])
        return min(1.0, float(self.masses[above] @ gains) + self.error)

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that holds with a delta above 0: the least, but for `error`."""
        beyond = self.masses[::-1].cumsum()[::-1] + self.error
        # A loss of epsilon + 1 or more counts at least 1 - 1/e, so that epsilon is at least as large as this.
        step = self.losses[1] - self.losses[0]
        small = int(np.count_nonzero(beyond * -math.expm1(-1) > delta))
        start = max(0.0, self.losses[0] + (small - 1) * step - 1)
        first = int(np.searchsorted(self.losses, start))
        losses, beyond = self.losses[first:], beyond[first:]
        # Up to the point j, and from the one before: delta = Pr(loss >= j) - exp(epsilon) other[j].
        scaled = (self.masses[first:] * np.exp(losses[0] - losses))[::-1].cumsum()[::-1]
        holds = beyond - np.exp(losses - losses[0]) * scaled <= delta
        place = int(np.argmax(holds))
        if not holds[place]:
            return self.largest
        excess = beyond[place] - delta
        between = losses[0] + math.log(excess / scaled[place]) if excess > 0 else start
        return float(min(self.largest, max(start, between)))


def compose(draws: Sequence[tuple[PrivacyLossDistribution, int]]) -> ComposedLoss:
    """Return the distribution of the loss of independent draws.

    Parameters
    ----------
    draws : sequence of (PrivacyLossDistribution, int)
        What is drawn from, all on the same grid, and how often, at least once.
    """
    step = draws[0][0].step
    points = sum(times * one.points for one, times in draws)
    first, last = _window(draws, points)
    length = next_fast_len(last - first + 1, real=True)
    masses = irfft(_spectrum(draws, length), length)
    return ComposedLoss.of_transform(masses, step, first, sum(times for _, times in draws), points)


def _spectrum(draws: Sequence[tuple[PrivacyLossDistribution, int]], length: int) -> NDArray[np.complex128]:
    """Return the Fourier transform of the sum: the product of those of the draws."""
    log_moduli, angles = (
        np.sum([times * one.spectrum(length)[part] for one, times in draws], axis=0) for part in (0, 1)
    )
    product = np.zeros(length // 2 + 1, dtype=np.complex128)
    # Nearly all of it is too small to count beside the rounding errors.
    seen = log_moduli > NEGLIGIBLE
    product[seen] = np.exp(log_moduli[seen] + 1j * angles[seen])
    return product


def _window(draws: Sequence[tuple[PrivacyLossDistribution, int]], points: int) -> tuple[int, int]:
    """Return the first and the last point of a window that the sum leaves with `TAIL` on either side."""
    step = draws[0][0].step
    variance = sum(times * one.variance for one, times in draws)
    exponents = EXPONENTS * math.sqrt(-2 * math.log(TAIL) / variance)
    # Pr(loss >= x) <= E[exp(t loss)] exp(-t x) for every t above 0 (Chernoff).
    ends = [
        np.min(
            (sum(times * one.log_moments(sign * exponents) for one, times in draws) - math.log(TAIL))
            / exponents
        )
        for sign in (-1, 1)
    ]
    return max(-points, math.floor(-ends[0] / step)), min(points, math.ceil(ends[1] / step))


def common_grid(channels: Sequence[Channel]) -> list[PrivacyLossDistribution]:
    """Return the loss distributions of channels on one grid.

    The grid suits the least private of them, and is coarse for those that are more than 32 times as private.

    Parameters
    ----------
    channels : sequence of Channel
        At least one, each with an epsilon above 0 and below infinity.
    """
    epsilons = [channel.epsilon for channel in channels]
    step = max(min(epsilons) / POINTS, max(epsilons) / _FINEST)
    return [PrivacyLossDistribution.of(channel, step) for channel in channels]
