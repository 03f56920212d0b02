"""The square wave mechanism: a noisy rating within a window of fixed width (Li et al. [li2020])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.steps import MOST_EPSILON, on_interval, on_scale, wave
from dprec.ratings import RatingScale

_SERIES_BELOW = 1e-3
"""Epsilon below which the width is computed from its series: the closed form is 0 / 0 there."""


@dataclass(frozen=True, kw_only=True)
class SquareWave(Mechanism):
    """A window around the rating, e^epsilon times as dense as the rest (Li et al. [li2020], section 5)."""

    kind: Literal["square-wave"] = "square-wave"
    papers: ClassVar[tuple[str, ...]] = ("li2020",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to the steps of the density on [-b, 1 + b].

        The expectation of the noisy value is linear in v, the rating on [0, 1]; each symbol's value is the
        one that undoes it, so that it is unbiased.
        """
        epsilon = min(epsilon, MOST_EPSILON)
        v, b = on_interval(scale, 0.0, 1.0), half_width(epsilon)
        probabilities, middles = wave(v - b, v + b, -b, 1 + b, epsilon)
        at_ends = probabilities[[0, -1]] @ middles
        values = (middles - at_ends[0]) / (at_ends[1] - at_ends[0])
        return Channel.from_probabilities(
            probabilities, scale.values, on_scale(scale, values, 0.0, 1.0), epsilon
        )


def half_width(epsilon: float) -> float:
    """Return b = (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)).

    Li et al. [li2020], section 5: the width that maximises a bound on the mutual information.
    """
    if epsilon < _SERIES_BELOW:
        return 1 / 2 - epsilon / 3 + epsilon**2 / 9
    # Numerator and denominator are divided by e^epsilon, so that a large budget does not overflow.
    return float((epsilon + np.expm1(-epsilon)) / (2 * (np.expm1(epsilon) - epsilon)))
