"""Laplace noise on a grid: clamped, redrawn until it stays on the scale, or as it is.

The pmf of bounded noise is proportional to the density at the points of the grid, both ends included; of
unbounded noise, each cell integrates the density, and the cells at the ends collect the tails.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale
from dprec.reports import HiddenRowFamily, ReportFamily


def interval_probabilities(
    edges: ArrayLike, ratings: ArrayLike, shares: ArrayLike, low: float, high: float, b: float
) -> Floats:
    """Return the probability of the noise between adjacent edges (Neera et al. [neera2023], Eqs. 4 and 5).

    The paper's intervals have the differences between levels as their edges. The conditional probabilities
    printed under these equations lack the scale inside the exponent and the distance from the rating; here
    they are integrals of the density of Definition 5.
    """
    r, weights = (np.asarray(array, dtype=np.float64) for array in (ratings, shares))
    # C(r), the mass that Laplace(r, b) has on [low, high] (Lemma 1).
    mass = -(np.expm1(-(r - low) / b) + np.expm1(-(high - r) / b)) / 2
    n = np.clip(np.asarray(edges, dtype=np.float64)[:, None], low - r, high - r)
    # The integral of the density from 0 to n, for n of either sign.
    integral = -np.sign(n) * np.expm1(-np.abs(n) / b) / (2 * mass)
    return np.diff(integral, axis=0) @ (weights / weights.sum())


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
    return (below + above) / 2


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
        b = (scale.high - scale.low) / epsilon
        return interval_probabilities(edges, scale.values, shares, scale.low, scale.high, b)


@dataclass(frozen=True, kw_only=True)
class ZhengLaplace(Mechanism):
    """Laplace noise that also drops ratings and makes them up (Zheng [zheng2016], Definition 2)."""

    kind: Literal["zheng-laplace"] = "zheng-laplace"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily
    symbols: int = option(
        'The symbol "?" and the cells of the grid on which noisy ratings are sent.', 256, ge=4, le=65536
    )

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of Definition 2: the first input is "not rated", the first symbol "?".

        With x the rating on [-1, 1], xi ~ Laplace(0, 2 / epsilon) and zeta = 1 with probability
        e^(epsilon / 2) / (e^(epsilon / 2) + 1): a rated cell sends x + xi if zeta, else "?"; a cell
        that is not rated sends "?" if zeta, else xi. Symbols read as x (u - l) / 2 + (u + l) / 2, in
        rating units, in which the noise has scale (u - l) / epsilon and a made-up rating is centred on
        the middle of the scale. The cells outside [l, u] make the realised epsilon equal to the
        requested one.
        """
        b = (scale.high - scale.low) / epsilon
        edges, values = wide_grid(scale.low, scale.high, b, self.symbols - 1)
        centres = np.concatenate([[(scale.low + scale.high) / 2], scale.values])
        honest, turned = (1 / (1 + math.exp(-half)) for half in (epsilon / 2, -epsilon / 2))
        shown = np.concatenate([[turned], np.full(scale.levels, honest)])
        hidden = np.concatenate([[honest], np.full(scale.levels, turned)])
        noisy = cell_probabilities(edges, centres, b) * shown[:, None]
        return Channel.from_probabilities(
            np.column_stack([hidden, noisy]),
            np.concatenate([[np.nan], scale.values]),
            np.concatenate([[np.nan], values]),
            epsilon,
        )

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float:
        """Return the bound of Theorem 3, Eq. 6, for ratings scaled to [-1, 1]; see the base class.

        It is on rho = ||P(Theta - Z)||_F over the cells that are shown, with Theta the true ratings of all
        cells, rated or not, and Z what is sent; given ratings are the true ones.
        """
        m, n, s, gamma = users, items, ratings, tolerance
        truly_rated = 4 / epsilon * math.sqrt(s / gamma)
        made_up = math.sqrt(2 * m * n / ((math.exp(epsilon / 2) + 1) * gamma) * (1 + 8 / epsilon**2))
        return (truly_rated + made_up) * (scale.high - scale.low) / 2
