"""The privacy loss distribution of a channel, on a grid, for the worst of all pairs of its inputs.

A symbol z that is sent for input x tells log(Q[x, z] / Q[x', z]) against x'; for z drawn given x, this is
the privacy loss (Sommer et al. [sommer2019]). A pair of distributions *dominates* a channel if it is at least
as easy to tell apart as any two rows. Many draws from the channel are then at most as easy to tell apart as
as many draws from the pair, also if each depends on what came before (Zhu, Dong and Wang [zhu2022], Theorem
10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.fft import rfft

from dprec.channel import Channel

POINTS = 128
"""Points of the grid from 0 to epsilon: composed losses are less than 1e-4 above those of a fine grid."""


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    """Pr(privacy loss = j step) for one draw from a dominating pair."""

    step: float
    """Distance of two points of the grid, above 0, a natural logarithm."""
    masses: NDArray[np.float64]
    """The probabilities, for j from -points to points; shape (2 points + 1,)."""

    @classmethod
    def of(cls, channel: Channel, step: float | None = None) -> PrivacyLossDistribution:
        """Return the distribution for one draw from a channel.

        The divergence h(a) = max over x, x' of sum over z of max(0, Q[x, z] - a Q[x', z]) is convex in a, so
        a polygon with its corners on the curve, at a = exp(j step), is never below it. It is the
        divergence of a pair whose losses lie on the grid (Doroshenko et al. [doroshenko2022], section 4).

        Parameters
        ----------
        channel : Channel
            With an epsilon above 0 and below infinity.
        step : float, optional
            By default ``channel.epsilon / POINTS``.
        """
        step = step or channel.epsilon / POINTS
        points = points_up_to(channel.epsilon, step)
        return cls.with_divergences(step, _divergences(channel, step, points))

    @classmethod
    def with_divergences(cls, step: float, divergences: NDArray[np.float64]) -> PrivacyLossDistribution:
        """Return the distribution of a pair whose divergences are not below those given.

        Parameters
        ----------
        divergences : ndarray of float64, shape (points + 1,)
            Bounds on h(a) at a = exp(j step), whichever of the two is the first; the last one is 0.
        """
        ratios = np.exp(step * np.arange(divergences.size))
        slopes = np.diff(divergences) / np.diff(ratios)
        # Both orders of every pair count, so -j has under the one the mass that j has under the other.
        under_other = np.maximum(0.0, np.diff(slopes, append=0.0))
        above = ratios[1:] * under_other
        middle = max(0.0, 1.0 - float(above.sum() + under_other.sum()))
        return cls(step, np.concatenate([under_other[::-1], [middle], above]))

    @property
    def points(self) -> int:
        """Largest loss, in steps."""
        return self.masses.size // 2

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """The points of the grid, shape (2 points + 1,)."""
        return self.step * np.arange(-self.points, self.points + 1, dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Variance of the loss."""
        return float(self.masses @ self.losses**2 - (self.masses @ self.losses) ** 2)

    @cached_property
    def _spectra(self) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        return {}

    def spectrum(self, length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the Fourier transform of the masses, wound around a circle of ``length`` points.

        Returns
        -------
        log_moduli, angles : ndarray of float64, shape (length // 2 + 1,)
        """
        if length not in self._spectra:
            places = np.arange(-self.points, self.points + 1) % length
            values = rfft(np.bincount(places, weights=self.masses, minlength=length))
            with np.errstate(divide="ignore"):
                self._spectra[length] = np.log(np.abs(values)), np.angle(values)
        return self._spectra[length]

    def log_moments(self, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log E[exp(t loss)] for every exponent t."""
        shift = np.abs(exponents) * self.losses[-1]
        moments = np.exp(np.outer(exponents, self.losses) - shift[:, None]) @ self.masses
        return np.asarray(np.log(moments) + shift)


def points_up_to(epsilon: float, step: float) -> int:
    """Return how many steps reach epsilon, at least 1."""
    return max(1, math.ceil(epsilon / step * (1 - 1e-12)))


def _divergences(channel: Channel, step: float, points: int) -> NDArray[np.float64]:
    """Return h at a = exp(j step) for j from 0 to ``points``; see `PrivacyLossDistribution.of`."""
    rows = channel.probabilities[:, channel.weights.max(axis=0) > 0]
    logs, inputs, width = np.log(rows), len(rows), points + 2
    ratios = np.exp(step * np.arange(points + 1))
    first = 1 + width * np.arange(inputs)[:, None]
    largest = np.zeros(points + 1)
    for row, log in zip(rows, logs, strict=True):
        # Symbols with a loss below 0 count at none of the points; they are put before the first.
        places = (np.clip(np.floor((log - logs) / step), -1, points).astype(np.int64) + first).ravel()
        own, other = (
            np.bincount(places, weights=side.ravel(), minlength=inputs * width).reshape(inputs, width)
            for side in (np.broadcast_to(row, rows.shape), rows)
        )
        own, other = (side[:, :0:-1].cumsum(axis=1)[:, ::-1] for side in (own, other))
        largest = np.maximum(largest, (own - ratios * other).max(axis=0))
    largest[-1] = 0.0
    return largest
