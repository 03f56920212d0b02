"""The clamped Laplace mechanism: a value off the scale is moved to its nearer end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.laplace_grid import cell_probabilities
from dprec.options import option
from dprec.ratings import RatingScale


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
