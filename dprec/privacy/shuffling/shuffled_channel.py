"""What a report tells that is shuffled among others through the same channel, by how many they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dprec.accounting import PrivacyBlanket, PrivacyLossDistribution, clones_delta
from dprec.accounting.pld import points_up_to
from dprec.channel import Channel

_RATIO = 1.1
"""Ratio of the numbers of reports for which bounds are computed; between two of them, the lower one holds."""

_MOST_PAIRS = 90
"""Pairs of different rows for which the blanket is computed; with more, clones of any two rows are."""

_CORNERS, _LEAST_DELTA = 33, 1e-13
"""Corners of a curve of divergences, and where it ends but for a straight line."""

_PRECISION = 1e-4
"""Relative precision of an epsilon, which is rounded up."""


def computed_for(reports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of reports, at most the given ones, for which bounds are computed.

    Fewer reports hide less, so that their bound holds for more.

    Parameters
    ----------
    reports : ndarray of int64
        At least 1.
    """
    most = int(reports.max(initial=1))
    steps = np.unique((_RATIO ** np.arange(math.ceil(math.log(most, _RATIO)) + 1)).astype(np.int64))
    return steps[np.searchsorted(steps, reports, side="right") - 1]


def least_epsilon(delta_at: Callable[[float], float], largest: float, delta: float) -> float:
    """Return an epsilon that holds with delta, the least but for `_PRECISION`.

    Parameters
    ----------
    delta_at : callable
        From an epsilon to its delta, falling.
    largest : float
        An epsilon that holds.
    delta : float
        Above 0.
    """
    if delta_at(0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), delta * 1e-3)) - math.log(delta)

    root = float(brentq(excess, 0.0, largest, xtol=_PRECISION * 1e-4, rtol=_PRECISION / 4))
    return min(largest, root * (1 + _PRECISION))


@dataclass(frozen=True, eq=False)
class ShuffledChannel:
    """A channel whose reports are shuffled, none of them linked to another."""

    channel: Channel
    """With a finite epsilon above 0."""
    _epsilons: dict[tuple[int, float], float] = field(default_factory=dict, init=False)
    _losses: dict[tuple[int, float], PrivacyLossDistribution] = field(default_factory=dict, init=False)

    @classmethod
    def known(cls, channel: Channel) -> ShuffledChannel:
        """Return the one that was computed for such a channel before in this process, if any."""
        key = repr(channel.weights.shape).encode() + channel.weights.tobytes()
        if key not in _KNOWN:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = cls(channel)
        return _KNOWN[key]

    @cached_property
    def blanket(self) -> PrivacyBlanket:
        """What hides a report."""
        return PrivacyBlanket(self.channel)

    def delta(self, epsilon: float, reports: int) -> float:
        """Return a delta with which epsilon holds for one of ``reports`` shuffled reports."""
        if len(self.blanket.pairs) <= _MOST_PAIRS:
            return self.blanket.delta(epsilon, reports)
        return min(clones_delta(epsilon, reports, self.channel.epsilon), self.blanket.alone(epsilon))

    def epsilon(self, reports: int, delta: float) -> float:
        """Return an epsilon that holds with delta for one of the shuffled reports, at most the channel's.

        Parameters
        ----------
        reports : int
            The report itself included, at least 1.
        delta : float
            Above 0.
        """
        if (reports, delta) not in self._epsilons:
            self._epsilons[reports, delta] = least_epsilon(
                lambda epsilon: self.delta(epsilon, reports), self.channel.epsilon, delta
            )
        return self._epsilons[reports, delta]

    def losses(self, reports: int, step: float) -> PrivacyLossDistribution:
        """Return the privacy losses of a pair that dominates one of the shuffled reports.

        The divergences of a pair are convex in a = e^epsilon, so that straight lines between some of them,
        the last one down to 0 at the channel's epsilon, are not below them.

        Parameters
        ----------
        step : float
            Distance of two points of the grid.
        """
        if (reports, step) not in self._losses:
            self._losses[reports, step] = self._dominating(reports, step)
        return self._losses[reports, step]

    def _dominating(self, reports: int, step: float) -> PrivacyLossDistribution:
        points = points_up_to(self.channel.epsilon, step)
        end = min(points, points_up_to(self.epsilon(reports, _LEAST_DELTA), step))
        corners = np.unique(np.rint(np.linspace(0, end, _CORNERS)).astype(np.int64))
        deltas = [self.delta(step * corner, reports) for corner in corners.tolist()]
        if end < points:
            corners, deltas = np.append(corners, points), [*deltas, 0.0]
        deltas[-1] = 0.0
        ratios = np.exp(step * np.arange(points + 1))
        return PrivacyLossDistribution.with_divergences(step, np.interp(ratios, ratios[corners], deltas))


_KNOWN: dict[bytes, ShuffledChannel] = {}
"""What was computed, by the channels' draws: runs that differ in their seed ask for the same."""

_MOST_KNOWN = 64
