"""Events: what was released about whom, by which mechanism, and how events of a kind compose.

Sums with noise cost what Gaussian DP says, or nearly so (`dprec.accounting.skellam`). A release whose
Gaussian noise has ``m`` times its sensitivity as standard deviation is as easy to tell apart as two normal
distributions whose means are ``mu = 1 / m`` deviations apart. Releases that are chosen one after the other,
each from what came before, compose exactly: ``mu^2`` is the sum of theirs (Dong, Roth and Su [dong2022],
Corollary 3.3).
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from dprec.accounting.pld import PrivacyLossDistribution, common_grid, compose
from dprec.accounting.shuffling import ShuffledProfiles, ShuffledReports
from dprec.arrays import Bools, Floats, Ints, Uint8s, numbered
from dprec.channel import Channel
from dprec.errors import SettingError, check_least
from dprec.randomness import DRAWS

_PRECISION = 1e-12
"""Relative error of a root; results are moved by as much to the side that costs more."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of one release, for mu above 0 (Balle and Wang [balle2018], Theorem 8)."""
    from scipy.special import log_ndtr

    above = float(log_ndtr(mu / 2 - epsilon / mu))
    below = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(above) * -math.expm1(min(below - above, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon of one release at a delta, rounded up; infinite without noise."""
    from scipy.optimize import brentq

    check_least("a distance", mu)
    if math.isinf(mu):
        return math.inf
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    bound = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    root = brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, bound, rtol=_PRECISION)
    return float(root) * (1 + 2 * _PRECISION)


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-private, for a delta from 1e-12 to 1."""
    from scipy.optimize import brentq

    # Between these distances of two means, in deviations, it is sought.
    ends = 1e-12, 1e6
    root = brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, *ends, xtol=1e-15, rtol=_PRECISION)
    return float(root) * (1 - 2 * _PRECISION)


def multiplier_of_updates(multiplier: float, deviation: float) -> float:
    """Return the noise multiplier of updates that, with a count of short ones beside them, cost as much.

    Beside its update, at most one clip long, a user adds b - 1/2 to a count, b being 1 if the update was not
    clipped and 0 otherwise; without an update it adds 0 to both. As one vector with Gaussian noise the two
    are (multiplier^-2 + (2 deviation)^-2)^1/2 deviations from none, and twice as far from any other (Andrew
    et al. [andrew2021], Theorem 1). This is solved for the multiplier of the updates.

    ``multiplier``: that of both; ``deviation``: of the count's noise. Raises SettingError where the count
    alone would cost as much.
    """
    if 2 * deviation <= multiplier:
        accepted = f"more than {multiplier / 2:.6g}, half the noise multiplier of the round"
        raise SettingError("deviation", f"{deviation:.6g}", accepted)
    return multiplier / math.sqrt(1 - (multiplier / (2 * deviation)) ** 2)


Epsilon = float | Floats
"""A privacy loss, a natural logarithm from 0 to infinity: one for all participants, or shape (users,)."""

Adjacency = Literal["add-or-remove-one", "replace-one"]
"""What a loss per user compares: a user's profile with none, or any two profiles of a user.

None is that of a user who takes part and holds nothing: it adds nothing to a sum but a device's share of the
noise, and sends as much as any. Whether a device takes part is seen by whom it sends to; no loss is about it.
"""


def check_adjacency(adjacency: str) -> None:
    """Refuse what losses do not compare; raises ValueError."""
    if adjacency not in get_args(Adjacency):
        raise ValueError(f"{adjacency!r}; accepted: {', '.join(get_args(Adjacency))}")


@dataclass(frozen=True)
class Loss:
    """What one person loses, in both units."""

    per_rating: float
    per_user: float
    """Epsilon for the change of one rating, and for that of the whole profile; infinite if nothing is
    protected. Per rating, 0 if there is no rating.
    """

    @classmethod
    def composed(cls, losses: Iterable[Self]) -> Self:
        """Return losses by basic composition, rounded once: equal shares of an epsilon never exceed it."""
        several = list(losses)
        return cls(
            *(math.fsum(getattr(loss, unit) for loss in several) for unit in ("per_rating", "per_user"))
        )


class EventMechanism(ABC):
    """By which mechanism something was released, where its losses compose better than by their sum."""

    needs_delta: ClassVar[bool] = False
    """Whether no epsilon holds without a delta."""

    @property
    def group(self) -> Hashable:
        """Events whose mechanisms are of one group compose together."""
        return type(self)

    @classmethod
    @abstractmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return each user's epsilon at a delta for a group's events in order, shape (users,)."""

    def shuffled(self, hidden: ShuffledReports | ShuffledProfiles) -> "EventMechanism":
        """Return the mechanism with its reports shuffled; by default nothing of it is reports."""
        return self

    def per_report(self, delta: float) -> Floats | None:
        """Return an epsilon of each report by itself, shape (reports,); None if a user's are one message."""
        return None

    def of_user(self, user: int) -> Self:
        """Return the mechanism about one user alone; itself, if all lose alike."""
        return self

    @property
    def weight(self) -> int | Ints | None:
        """How much of an event is about a user, for all or of shape (users,), if nothing else matters.

        Of events that are alike, nobody loses more than whoever has the largest sum. By default, None.
        """
        return None

    def repeated(self, user: int, times: int) -> Self:
        """Return the mechanism that says of one user what so many events do, where `weight` is known."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ChannelDraws(EventMechanism):
    """Independent draws about every user, from one channel per user; they compose by their PLDs.

    Draws from a channel compare any two profiles, whatever the adjacency is.
    """

    channels: tuple[Channel, ...]
    channel: int | Ints = 0
    """Place in `channels` of each user's; of no meaning without draws; shape (users,)."""
    draws: int | Ints = 1
    """Number of draws about each user; shape (users,)."""
    added: Floats | None = None
    """A loss of each user that is added to the composed one: of few draws about many ratings each, which
    composition would hardly lower; shape (users,).
    """

    def __post_init__(self) -> None:
        check_least("a number of draws", float(np.min(self.draws, initial=0)))
        if not np.issubdtype(np.asarray(self.draws).dtype, np.integer):
            raise ValueError(f"draws of {np.asarray(self.draws).dtype}; accepted: integers")

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return the losses of all draws, shape (users,); infinite if a channel has none."""
        times: dict[Self, Ints] = {}
        for mechanism, users in events:
            times[mechanism] = times.get(mechanism, 0) + users.astype(np.int64)
        # Draws that all are from one channel count together.
        groups: dict[Hashable, tuple[tuple[Channel, ...], int | Ints, Ints]] = {}
        for mechanism, count in times.items():
            key: Hashable = mechanism.channels if len(mechanism.channels) == 1 else mechanism
            earlier = groups[key][2] if key in groups else 0
            groups[key] = mechanism.channels, mechanism.channel, mechanism.draws * count + earlier
        kinds = np.zeros(events[0][1].size, dtype=np.int64)
        for _, channel, draws in groups.values():
            _, numbers = numbered(np.where(draws > 0, channel * (draws.max() + 1) + draws, 0))
            _, kinds = numbered(kinds * (numbers.max() + 1) + numbers)
        places = [np.broadcast_to(channel, kinds.shape) for _, channel, _ in groups.values()]
        firsts = np.empty(int(kinds.max(initial=-1)) + 1, dtype=np.int64)
        firsts[kinds[::-1]] = np.arange(kinds.size - 1, -1, -1)
        losses, cache = [], _Cache()
        for user in firsts.tolist():
            user_draws = [
                (channels[int(place[user])], int(draws[user]))
                for (channels, _, draws), place in zip(groups.values(), places, strict=True)
            ]
            losses.append(_loss_of_draws(user_draws, delta, cache))
        added = [mechanism.added * count for mechanism, count in times.items() if mechanism.added is not None]
        return np.array(losses)[kinds] + sum(added, np.zeros(kinds.size))

    def shuffled(self, hidden: ShuffledReports | ShuffledProfiles) -> EventMechanism:
        """Return the draws with the bound that holds once they are shuffled."""
        return Shuffled(self, hidden)

    def of_user(self, user: int) -> Self:
        """Return the draws about the user."""
        channel, draws = (
            int(number[user]) if isinstance(number, np.ndarray) else number
            for number in (self.channel, self.draws)
        )
        return replace(
            self, channel=channel, draws=draws, added=None if self.added is None else self.added[[user]]
        )

    @property
    def weight(self) -> int | Ints | None:
        """The number of draws, if all are from one channel."""
        return self.draws if len(self.channels) == 1 and self.added is None else None

    def repeated(self, user: int, times: int) -> Self:
        """Return all draws about the user."""
        draws = self.draws if isinstance(self.draws, int) else int(self.draws[user])
        return replace(self, channel=0, draws=times * draws)


@dataclass(frozen=True, eq=False)
class Shuffled(EventMechanism):
    """Draws whose reports came through shufflers: what holds of the draws, or by amplification if less."""

    draws: ChannelDraws
    hidden: ShuffledReports | ShuffledProfiles
    """The reports, and among how many each is hidden."""

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return the lower of both bounds; amplified losses of several events add up."""
        unamplified = ChannelDraws.composed(
            [(mechanism.draws, users) for mechanism, users in events], delta, adjacency
        )
        share = delta / len(events)
        bounds = {
            mechanism: mechanism.hidden.per_user(share)
            for mechanism in dict.fromkeys(mechanism for mechanism, _ in events)
        }
        amplified = (np.where(users, bounds[mechanism], 0.0) for mechanism, users in events)
        return np.minimum(unamplified, sum(amplified, np.zeros(unamplified.size)))

    def per_report(self, delta: float) -> Floats | None:
        """Return the losses of reports that are messages of their own."""
        return self.hidden.per_report(delta)

    def of_user(self, user: int) -> Self:
        """Return the user's draws, among as many reports."""
        return replace(self, draws=self.draws.of_user(user), hidden=self.hidden.of_user(user))


@dataclass(frozen=True, eq=False)
class NoisySum(EventMechanism):
    """A sum over users with noise, released once: Gaussian DP, or what its noise costs."""

    distance: float
    """How far a user's profile moves the sum beside none, in standard deviations of the noise."""
    cost: Callable[[float, float], float] = gaussian_epsilon
    """From the distance of all sums together, the root of the summed squares, and delta to epsilon: equal for
    sums that compose with each other.
    """
    between_profiles: float = 2.0
    """How much further than a profile beside none two profiles of a user are apart, at most."""
    needs_delta: ClassVar[bool] = True
    weight: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_least("a distance", self.distance)

    def repeated(self, user: int, times: int) -> Self:
        """Return the sum that is as far from one without the user as all are together."""
        return replace(self, distance=math.sqrt(times) * self.distance)

    @property
    def group(self) -> Hashable:
        """Sums whose noise costs the same compose together."""
        return type(self), self.cost

    @classmethod
    def composed(cls, events: Sequence[tuple[Self, Bools]], delta: float, adjacency: Adjacency) -> Floats:
        """Return what the sums cost in which a user takes part."""
        squared = np.zeros(events[0][1].size)
        for mechanism, users in events:
            factor = mechanism.between_profiles if adjacency == "replace-one" else 1.0
            squared[users] += (factor * mechanism.distance) ** 2
        kinds, of_user = np.unique(squared, return_inverse=True)
        cost = events[0][0].cost
        return np.array([cost(float(np.sqrt(kind)), delta) if kind else 0.0 for kind in kinds])[of_user]


_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Event:
    """What was released about those who took part in one exchange, and what it costs by itself."""

    round_index: int
    """The round that it belongs to, from 1; 0 for none, where nothing is sent."""
    users: Uint8s
    """Who took part: one bit per user, in user order, the highest bit of a byte first;
    shape (ceil(users / 8),).
    """
    per_rating: Epsilon
    per_user: Epsilon
    """Its epsilons, without a delta; one number if all participants lose the same. Entries of users who did
    not take part have no meaning; nor have those per rating of users without a rating to protect.
    Shape (users,).
    """
    mechanism: EventMechanism | None = None
    """None if nothing but the epsilons is known, which add up."""

    def took_part(self, n_users: int) -> Bools:
        """Return who took part, shape (users,)."""
        return np.unpackbits(self.users, count=n_users).view(np.bool_)

    @property
    def weight(self) -> Epsilon | Ints | None:
        """How much of it is about a user, if nothing else matters; see `EventMechanism.weight`."""
        # Finite, so that it is 0 times it is 0.
        return np.minimum(self.per_user, _LARGEST) if self.mechanism is None else self.mechanism.weight

    def costs_like(self, other: "Event") -> bool:
        """Return whether whoever takes part in both loses as much per user by either."""
        parameters, other_parameters = (
            {} if event.mechanism is None else vars(event.mechanism) for event in (self, other)
        )
        return (
            type(self.mechanism) is type(other.mechanism)
            and _equal(self.per_user, other.per_user)
            and all(_equal(parameters[name], other_parameters[name]) for name in parameters)
        )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return one is other or np.array_equal(one, other)
    return bool(one == other)


@lru_cache(maxsize=256)
def dominating_channel(epsilon: float) -> Channel:
    """Return a channel that dominates every mechanism with a loss of at most epsilon, above 0 or infinite.

    It is the randomised response of one bit (Kairouz, Oh and Viswanath [kairouz2015], section 3).
    """
    # Downwards, so that the channel's loss is not below epsilon; beyond 700, where one draw lies anyway, the
    # exponential would overflow.
    lies = math.floor(DRAWS / (1 + math.exp(min(epsilon, 700.0))) * (1 - 1e-15))
    lies = 0 if math.isinf(epsilon) else max(1, lies)
    weights = np.array([[DRAWS - lies, lies], [lies, DRAWS - lies]], dtype=np.uint64)
    return Channel(weights, np.arange(2.0), np.arange(2.0))


_KNOWN: dict[tuple[float, tuple[bytes, ...], tuple[int, ...]], float] = {}
"""Composed losses, by delta, the digests of channels and how often each was drawn from: runs compose the
same.
"""


@dataclass(frozen=True)
class _Cache:
    """What is computed once for all users whose losses are composed together."""

    grids: dict[tuple[Channel, ...], list[PrivacyLossDistribution]] = field(default_factory=dict)
    digests: dict[Channel, bytes] = field(default_factory=dict)


def _loss_of_draws(draws: Sequence[tuple[Channel, int]], delta: float, cache: _Cache) -> float:
    """Return an epsilon of independent draws: channels, and how often each is drawn from."""
    costly = [(channel, times) for channel, times in draws if times > 0 and channel.epsilon > 0]
    if not costly:
        return 0.0
    channels, times = zip(*costly, strict=True)
    if any(math.isinf(channel.epsilon) for channel in channels):
        return math.inf
    for channel in channels:
        if channel not in cache.digests:
            shape = repr(channel.weights.shape).encode()
            cache.digests[channel] = hashlib.sha256(shape + channel.weights.tobytes()).digest()
    case = delta, tuple(cache.digests[channel] for channel in channels), times
    if case not in _KNOWN:
        if len(_KNOWN) >= 100_000:
            _KNOWN.clear()
        basic = sum(channel.epsilon * count for channel, count in costly)
        if basic <= delta:
            _KNOWN[case] = 0.0  # an ε alone is at most ε = 0 with δ = tanh(ε / 2); too small for a grid
        else:
            if channels not in cache.grids:
                cache.grids[channels] = common_grid(channels)
            total = compose(list(zip(cache.grids[channels], times, strict=True)))
            _KNOWN[case] = min(basic, total.epsilon(delta))
    return _KNOWN[case]
