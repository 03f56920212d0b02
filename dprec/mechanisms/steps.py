"""Mechanisms whose noise has a density of steps, or takes two values, sent as the step that it falls on.

Where the density is the same for every rating, the place within a step tells nothing about the rating. So
the device sends the number of the step, and its middle has the expectation of the noisy rating itself.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale

MOST_EPSILON = 20.0
"""Loss beyond which steps get too narrow for floating point; the rest of a budget stays unspent."""

_SAME = 1e-12
"""Distance, relative to the whole range, below which two edges count as one."""


def edges_of(*places: Floats) -> Floats:
    """Return all places in ascending order, those that differ by rounding only once."""
    edges = np.unique(np.concatenate([np.ravel(place) for place in places]))
    distinct = np.diff(edges) > _SAME * (edges[-1] - edges[0])
    return edges[np.append(True, distinct)]


def wave(left: Floats, right: Floats, low: float, high: float, epsilon: float) -> tuple[Floats, Floats]:
    """Return the steps of a density that is e^epsilon times as high within an interval as outside.

    The intervals are equally long. Returns the probabilities, shape (inputs, steps), and the middles of the
    steps.
    """
    edges = edges_of(left, right, np.array([low, high]))
    middles = (edges[1:] + edges[:-1]) / 2
    inside = (middles > left[:, None]) & (middles < right[:, None])
    # Rounding makes the intervals differ in length; what that would cost is taken from epsilon.
    lengths = inside @ np.diff(edges)
    spent = epsilon - np.log(lengths.max() / lengths.min())
    weights = np.where(inside, 1.0, np.exp(-spent)) * np.diff(edges)
    return weights / weights.sum(axis=1, keepdims=True), middles


def on_interval(scale: RatingScale, low: float, high: float) -> Floats:
    """Map the levels of a scale to an interval, linearly, shape (levels,)."""
    shares = (scale.values - scale.low) / (scale.high - scale.low)
    return low + (high - low) * shares


def on_scale(
    scale: RatingScale, probabilities: Floats, values: Floats, epsilon: float, low: float = -1.0
) -> Channel:
    """Return the channel to values on an interval up to 1, also beyond its ends, as values on a scale."""
    symbol_values = scale.low + (scale.high - scale.low) * (values - low) / (1.0 - low)
    return Channel.from_probabilities(probabilities, scale.values, symbol_values, epsilon)


@dataclass(frozen=True, kw_only=True)
class Duchi(Mechanism):
    """One of two values far outside the scale, unbiased (Duchi et al. [duchi2018])."""

    kind: Literal["duchi"] = "duchi"
    papers: ClassVar[tuple[str, ...]] = ("duchi2018",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to -c and c, c = (e^epsilon + 1) / (e^epsilon - 1), for the scale as [-1, 1]."""
        probabilities, values = two_values(on_interval(scale, -1.0, 1.0), epsilon)
        return on_scale(scale, probabilities, values, epsilon)


def two_values(x: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return the probabilities of -c and c for x in [-1, 1], shape (inputs, 2), and the values -c and c.

    Pr(c | x) = 1 / 2 + x / (2 c), as restated by Wang et al. [wang2019], Algorithm 1.
    """
    # 1 / c = 1 - 2 flip; without the difference, both probabilities are exact at large budgets.
    flip = 1 / (1 + np.exp(epsilon))
    lower, upper = (1 - x) / 2 + x * flip, (1 + x) / 2 - x * flip
    return np.column_stack([lower, upper]), np.array([-1.0, 1.0]) / np.tanh(epsilon / 2)


@dataclass(frozen=True, kw_only=True)
class Piecewise(Mechanism):
    """Bounded, unbiased noise, densest around the rating (Wang et al. [wang2019], Algorithm 2)."""

    kind: Literal["piecewise"] = "piecewise"
    papers: ClassVar[tuple[str, ...]] = ("wang2019",)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel to the steps of the density, of which there are at most 2 d + 1 for d levels."""
        probabilities, values = pieces(on_interval(scale, -1.0, 1.0), min(epsilon, MOST_EPSILON))
        return on_scale(scale, probabilities, values, epsilon)


def pieces(x: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return the probabilities of the steps for x in [-1, 1], shape (inputs, steps), and their values.

    Wang et al. [wang2019], section III-B: the density on [-c, c] is e^epsilon times as high within
    [l(x), r(x)], where c = (e^(epsilon / 2) + 1) / (e^(epsilon / 2) - 1),
    l(x) = (c + 1) / 2 x - (c - 1) / 2 and r(x) = l(x) + c - 1.
    """
    c = 1 / np.tanh(epsilon / 4)
    left = (c + 1) / 2 * x - (c - 1) / 2
    return wave(left, left + c - 1, -c, c, epsilon)


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
        return on_scale(scale, probabilities, values, epsilon)


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
        return on_scale(scale, probabilities, values, epsilon, low=0.0)


def half_width(epsilon: float) -> float:
    """Return b = (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)).

    Li et al. [li2020], section 5: the width that maximises a bound on the mutual information.
    """
    if epsilon < _SERIES_BELOW:
        return 1 / 2 - epsilon / 3 + epsilon**2 / 9
    # Numerator and denominator are divided by e^epsilon, so that a large budget does not overflow.
    return float((epsilon + np.expm1(-epsilon)) / (2 * (np.expm1(epsilon) - epsilon)))


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
        # The mean distance from a magnitude at which the density falls, of noise beyond it.
        beyond = noise.width * (0.5 + 1 / math.expm1(epsilon))
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

    def density(self, noise: Floats) -> Floats:
        """Return the density; a = (1 - e^-epsilon) / (2 width (gamma + e^-epsilon (1 - gamma)))."""
        fall, gamma = math.exp(-self.epsilon), self.inner_share
        a = -math.expm1(-self.epsilon) / (2 * self.width * (gamma + fall * (1 - gamma)))
        return a * np.exp(-self.epsilon * self._step(noise))

    def tail(self, start: Floats) -> Floats:
        """Return the probability of noise above a number, which is at least 0."""
        step = self._step(start)
        rest_of_the_step = (step + self.inner_share) * self.width - start
        later_steps = self.width / math.expm1(self.epsilon)
        return self.density(start) * (rest_of_the_step + later_steps)

    def _step(self, noise: Floats) -> Floats:
        return np.maximum(np.ceil(np.abs(noise) / self.width - self.inner_share), 0.0)
