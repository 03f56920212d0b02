"""Zheng's randomized response: "not rated" is one more answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class ZhengRandomizedResponse(Mechanism):
    """Randomized response over "not rated" and the levels (Zheng [zheng2016], Definition 3)."""

    kind: Literal["zheng-randomized-response"] = "zheng-randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    hides_rated_items: ClassVar[bool] = True

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[i, j] = e^(epsilon [i = j]) / (e^epsilon + d) over {0 = not rated, 1, ..., d}."""
        symbols = np.concatenate([[np.nan], scale.values])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(symbols.size) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, symbols, symbols, epsilon)
