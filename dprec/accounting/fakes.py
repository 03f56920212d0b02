"""Messages that cannot be linked to anybody, hidden among fakes: what counts of them tell.

Every device sends r messages, no two of them alike, through a shuffler, and fakes: for every message that
there can be, a Poisson number of them (Ghazi, Kumar, Manurangsi and Pagh [ghazi2020]). Who has less to say
sends null messages instead, all alike, of which there are k r times as many fakes, k at least 1. Poisson
numbers add up: the fakes of all devices are Poisson numbers whose means are the sums of theirs, f for each
message and k r f for the null message. So the server learns a count for every message that there can be, and

    Poisson(f)    against    1 + Poisson(f),    c of which has the loss log(c / f),

tells whether somebody sent one. The others' messages are taken to be known. Losses of counts add up; their
distribution is found as in `dprec.accounting.pld`, once for each order, since a count of 0 can only be one
without. Messages that a device draws are a mixture of what it can send, which tells no more than the worst.

*A profile and none* ("add-or-remove-one"). Who takes part and holds nothing sends r null messages. So with
j numbers named j counts rise by 1, and that of null messages, Poisson(k r f), falls by j. The worst j is r:
one rising count less can be seen by looking away, and a fall by j is no easier to see than one by j + 1, in
either order and for any epsilon, as Poisson numbers have a monotone likelihood ratio: the best test is a
threshold, which the further fall passes more often. Pairs that dominate by parts do so together (Zhu, Dong
and Wang [zhu2022], Theorem 10).

*Two profiles* ("replace-one"). Where a counts rise, b <= a others fall and the null messages fall by a - b,
r counts that rise and r that fall tell no less: a of the former and b of the latter are those, and the sum of
a - b further ones with more fakes is the count of null messages. So the worst are two profiles that name r
numbers each, none in common. With k = 1 a profile beside none is nearly as bad; the larger k is, the nearer
it is to r rising counts alone.

*Taking part at all* is another question (`participation_epsilon`): an absent device takes its fakes along.
Shufflers and server see who takes part.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from dprec.accounting.calibration import rounded_up
from dprec.accounting.events import Adjacency, EventMechanism, check_adjacency, largest_mu
from dprec.accounting.pld import ComposedLoss, PrivacyLossDistribution, compose
from dprec.arrays import Bools, Floats, Ints
from dprec.errors import SettingError, check_least

_DEVIATIONS, _MORE = 9, 40
"""Counts this far from the mean, in deviations and beyond them, have a probability below `_TAIL`."""

_TAIL = 1e-16

_NEARLY_CERTAIN = 0.5
"""Probability of an infinite loss from which on a delta of 1 is near enough."""

_PRECISION = 1e-5
"""Relative precision of a number of fakes, before it is rounded up."""

MOST_FAKES = 1e10
"""Beyond any shuffler; what they hide is counted one by one, within nine deviations of so many."""


@dataclass(frozen=True)
class HiddenMessages(EventMechanism):
    """Messages of each user, no two alike but null messages, counted among fakes; see the module."""

    messages: int
    """r, messages of a user, null messages among them; at least 1."""
    fakes: float
    """f, mean number of the fakes that hide each message: those of honest devices whose fakes arrived."""
    null_fakes: float = 1.0
    """k, mean number of the fakes of the null message over that of r messages; at least 1."""
    needs_delta: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_least("a number of messages", self.messages, 1)
        check_least("a number of fakes", self.fakes)
        check_least("a share of null fakes", self.null_fakes, 1)

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return what the counts of all events in which a user takes part cost, shape (users,)."""
        taken_part = np.stack([users for _, users in events], axis=1)
        kinds, of_user = np.unique(taken_part, axis=0, return_inverse=True)
        hidden = [
            tuple(mechanism for (mechanism, _), took_part in zip(events, kind, strict=True) if took_part)
            for kind in kinds
        ]
        epsilons = [hidden_epsilon(exchanges, delta, adjacency) for exchanges in hidden]
        return np.array(epsilons)[of_user.ravel()]


def hidden_delta(hidden: Sequence[HiddenMessages], epsilon: float, adjacency: Adjacency) -> float:
    """Return a delta with which an epsilon, at least 0, holds for messages of some exchanges together."""
    if _certain(hidden) > _NEARLY_CERTAIN:
        return 1.0
    return max((loss.delta(epsilon) for loss in _compared(hidden, adjacency)), default=0.0)


def hidden_epsilon(hidden: Sequence[HiddenMessages], delta: float, adjacency: Adjacency) -> float:
    """Return an epsilon that holds with a delta above 0; infinite if fakes are too few for any."""
    return _hidden_epsilon(tuple(hidden), delta, adjacency)


@lru_cache(maxsize=256)
def _hidden_epsilon(hidden: tuple[HiddenMessages, ...], delta: float, adjacency: Adjacency) -> float:
    if _certain(hidden) > min(delta, _NEARLY_CERTAIN):
        return math.inf
    return max((loss.epsilon(delta) for loss in _compared(hidden, adjacency)), default=0.0)


def participation_epsilon(hidden: Sequence[tuple[HiddenMessages, int]], devices: int, delta: float) -> float:
    """Return an epsilon for whether a device took part at all, against who sees nothing but the counts.

    Who sees which devices send messages, as shufflers and server do, knows it for certain.

    Without the device all counts lack its share of the fakes, f / n of f. Its r messages are at most as easy
    to see as if each raised another of n_kinds + k r counts among equal fakes, the null message being the sum
    of k r of these; and if it names r numbers, that is what it does. The other counts tell by their sum alone
    that their means are less: it is sufficient. So r counts and a sum are compared,

        1 + Poisson(f) with Poisson(f'),   Poisson(n f) with Poisson(n f'),   f' = f (1 - 1 / devices),

    n = n_kinds + k r - r, in both orders.

    Parameters
    ----------
    hidden : sequence of (HiddenMessages, int)
        The exchanges, and of how many messages there can be besides the null message in each.
    devices : int
        Those whose fakes hide a message, the device itself among them; at least 2.
    delta : float
        Above 0.
    """
    exchanges = [exchange for exchange, _ in hidden]
    # Fewer fakes hide the messages where the device's own are gone.
    least = [HiddenMessages(exchange.messages, exchange.fakes * (1 - 1 / devices)) for exchange in exchanges]
    if _certain(least) > min(delta, _NEARLY_CERTAIN):
        return math.inf
    pairs: list[_Pair] = []
    for exchange, kinds in hidden:
        without = exchange.fakes * (1 - 1 / devices)
        other_counts = kinds + (exchange.null_fakes - 1) * exchange.messages
        pairs.append(((exchange.fakes, 1), (without, 0), exchange.messages))
        pairs.append(((other_counts * exchange.fakes, 0), (other_counts * without, 0), 1))
    return max((loss.epsilon(delta) for loss in _composed(tuple(pairs))), default=0.0)


def _certain(hidden: Sequence[HiddenMessages]) -> float:
    """Return how probable it is that one of the counts of r messages is 0, which cannot be with them.

    Fewer null messages than were sent of them are rarer: r of k r counts with their sum are 0 then.
    """
    if any(exchange.fakes <= 0 for exchange in hidden):
        return 1.0
    return -math.expm1(
        math.fsum(exchange.messages * math.log(-math.expm1(-exchange.fakes)) for exchange in hidden)
    )


@lru_cache(maxsize=256)
def least_fakes(
    messages: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "add-or-remove-one",
    shares: tuple[float, ...] = (1.0,),
    null_fakes: float = 1.0,
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
    null_fakes : float
        Of the null message, over those of r messages; at least 1.

    Raises SettingError for more than about `MOST_FAKES`.
    """
    from scipy.optimize import brentq

    def excess(logarithm: float) -> float:
        fakes = math.exp(logarithm)
        hidden = [HiddenMessages(messages, fakes / share, null_fakes) for share in shares]
        return math.log(hidden_delta(hidden, epsilon, adjacency) / delta)

    # About as many as for normal noise, by the squared distance of means.
    counts = messages * (2 if adjacency == "replace-one" else 1 + 1 / null_fakes)
    about = sum(shares) * counts / largest_mu(epsilon, delta) ** 2 + 1
    if about > MOST_FAKES * min(shares):
        found = f"{epsilon:g}, for which about {about:.2g} fakes would hide each message"
        raise SettingError("privacy.epsilon", found, f"more, for {MOST_FAKES:g} at most")
    low = math.log(about)
    high = low + 0.5
    while excess(high) > 0:
        low, high = high, high + 0.5
    while excess(low) <= 0:
        low, high = low - 0.1, low
    root = float(brentq(excess, low, high, xtol=_PRECISION / 4))
    return rounded_up(math.exp(root + _PRECISION))


_Count = tuple[float, int]
"""A Poisson number by its mean, and what is added to it."""

_Pair = tuple[_Count, _Count, int]
"""Two counts to be told apart, and in how many independent cases."""


def _compared(hidden: Sequence[HiddenMessages], adjacency: Adjacency) -> list[ComposedLoss]:
    """Return the losses of the counts that differ between the worst two profiles; fakes above 0."""
    check_adjacency(adjacency)
    pairs: list[_Pair] = []
    for exchange in hidden:
        without, with_one = (exchange.fakes, 0), (exchange.fakes, 1)
        null = exchange.null_fakes * exchange.messages * exchange.fakes
        fall = (without, with_one, exchange.messages), ((null, 0), (null, exchange.messages), 1)
        pairs += [(with_one, without, exchange.messages), fall[adjacency != "replace-one"]]
    return _composed(tuple(pairs))


@lru_cache(maxsize=2)
def _composed(pairs: tuple[_Pair, ...]) -> list[ComposedLoss]:
    """Return the losses of all counts together, for each order of what is to be told apart."""
    if not pairs:
        return []
    # About how many deviations the means of two counts are apart.
    apart = (((sum(one) - sum(other)) / math.sqrt(max(1.0, one[0])), times) for one, other, times in pairs)
    squares = (times * distance**2 for distance, times in apart)
    step = math.sqrt(math.fsum(squares)) / 8192  # points per deviation of the composed loss
    swapped = ((other, one, times) for one, other, times in pairs)
    orders = dict.fromkeys(tuple(sorted(order)) for order in (pairs, swapped))
    compared = {pair[:2] for order in orders for pair in order}
    distributions = {counts: _losses(*counts, step) for counts in compared}
    return [compose([(distributions[one, other], times) for one, other, times in order]) for order in orders]


def _losses(one: _Count, other: _Count, step: float) -> PrivacyLossDistribution:
    """Return the losses of a count against another."""
    ends = [
        mean + added + side * (_DEVIATIONS * math.sqrt(mean) + _MORE)
        for mean, added in (one, other)
        for side in (-1, 1)
    ]
    counts = np.arange(max(0, math.floor(min(ends))), math.ceil(max(ends)) + 1)
    return PrivacyLossDistribution.of_pair(_masses(one, counts), _masses(other, counts), step)


def _masses(count: _Count, counts: Ints) -> Floats:
    """Return the probabilities of consecutive counts, among which are all but `_TAIL` at either end."""
    mean, added = count
    fakes = counts - added
    possible = fakes[fakes >= 0]
    # By the ratios of neighbours, whose rounding errors hardly add up.
    logs = np.append(0.0, np.cumsum(np.log(mean / possible[1:])))
    masses: Floats = np.zeros(counts.size)
    masses[fakes >= 0] = np.exp(logs - logs.max())
    masses *= (1 - 2 * _TAIL) / masses.sum()
    return masses
