"""Answers about a whole profile, which hide how items were rated and which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.options import option
from dprec.ratings import RatingScale
from dprec.reports import ProfileFamily, ReportFamily
from dprec.reports.profiles import ProfileCode

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
