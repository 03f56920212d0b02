"""The piecewise mechanism: a noisy rating, denser around the true one (Wang et al. [wang2019])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.steps import MOST_EPSILON, on_interval, on_scale, wave
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Piecewise(Mechanism):
    """Bounded, unbiased noise, densest around the rating (Wang et al. [wang2019], Algorithm 2)."""

    kind: Literal["piecewise"] = "piecewise"
    papers: ClassVar[tuple[str, ...]] = ("wang2019",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to the steps of the density, of which there are at most 2 d + 1 for d levels."""
        probabilities, values = pieces(on_interval(scale, -1.0, 1.0), min(epsilon, MOST_EPSILON))
        return Channel.from_probabilities(
            probabilities, scale.values, on_scale(scale, values, -1.0, 1.0), epsilon
        )


def pieces(x: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of the steps for x in [-1, 1], shape (inputs, steps), and their values.

    Wang et al. [wang2019], section III-B: the density on [-c, c] is e^epsilon times as high within
    [l(x), r(x)], where c = (e^(epsilon / 2) + 1) / (e^(epsilon / 2) - 1),
    l(x) = (c + 1) / 2 x - (c - 1) / 2 and r(x) = l(x) + c - 1.
    """
    c = 1 / np.tanh(epsilon / 4)
    left = (c + 1) / 2 * x - (c - 1) / 2
    return wave(left, left + c - 1, -c, c, epsilon)
