"""What is sent without noise: the ratings themselves, or only which items were rated."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Raw(Mechanism):
    """No privacy: ratings are sent unchanged."""

    kind: Literal["none"] = "none"
    papers: ClassVar[tuple[str, ...]] = ("davenport2014", "guerraoui2017", "li2021", "neera2023")
    private: ClassVar[bool] = False

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the identity, whatever the budget: nothing is promised."""
        return Channel.from_probabilities(np.eye(scale.levels), scale.values, scale.values, math.inf)


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
