"""The budget in a configuration, and how the draws about a user share it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dprec.accounting import PrivacyUnit
from dprec.accounting.pld import largest_share
from dprec.channel import Channel
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import even_share

LARGEST_CELL_EPSILON = 20.0
"""Largest loss of one cell for which integer weights out of 2**60 keep the ratios that epsilon requires."""

DELTA = 1e-6
"""Default: less than one in the number of users of any data set here."""

SMALLEST_DELTA, LARGEST_DELTA = 1e-9, 0.1
"""Range of delta: what floating-point numbers can tell from 0, and what is still small."""


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget(Options):
    """What is guaranteed: epsilon, and for what; see `dprec.accounting.promises`."""

    epsilon: float = option("Privacy loss, in natural logarithms.", gt=0)
    per: PrivacyUnit = option("What the loss is guaranteed for.", "rating")
    composition: Literal["sum", "pld"] = option(
        "How the draws about a user share a budget per user: by the sum of their losses, or by their privacy "
        "loss distributions, so that (epsilon, delta) holds.",
        "sum",
    )
    delta: float = option(
        "Probability beyond which composed losses hold; sums hold without.",
        DELTA,
        ge=SMALLEST_DELTA,
        le=LARGEST_DELTA,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.composition == "pld" and self.per != "user":
            accepted = "'sum', or per: user, which is what draws are composed for"
            raise SettingError("composition", f"'pld' per {self.per}", accepted)

    def share(
        self,
        channel: Callable[[float], Channel],
        draws: int,
        *,
        most: float = math.inf,
        guess: float | None = None,
    ) -> float:
        """Return the budget of each of a user's draws, at most ``most``; see `largest_share`."""
        if self.composition == "sum":
            return min(even_share(self.epsilon, draws), most)
        return largest_share(channel, draws, self.epsilon, self.delta, most=most, guess=guess)
