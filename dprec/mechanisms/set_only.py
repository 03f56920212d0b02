"""Only which items were rated is sent, and no value of a rating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class SetOnly(Mechanism):
    """Nothing about any value: what is sent is which items were rated."""

    kind: Literal["set-only"] = "set-only"
    private: ClassVar[bool] = False
    sends_values: ClassVar[bool] = False

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel with one symbol, which reads as the middle of the scale."""
        middle = (scale.low + scale.high) / 2
        return Channel.from_probabilities(np.ones((scale.levels, 1)), scale.values, [middle], epsilon)
