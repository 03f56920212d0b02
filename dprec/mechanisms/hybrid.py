"""The hybrid mechanism: piecewise or one bit, whichever a public coin says (Wang et al. [wang2019])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.duchi import two_values
from dprec.mechanisms.piecewise import pieces
from dprec.mechanisms.steps import MOST_EPSILON, on_interval, on_scale
from dprec.ratings import RatingScale

_WORTH_IT = float(
    np.log((-5 + 2 * np.cbrt(6353 - 405 * np.sqrt(241)) + 2 * np.cbrt(6353 + 405 * np.sqrt(241))) / 27)
)
"""The epsilon, about 0.61, up to which one bit alone has the least variance (Wang et al. [wang2019])."""


@dataclass(frozen=True, kw_only=True)
class Hybrid(Mechanism):
    """The piecewise mechanism or one bit, mixed for the least worst variance (Wang et al. [wang2019])."""

    kind: Literal["hybrid"] = "hybrid"
    papers: ClassVar[tuple[str, ...]] = ("wang2019",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the piecewise channel with probability 1 - e^(-epsilon / 2), else the one-bit channel."""
        x, epsilon = on_interval(scale, -1.0, 1.0), min(epsilon, MOST_EPSILON)
        probabilities, values = two_values(x, epsilon)
        if epsilon > _WORTH_IT:
            alpha = -np.expm1(-epsilon / 2)
            steps, middles = pieces(x, epsilon)
            probabilities = np.hstack([(1 - alpha) * probabilities, alpha * steps])
            values = np.concatenate([values, middles])
        return Channel.from_probabilities(
            probabilities, scale.values, on_scale(scale, values, -1.0, 1.0), epsilon
        )
