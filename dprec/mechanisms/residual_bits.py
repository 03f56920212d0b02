"""Bits about a few ratings of a profile: whether each is above the mean of the user's own ratings.

A bit compares a rating with the whole profile, so only a promise per user is possible. Each of s bits gets an
even share of the user's budget, and which ratings they are about is drawn whatever their values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.threshold_bit import ThresholdBit
from dprec.options import option
from dprec.ratings import RatingScale
from dprec.reports import ReportFamily, ResidualBitFamily

_BUDGET_OF_A_BIT, _MOST_BITS = 2.0, 64
"""Of the budget per user, each bit gets about so much; chosen by benchmarks/choose_residual_bits.py."""


@dataclass(frozen=True, kw_only=True)
class ResidualBits(Mechanism):
    """Whether a few ratings, drawn at random, are above the user's mean (Warner [warner1965])."""

    kind: Literal["residual-bits"] = "residual-bits"
    papers: ClassVar[tuple[str, ...]] = ("warner1965",)
    report_family: ClassVar[type[ReportFamily]] = ResidualBitFamily
    bits: int | None = option(
        "Ratings of a user that are reported on, among which its budget is divided; by default one, or "
        "the nearest whole number to half of epsilon if that is more.",
        None,
        ge=1,
        le=_MOST_BITS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many ratings a user with a budget reports on, if it has so many.

        A bit at a loss e says tanh(e/2)^2 of what it says in clear, so that bits at small losses are worth
        less together than one at their sum.

        Parameters
        ----------
        epsilon : float
            Per user.
        """
        if self.bits is not None:
            return self.bits
        return min(max(1, int(epsilon / _BUDGET_OF_A_BIT + 0.5)), _MOST_BITS)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of one bit: its inputs are the lowest level for below, the highest for above."""
        return ThresholdBit().channel(scale, epsilon)
