"""The Laplace mechanism: unbounded noise, on a grid that covers nearly all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.laplace_grid import cell_probabilities, wide_grid
from dprec.options import option
from dprec.ratings import RatingScale


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
