"""k-ary randomized response on the levels of the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """The true level most likely, all others equally likely (Kairouz et al. [kairouz2014])."""

    kind: Literal["randomized-response"] = "randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("kairouz2014", "li2021")

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[x, z] = e^(epsilon [x = z]) / (e^epsilon + d - 1) for d levels."""
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(scale.levels) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, scale.values, scale.values, epsilon)
