"""Laplace noise on a grid: clamped, redrawn until it stays on the scale, or as it is.

The pmf of bounded noise is proportional to the density at the points of the grid, both ends included; of
unbounded noise, each cell integrates the density, and the cells at the ends collect the tails.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.published_noise import interval_probabilities, least_scale
from dprec.ratings import RatingScale

TAIL = 1e-3
"""Probability that the noise on an end of the scale falls into the end cell beyond it."""


def wide_grid(low: float, high: float, b: float, symbols: int) -> tuple[Floats, Floats]:
    """Return the inner edges and the values of a grid of at least 3 cells that covers nearly all noise.

    The edges reach ``log(1 / (2 TAIL)) b`` beyond the inputs, evenly spaced. The values are the middles of
    the cells; for the two end cells the mean of the tail, which lies ``b`` beyond the last edge for any
    input, since the exponential distribution is memoryless.
    """
    reach = np.log(0.5 / TAIL) * b
    edges = np.linspace(low - reach, high + reach, symbols - 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return edges, np.concatenate([[edges[0] - b], middles, [edges[-1] + b]])


def cell_probabilities(edges: Floats, centres: ArrayLike, b: float) -> Floats:
    """Return the probability that Laplace(centre, b) falls into each cell, shape (centres, cells)."""
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    offsets = (bounds[None, :] - np.asarray(centres, dtype=np.float64)[:, None]) / b
    left, right = offsets[:, :-1], offsets[:, 1:]
    # Each half of the density is integrated as an exponential times a width, not as a difference of
    # two cumulative probabilities, so that the ratios between rows keep full precision.
    below = np.exp(np.minimum(right, 0.0)) * -np.expm1(np.minimum(left, 0.0) - np.minimum(right, 0.0))
    above = np.exp(-np.maximum(left, 0.0)) * -np.expm1(np.maximum(left, 0.0) - np.maximum(right, 0.0))
    probabilities: Floats = (below + above) / 2
    return probabilities


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """Unbounded Laplace noise on the rating (Neera et al. [neera2023], Definition 4)."""

    kind: Literal["laplace"] = "laplace"
    papers: ClassVar[tuple[str, ...]] = ("neera2023",)
    symbols: int = option("Cells of the grid on which the noisy rating is sent.", 256, ge=3, le=65536)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of r + Laplace(0, b), b = (u - l) / epsilon, cut into cells.

        The end cells lie entirely outside [l, u], so the realised epsilon equals the requested one.
        Values may lie outside the scale; a tail beyond the grid reads as its mean, which concerns at
        most 2 reports in 1000.
        """
        b = (scale.high - scale.low) / epsilon
        edges, values = wide_grid(scale.low, scale.high, b, self.symbols)
        return Channel.from_probabilities(
            cell_probabilities(edges, scale.values, b), scale.values, values, epsilon
        )


@dataclass(frozen=True, kw_only=True)
class ClampedLaplace(Mechanism):
    """Laplace noise clamped to the rating scale (Berlioz et al. [berlioz2015], input perturbation)."""

    kind: Literal["clamped-laplace"] = "clamped-laplace"
    papers: ClassVar[tuple[str, ...]] = ("berlioz2015", "neera2023")
    symbols: int = option("Cells of the grid on which the noisy rating is sent.", 256, ge=3, le=65536)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of r + Laplace(0, b) clamped to [l, u], b = (u - l) / epsilon.

        The first symbol is the whole tail up to l and the last the tail from u, as clamping makes
        them, and the others divide (l, u) evenly; the two tails suffice to make the realised epsilon
        equal to the requested one.
        """
        b = (scale.high - scale.low) / epsilon
        edges = np.linspace(scale.low, scale.high, self.symbols - 1)
        values = np.concatenate([[scale.low], (edges[1:] + edges[:-1]) / 2, [scale.high]])
        return Channel.from_probabilities(
            cell_probabilities(edges, scale.values, b), scale.values, values, epsilon
        )


@dataclass(frozen=True, kw_only=True)
class BoundedLaplace(Mechanism):
    """Laplace noise confined to the rating scale (Neera et al. [neera2023], Definition 5)."""

    kind: Literal["bounded-laplace"] = "bounded-laplace"
    papers: ClassVar[tuple[str, ...]] = ("neera2023",)
    symbols: int = option("Points of the grid on which the noisy rating is sent.", 256, ge=2, le=65536)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel with density proportional to ``exp(-|r* - r| / b)`` on [l, u].

        Neera et al. [neera2023], Definition 5 and Theorem 1: when the sensitivity is the whole scale, the
        normalisations at the two ends are equal, so b = (u - l) / epsilon is exact and not just
        sufficient. The grid includes both ends, where the largest ratio occurs, so the bound is met
        with equality on the grid too.
        """
        b = (scale.high - scale.low) / epsilon
        grid = np.linspace(scale.low, scale.high, self.symbols)
        density = np.exp(-np.abs(grid[None, :] - scale.values[:, None]) / b)
        return Channel.from_probabilities(density, scale.values, grid, epsilon)

    def noise_between(self, edges: Floats, scale: RatingScale, shares: Floats, epsilon: float) -> Floats:
        """Return the probabilities by the density of Neera et al. [neera2023]; see `Mechanism`."""
        b = least_scale(scale.low, scale.high, epsilon)
        return interval_probabilities(edges, scale.values, shares, scale.low, scale.high, b)
