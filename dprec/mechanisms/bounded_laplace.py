"""The bounded Laplace mechanism: Laplace noise, redrawn until the rating stays on the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.options import option
from dprec.privacy.bounded_laplace_noise import interval_probabilities, least_scale
from dprec.ratings import RatingScale


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

    def noise_between(
        self, edges: NDArray[np.float64], scale: RatingScale, shares: NDArray[np.float64], epsilon: float
    ) -> NDArray[np.float64]:
        """Return the probabilities by the density of Neera et al. [neera2023]; see `Mechanism`."""
        b = least_scale(scale.low, scale.high, epsilon)
        return interval_probabilities(edges, scale.values, shares, scale.low, scale.high, b)
