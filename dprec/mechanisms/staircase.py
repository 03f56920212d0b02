"""The staircase mechanism: additive noise whose density falls in steps (Geng et al. [geng2015])."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.steps import MOST_EPSILON, edges_of
from dprec.ratings import RatingScale

_TAIL = 1e-3
"""Probability that the noise goes beyond the last step, if that many steps are allowed."""


@dataclass(frozen=True, kw_only=True)
class Staircase(Mechanism):
    """Unbounded noise of the least mean magnitude (Geng et al. [geng2015])."""

    kind: Literal["staircase"] = "staircase"
    papers: ClassVar[tuple[str, ...]] = ("geng2015",)
    steps: int = option("Most steps of the noise on each side; the tail is cut off.", 256, ge=2, le=2048)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to the steps of all ratings' densities."""
        epsilon = min(epsilon, MOST_EPSILON)
        noise = Steps(scale.high - scale.low, epsilon)
        count = min(self.steps, 1 + math.ceil(-math.log(_TAIL) / epsilon))
        falls = (np.arange(count) + noise.inner_share) * noise.width
        edges = edges_of(scale.values[:, None] + falls, scale.values[:, None] - falls)
        edges = edges[(edges >= scale.high - falls[-1]) & (edges <= scale.low + falls[-1])]
        offsets = edges - scale.values[:, None]
        inner = noise.density((offsets[:, 1:] + offsets[:, :-1]) / 2) * np.diff(edges)
        tails = noise.tail(-offsets[:, :1]), noise.tail(offsets[:, -1:])
        middles = (edges[1:] + edges[:-1]) / 2
        beyond = noise.mean_beyond_a_fall
        values = np.concatenate([[edges[0] - beyond], middles, [edges[-1] + beyond]])
        return Channel.from_probabilities(
            np.hstack([tails[0], inner, tails[1]]), scale.values, values, epsilon
        )


@dataclass(frozen=True)
class Steps:
    """Noise whose density is a e^(-k epsilon) on the step k, of magnitudes up to (k + gamma) widths."""

    width: float
    """The sensitivity: how far apart two ratings can be."""
    epsilon: float

    @property
    def inner_share(self) -> float:
        """Gamma = 1 / (1 + e^(epsilon / 2)), of the least mean magnitude (Geng et al. [geng2015])."""
        return 1 / (1 + math.exp(self.epsilon / 2))

    @property
    def mean_beyond_a_fall(self) -> float:
        """Mean distance from a magnitude at which the density falls, of noise beyond it."""
        return self.width * (0.5 + 1 / math.expm1(self.epsilon))

    def density(self, noise: Floats) -> Floats:
        """Return the density; a = (1 - e^-epsilon) / (2 width (gamma + e^-epsilon (1 - gamma)))."""
        fall, gamma = math.exp(-self.epsilon), self.inner_share
        a = -math.expm1(-self.epsilon) / (2 * self.width * (gamma + fall * (1 - gamma)))
        density: Floats = a * np.exp(-self.epsilon * self._step(noise))
        return density

    def tail(self, start: Floats) -> Floats:
        """Return the probability of noise above a number, which is at least 0."""
        step = self._step(start)
        rest_of_the_step = (step + self.inner_share) * self.width - start
        later_steps = self.width / math.expm1(self.epsilon)
        return self.density(start) * (rest_of_the_step + later_steps)

    def _step(self, noise: Floats) -> Floats:
        return np.maximum(np.ceil(np.abs(noise) / self.width - self.inner_share), 0.0)
