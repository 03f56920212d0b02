"""Mechanisms with a budget per user: bits about a few residuals, and answers about the whole profile.

A bit compares a rating with the whole profile, so only a promise per user is possible. Each answer gets an
even share of the user's budget; which ratings bits are about is drawn whatever their values.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.thresholds import ThresholdBit
from dprec.ratings import RatingScale
from dprec.reports import ProfileFamily, ReportFamily, ResidualBitFamily
from dprec.reports.profiles import ProfileCode

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
        "the nearest integer to half of epsilon if that is more.",
        None,
        ge=1,
        le=_MOST_BITS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many ratings a user with a budget reports on, if it has so many.

        A bit at a loss e says tanh(e/2)^2 of what it says in clear, so that bits at small losses are worth
        less together than one at their sum.
        """
        if self.bits is not None:
            return self.bits
        return min(max(1, int(epsilon / _BUDGET_OF_A_BIT + 0.5)), _MOST_BITS)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of one bit: its inputs are the lowest level for below, the highest for above."""
        return ThresholdBit().channel(scale, epsilon)


_BUDGET_OF_AN_ANSWER, _MOST_ANSWERS = 4.0, 64
"""Of the budget per user, an answer gets at most so much; chosen by benchmarks/choose_user_level_bit.py."""

_MANY_ITEMS = 1 << 14
"""A catalogue for which a channel stands that is asked for without one."""


@dataclass(frozen=True, kw_only=True)
class UserLevelBit(Mechanism):
    """One item, and whether it is above the user's mean: more probably of the profile than not."""

    kind: Literal["user-level-bit"] = "user-level-bit"
    papers: ClassVar[tuple[str, ...]] = ("ye2018",)
    report_family: ClassVar[type[ReportFamily]] = ProfileFamily
    profile: int = option(
        "Ratings of a user that count at most: those farthest from its mean.", 64, ge=1, le=4096
    )
    answers: int | None = option(
        "Answers of a user, among which its budget is divided; by default as many as get 4 or less each.",
        None,
        ge=1,
        le=_MOST_ANSWERS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many answers a user with a budget gives, epsilon per user."""
        if self.answers is not None:
            return self.answers
        return min(max(1, math.ceil(epsilon / _BUDGET_OF_AN_ANSWER)), _MOST_ANSWERS)

    def code(self, n_items: int, epsilon: float) -> ProfileCode:
        """Return how a device answers at the budget of one answer; see `ProfileCode.at`."""
        return ProfileCode.at(epsilon, n_items, self.profile)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel between two profiles of a large catalogue with nothing in common."""
        return self.code(_MANY_ITEMS, epsilon).channel(scale)
