"""Messages that cannot be linked to anybody, hidden among fakes: what counts of them tell.

Every device sends r messages, no two of them alike, through a shuffler, and fakes: for every message that
there can be, a Poisson number of them (Ghazi, Kumar, Manurangsi and Pagh [ghazi2020]). Poisson numbers add
up: the fakes of all devices are Poisson numbers whose means are the sums of theirs. So the server learns a
count for every message that there can be, and whoever takes part raises r counts by 1:

    Poisson(fakes)    against    1 + Poisson(fakes),    k of which has the loss log(k / fakes)

The others' messages are taken to be known. r such losses add up; their distribution is found as in
`dprec.accounting.pld`, once for each order, since a count of 0 can only be one without. Between any two
profiles, r counts rise and r fall. Whoever has fewer messages pads them with null messages, which may all be
alike if r times as many of their fakes are sent: r kinds, each among fakes of its own, would tell no less.

A user without a profile sends fakes all the same, and these hide messages as those of other users do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from dprec.accounting.events import Adjacency, EventMechanism, largest_mu
from dprec.accounting.pld import ComposedLoss, PrivacyLossDistribution, compose
from dprec.arrays import Bools, Floats

_STEPS = 8192
"""Points of the grid per standard deviation of the composed loss."""

_DEVIATIONS, _MORE = 9, 40
"""Counts this far from the mean, in deviations and beyond them, have a probability below `_TAIL`."""

_TAIL = 1e-16

_NEARLY_CERTAIN = 0.5
"""Probability of an infinite loss from which on a delta of 1 is near enough."""

_PRECISION = 1e-5
"""Relative precision of a number of fakes, which is rounded up."""


@dataclass(frozen=True)
class HiddenMessages(EventMechanism):
    """Messages of each user, no two alike, counted among fakes; see the module."""

    messages: int
    """Messages of a user, null messages among them; at least 1."""
    fakes: float
    """Mean number of the fakes that hide each message: those of honest devices whose fakes arrived."""

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return what the counts of all events in which a user takes part cost, shape (users,)."""
        taken_part = np.stack([users for _, users in events], axis=1)
        kinds, of_user = np.unique(taken_part, axis=0, return_inverse=True)
        hidden = [tuple(one for (one, _), own in zip(events, kind, strict=True) if own) for kind in kinds]
        return np.array([hidden_epsilon(own, delta, adjacency) for own in hidden])[of_user.ravel()]


def hidden_delta(hidden: Sequence[HiddenMessages], epsilon: float, adjacency: Adjacency) -> float:
    """Return a delta with which an epsilon, at least 0, holds for messages of some exchanges together."""
    if _certain(hidden) > _NEARLY_CERTAIN:
        return 1.0
    return max((loss.delta(epsilon) for loss in _composed(tuple(hidden), adjacency)), default=0.0)


def hidden_epsilon(hidden: Sequence[HiddenMessages], delta: float, adjacency: Adjacency) -> float:
    """Return an epsilon that holds with a delta above 0; infinite if fakes are too few for any."""
    if _certain(hidden) > min(delta, _NEARLY_CERTAIN):
        return math.inf
    return max((loss.epsilon(delta) for loss in _composed(tuple(hidden), adjacency)), default=0.0)


def _certain(hidden: Sequence[HiddenMessages]) -> float:
    """Return how probable it is that one of the counts is 0, which cannot be with the messages."""
    if any(one.fakes <= 0 for one in hidden):
        return 1.0
    return -math.expm1(math.fsum(one.messages * math.log(-math.expm1(-one.fakes)) for one in hidden))


@lru_cache(maxsize=256)
def least_fakes(
    messages: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "add-or-remove-one",
    shares: tuple[float, ...] = (1.0,),
) -> float:
    """Return the least mean number of fakes with which r messages are (epsilon, delta)-private.

    It is at least log(r / delta), nearly: with a smaller number, a message could be certain too often.

    Parameters
    ----------
    messages : int
        r, in each of some exchanges, null messages among them; at least 1.
    epsilon, delta : float
        What all exchanges may cost together.
    adjacency : {"add-or-remove-one", "replace-one"}
        What is compared.
    shares : tuple of float
        An exchange whose share is s, above 0, has 1 / s times as many fakes as are returned.
    """
    from scipy.optimize import brentq

    def excess(logarithm: float) -> float:
        hidden = [HiddenMessages(messages, math.exp(logarithm) / share) for share in shares]
        return math.log(hidden_delta(hidden, epsilon, adjacency) / delta)

    # About as many as for normal noise; between two profiles, r counts rise and r others fall.
    counts = 2 * messages if adjacency == "replace-one" else messages
    low = math.log(sum(shares) * counts / largest_mu(epsilon, delta) ** 2 + 1)
    high = low + 0.5
    while excess(high) > 0:
        low, high = high, high + 0.5
    while excess(low) <= 0:
        low, high = low - 0.1, low
    root = float(brentq(excess, low, high, xtol=_PRECISION / 4))
    return math.exp(root + _PRECISION)


@lru_cache(maxsize=2)
def _composed(hidden: tuple[HiddenMessages, ...], adjacency: Adjacency) -> list[ComposedLoss]:
    """Return the losses of all messages, for each order of the pairs to be told apart; fakes above 0."""
    if not hidden:
        return []
    deviation = math.sqrt(sum(one.messages * min(1.0, 1 / one.fakes) for one in hidden))
    pairs = [(_losses(one.fakes, deviation / _STEPS), one.messages) for one in hidden]
    rising, falling = ([(orders[which], times) for orders, times in pairs] for which in (0, 1))
    if adjacency == "replace-one":
        return [compose([*rising, *falling])]
    return [compose(rising), compose(falling)]


def _losses(fakes: float, step: float) -> tuple[PrivacyLossDistribution, PrivacyLossDistribution]:
    """Return the losses of a count with a message against one without it, and of the reverse."""
    reach = _DEVIATIONS * math.sqrt(fakes) + _MORE
    counts = np.arange(max(0, math.floor(fakes - reach)), math.ceil(fakes + reach) + 1)
    # By the ratios of neighbours, whose rounding errors hardly add up.
    logs = np.append(0.0, np.cumsum(np.log(fakes / counts[1:])))
    masses = np.exp(logs - logs.max())
    masses *= (1 - 2 * _TAIL) / masses.sum()
    without, including = np.append(masses, 0.0), np.append(0.0, masses)
    one, other = (including, without), (without, including)
    return PrivacyLossDistribution.of_pair(*one, step), PrivacyLossDistribution.of_pair(*other, step)
