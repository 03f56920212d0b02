"""Audits sums with noise: what a server that colludes with some devices reads, or a trusted one releases."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TypeVar, cast

import numpy as np

from dprec import accounting
from dprec.arrays import Floats, Ints, Uint64s
from dprec.auditing import Sent, measured
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.private_als import statistics
from dprec.protocols.base import Promise
from dprec.protocols.findings import Finding, NoisySums
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from dprec.secure_aggregation import honest_shares
from dprec.sums import UNIT, Aggregation, SecureAggregation, ShuffledAggregation
from simulation.auditing.listening import Column, Suspicion, of_neighbors, of_one_origin

_BINS = 40
_LARGER_DELTA = 0.01
"""A probability at which fewer trials show more."""

_MESSAGES_AT_ONCE = 1 << 12
_FEW = (8, 16, 32, 64, 128, 256)

_FROM_HERE_A_TAIL, _TO_HERE = 2.5, 6.0
"""Deviations of the noise between which its tails are looked at closely."""

Numbers = Floats

AggregationT = TypeVar("AggregationT", bound=Aggregation)


def sum_findings(
    released: NoisySums, promise: Promise, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield how well sums with a user and without can be told apart, and whether noise is used again.

    Noise of different items is independent, so every item is a trial.
    """
    longest, apart = _extents(released, seed)
    loss = released.epsilon(promise.delta, longest)
    test = "the longest of some contributions"
    yield Finding(test, "user", promise.epsilon, loss, None, exact=True, power=1.0)
    between, loss = (released.epsilon(promise.delta, each, "replace-one") for each in (1.0, apart))
    test = "two contributions that are far apart"
    yield Finding(test, "user", between, loss, None, exact=True, power=1.0)
    sums = _sums_of(released, promise.delta)
    suspected = list(sums.suspicions(trials, seed))
    failure /= 2 + len(suspected)
    pair = sums.sides(trials, seed, released.sensitivity)
    also = f"{sums.test}, but for a probability of {_LARGER_DELTA:g}"
    for test, delta, promised in (
        (sums.test, promise.delta, promise.epsilon),
        (also, _LARGER_DELTA, sums.epsilon(released, _LARGER_DELTA)),
    ):
        result = measured([pair], failure, delta)
        power = result.power(promised)
        yield Finding(test, "user", promised, result.at_least, None, exact=False, power=power)
    yield from (suspicion.finding(failure) for suspicion in suspected)


@dataclass(frozen=True, eq=False)
class _Sums(ABC):
    """What a protocol releases, for as many items as there are trials."""

    aggregation: Aggregation
    multipliers: tuple[float, ...]
    """Noise of each release."""
    test: str
    """What is compared, in words."""

    def epsilon(self, released: NoisySums, delta: float) -> float:
        """Return what is promised of what is compared."""
        return released.epsilon(delta)

    @abstractmethod
    def sides(self, trials: int, seed: int, sensitivity: float) -> tuple[Sent, Sent]:
        """Return what is seen with a user and without, or with another, many times."""

    def suspicions(self, trials: int, seed: int) -> Iterator[Suspicion]:
        """Yield where noise could be used again."""
        return iter(())


class _Noise(_Sums):
    """Sums with noise."""

    def sides(self, trials: int, seed: int, sensitivity: float) -> tuple[Sent, Sent]:
        moved = sensitivity * self.contribution
        sides = [self.releases(trials, seed + side) for side in (0, 1)]
        return self.seen([numbers + moved for numbers in sides[0]]), self.seen(sides[1])

    @abstractmethod
    def releases(self, items: int, seed: int, total: int = 0) -> list[Numbers]:
        """Return the noise of each release, in units of a contribution, shape (items, width)."""

    @cached_property
    def contribution(self) -> Numbers:
        """What a user of the largest contribution adds to a sum, shape (width,)."""
        most = np.array([0, 1]), np.zeros(1, dtype=np.int32), np.array([1 << statistics.TARGET_BITS])
        contributions = statistics.StatisticsContributions(*most, np.ones((1, 1), dtype=np.float32))
        alone: Numbers = self._released(contributions, 1, 0.0, np.ones((2, 1), dtype=np.uint64))[0]
        return alone

    def seen(self, releases: list[Numbers]) -> Sent:
        """Return releases as evidence: all of them along the contribution, and the tails of each number."""
        precisions = np.array([multiplier**-2 for multiplier in self.multipliers])
        along = [numbers @ self.contribution for numbers in releases]
        whole: Numbers = np.tensordot(precisions / precisions.sum(), np.array(along), 1)
        # A contribution is 1 long: bins of a quarter of the noise tell all that matters.
        width = max(float(precisions.sum() ** -0.5) / 4, 1 / 16)
        binned = np.clip(np.floor(whole / width) + _BINS // 2, 0, _BINS).astype(np.int64)
        steps = float(np.abs(self.contribution).min()) / 4
        tails = tuple(
            _tail(numbers[:, column], multiplier, steps)
            for numbers, multiplier in zip(releases, self.multipliers, strict=True)
            for column in range(numbers.shape[1])
        )
        return Sent((binned,), tails, np.zeros((binned.size, 0), dtype=np.float32))

    def _released(
        self, contributions: statistics.StatisticsContributions, items: int, multiplier: float, keys: Uint64s
    ) -> Numbers:
        """Return the sums of what devices send, with the noise that is theirs, shape (items, width)."""
        layout = _layout(items)
        reports = self.aggregation.encode(
            contributions, layout, multiplier, RoundDraws(DeviceDraws(keys), 1, 0)
        )
        _, aggregate = self.aggregation.decode(reports, layout, multiplier)
        released: Numbers = self.aggregation.release(aggregate, layout, multiplier, ReleaseDraws(0, 1))
        return released / layout.scales


class _OfDevices(_Noise):
    """Sums to which the devices add the noise; the server takes off that of those who collude with it.

    As many devices have dropped out as are tolerated. One release stands for all: it has the noise that
    theirs amounts to.
    """

    aggregation: SecureAggregation

    def releases(self, items: int, seed: int, total: int = 0) -> list[Numbers]:
        aggregation = self.aggregation
        assert aggregation.users is not None
        left = honest_shares(aggregation.users, aggregation.dropouts, aggregation.colluders)
        devices = _without_ratings(left), items
        return [self._released(*devices, each, _keys(seed, left)) for each in self.multipliers]


class _OfCounts(_Sums):
    """Counts of messages among the fakes of as few honest devices as are tolerated.

    One message of one release stands for all of them: it has the fakes that theirs amount to. Another stands
    for what is sent instead by who has something else to say, or nothing.
    """

    aggregation: ShuffledAggregation

    def epsilon(self, released: NoisySums, delta: float) -> float:
        mechanism = self.aggregation.cost(self.multipliers[0], released.sensitivity).mechanism
        assert mechanism is not None
        adjacency: accounting.Adjacency = "add-or-remove-one" if released.sensitivity == 1 else "replace-one"
        return float(mechanism.composed([(mechanism, np.ones(1, np.bool_))], delta, adjacency)[0])

    def sides(self, trials: int, seed: int, sensitivity: float) -> tuple[Sent, Sent]:
        (own, other), (without, instead) = (self._counts(trials, seed + side) for side in (0, 1))
        return Sent.of_rounds([own + 1, other]), Sent.of_rounds([without, instead + 1])

    def _counts(self, messages: int, seed: int) -> tuple[Ints, Ints]:
        """Return how often each of so many messages is a fake, and each of as many others."""
        aggregation, (multiplier,), layout = self.aggregation, self.multipliers, _layout(_MESSAGES_AT_ONCE)
        assert aggregation.users is not None
        left = honest_shares(aggregation.users, aggregation.dropouts, aggregation.colluders)
        devices, counts = DeviceDraws(_keys(seed, left)), []
        for number in range(1, 1 + -(-2 * messages // (_MESSAGES_AT_ONCE * layout.width))):
            draws = RoundDraws(devices, number, 0)
            reports = aggregation.encode(_without_ratings(left), layout, multiplier, draws)
            total = aggregation.decode(reports, layout, multiplier)[1].total
            counts.append(total[: _MESSAGES_AT_ONCE * layout.width])
        own, other = np.concatenate(counts)[: 2 * messages].reshape(2, messages)
        return own, other


def _without_ratings(users: int) -> statistics.StatisticsContributions:
    indptr, items, targets = np.zeros(users + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
    return statistics.StatisticsContributions(indptr, items, targets, np.ones((users, 1), np.float32))


def _keys(seed: int, users: int) -> Uint64s:
    return words(seed, "devices of a total", 0, 2 * users).reshape(2, users)


class _OfServer(_Noise):
    """Sums to which a trusted server adds the noise, in all rounds."""

    def releases(self, items: int, seed: int, total: int = 0) -> list[Numbers]:
        layout = _layout(items)
        sums = Aggregate(np.full((items, layout.width), total, dtype=np.int64), None, 1)
        without = total * UNIT
        return [
            self.aggregation.release(sums, layout, multiplier, ReleaseDraws(seed, number)) / layout.scales
            - without
            for number, multiplier in enumerate(self.multipliers, start=1)
        ]

    def suspicions(self, trials: int, seed: int) -> Iterator[Suspicion]:
        own, other_run = self._classes(trials, seed), self._classes(trials, seed + 1)
        if len(own) > 1:
            rounds = tuple(of_one_origin(one, other) for one, other in pairwise([*own, own[0]]))
            yield Suspicion("noise of two rounds", rounds)
        yield Suspicion("noise of two items", tuple(map(of_neighbors, own)))
        for test, others in (
            ("noise of two runs", other_run),
            ("noise of other sums", self._classes(trials, seed, total=1)),
        ):
            pairs = zip(own, others, strict=True)
            yield Suspicion(test, tuple(of_one_origin(one, other) for one, other in pairs))

    def _classes(self, items: int, seed: int, total: int = 0) -> list[Column]:
        """Return the noise of an item's first number in each round, in quarters of a deviation."""
        releases = zip(self.releases(items, seed, total), self.multipliers, strict=True)
        return [
            np.clip(np.floor(4 * numbers[:, 0] / multiplier) + _BINS // 2, 0, _BINS).astype(np.int64)
            for numbers, multiplier in releases
        ]


def _sums_of(released: NoisySums, delta: float) -> _Sums:
    aggregation, multipliers = released.aggregation, released.multipliers
    if aggregation.trust == "shuffle":
        single = replace(cast(ShuffledAggregation, aggregation), messages=1, null_fakes=1)
        epsilon = released.epsilon(delta)
        spent = accounting.PrivacyBudget(epsilon=epsilon, per="user", composition="pld", delta=delta)
        test = "a message, in the counts of all, among the fakes of honest devices"
        return _OfCounts(
            _among(single, (*_FEW, 4 * single.colluders)),
            single.multipliers(spent, (1.0,), released.sensitivity),
            test,
        )
    if aggregation.devices_add_noise:
        composed = float(sum(each**-2 for each in multipliers) ** -0.5)
        # Noise is added after both, and is the same.
        plain = replace(cast(SecureAggregation, aggregation), sketch=None, rotation=False)
        test = f"a whole profile, in the total less the noise of {plain.colluders} colluding devices"
        return _OfDevices(_among(plain, (*_FEW, 4 * plain.colluders)), (composed,), test)
    return _OfServer(aggregation, multipliers, "a whole profile, in the sums of all rounds")


def _layout(items: int) -> statistics.StatisticsLayout:
    return statistics.StatisticsLayout(np.full(items, statistics.UNIT_WEIGHT), 0, 1.0, 1.0, 0.5, limit=1)


def _tail(numbers: Numbers, multiplier: float, step: float) -> Column:
    """Return 0 for numbers in the middle of the noise, and else how many steps it is to the middle."""
    beyond = np.clip(np.abs(numbers) / multiplier, _FROM_HERE_A_TAIL, _TO_HERE) - _FROM_HERE_A_TAIL
    steps = np.ceil(beyond * multiplier / step).astype(np.int64)
    # Two numbers for each distance: above and below.
    return np.where(steps > 0, 2 * steps - (numbers > 0), 0)


def _extents(released: NoisySums, seed: int) -> tuple[float, float]:
    """Return how long the longest contribution is, and how far two are apart, in what is allowed."""
    aggregation = _among(released.aggregation, (64, 128, 256, 1024))
    longest, apart = 0.0, 0.0
    for layout, contributions in released.probes(seed):
        keys = words(seed, "devices that contribute", 0, 2 * contributions.n_users)
        draws = RoundDraws(DeviceDraws(keys.reshape(2, contributions.n_users)), 1, 0)
        reports = aggregation.encode(contributions, layout, 0.0, draws)
        sums = [aggregation.decode([report], layout, 0.0)[1] for report in reports]
        differences = [replace(one, total=one.total - other.total) for one, other in combinations(sums, 2)]
        longest = max([longest, *(aggregation.length(each, layout, 0.0) for each in sums)])
        apart = max([apart, *(aggregation.length(each, layout, 0.0) for each in differences)])
    return longest, apart / aggregation.farthest(released.farthest)


def _among(aggregation: AggregationT, sizes: Iterable[int]) -> AggregationT:
    """Return the aggregation for about as few devices as it accepts, so that totals are quickly made."""
    *tried, most = sizes
    for users in tried:
        with suppress(SettingError):
            return aggregation.among(users)
    return aggregation.among(most)
