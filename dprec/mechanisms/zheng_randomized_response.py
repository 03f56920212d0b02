"""Zheng's randomized response: "not rated" is one more answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.privacy.zheng_bounds import randomized_response_bound
from dprec.ratings import RatingScale
from dprec.reports import HiddenRowFamily, ReportFamily
from dprec.reports.hidden_rows import RATING_NOISE


@dataclass(frozen=True, kw_only=True)
class ZhengRandomizedResponse(Mechanism):
    """Randomized response over "not rated" and the levels (Zheng [zheng2016], Definition 3)."""

    kind: Literal["zheng-randomized-response"] = "zheng-randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[i, j] = e^(epsilon [i = j]) / (e^epsilon + d) over {0 = not rated, 1, ..., d}."""
        symbols = np.concatenate([[np.nan], scale.values])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(symbols.size) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, symbols, symbols, epsilon)

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float:
        """Return the bound of Theorem 3; see `Mechanism.distance_bound`."""
        # Of the levels, the proof uses only the distance between the outer two.
        levels = randomized_response_bound(
            users, items, ratings, scale.levels, epsilon, tolerance, RATING_NOISE
        )
        return levels * (scale.high - scale.low) / (scale.levels - 1)
