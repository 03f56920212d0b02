"""One bit whose probability is linear in the rating (Duchi et al. [duchi2018])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.steps import on_interval, on_scale
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Duchi(Mechanism):
    """One of two values far outside the scale, unbiased (Duchi et al. [duchi2018])."""

    kind: Literal["duchi"] = "duchi"
    papers: ClassVar[tuple[str, ...]] = ("duchi2018",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to -c and c, c = (e^epsilon + 1) / (e^epsilon - 1), for the scale as [-1, 1]."""
        probabilities, values = two_values(on_interval(scale, -1.0, 1.0), epsilon)
        return Channel.from_probabilities(
            probabilities, scale.values, on_scale(scale, values, -1.0, 1.0), epsilon
        )


def two_values(x: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of -c and c for x in [-1, 1], shape (inputs, 2), and the values -c and c.

    Pr(c | x) = 1 / 2 + x / (2 c), as restated by Wang et al. [wang2019], Algorithm 1.
    """
    # 1 / c = 1 - 2 flip; without the difference, both probabilities are exact at large budgets.
    flip = 1 / (1 + np.exp(epsilon))
    lower, upper = (1 - x) / 2 + x * flip, (1 + x) / 2 - x * flip
    return np.column_stack([lower, upper]), np.array([-1.0, 1.0]) / np.tanh(epsilon / 2)
