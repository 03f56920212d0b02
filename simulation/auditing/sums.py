"""Audits sums with noise: what a server that colludes with some devices reads, or a trusted one releases."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TypeVar, cast

import numpy as np

from dprec import accounting
from dprec.arrays import Floats, Uint64s
from dprec.auditing import Sent
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.private_als import statistics
from dprec.protocols.base import Promise
from dprec.protocols.findings import Finding, NoisySums
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from dprec.secure_aggregation import honest_shares
from dprec.sums import UNIT, Aggregation, SecureAggregation, ShuffledAggregation
from simulation.auditing.experiments import NOTHING_SEEN, exact, sampled
from simulation.auditing.listening import Column, Suspicion, of_neighbors, of_one_origin

_BINS = 40
_LARGER_DELTA = 0.01
"""A probability at which fewer trials show more."""

_MESSAGES_AT_ONCE = 1 << 12
_FEW = (8, 16, 32, 64, 128, 256)

_FROM_HERE_A_TAIL, _TO_HERE = 2.5, 6.0
"""Deviations of the noise between which its tails are looked at closely."""

Releases = Callable[[int, int, int], list[Floats]]
"""From a number of items, a seed and a total of each to releases, in units of a contribution; shapes (items,
width).
"""

AggregationT = TypeVar("AggregationT", bound=Aggregation)


def sum_findings(
    released: NoisySums, promise: Promise, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield how well sums with a user and without can be told apart, and whether noise is used again.

    Noise of different items is independent, so every item is a trial. Noise of devices is that of as many as
    are left if as many as are tolerated have dropped out, less that of those who collude with the server; one
    release stands for all of theirs, with the noise that these amount to.
    """
    longest, apart = _extents(released, seed)
    loss = released.epsilon(promise.delta, longest)
    yield exact("the longest of some contributions", "user", promise.epsilon, loss)
    between, loss = (released.epsilon(promise.delta, distance, "replace-one") for distance in (1.0, apart))
    yield exact("two contributions that are far apart", "user", between, loss)
    aggregation, multipliers = released.aggregation, released.multipliers
    suspected: list[Suspicion] = []
    if aggregation.trust == "shuffle":
        test = "a message, in the counts of all, among the fakes of honest devices"
        pair, at_larger = _of_counts(released, promise.delta, trials, seed)
    else:
        at_larger, test = released.epsilon(_LARGER_DELTA), "a whole profile, in the sums of all rounds"
        if aggregation.devices_add_noise:
            multipliers = (float(sum(multiplier**-2 for multiplier in multipliers) ** -0.5),)
            secure = cast(SecureAggregation, aggregation)
            test = f"a whole profile, in the total less the noise of {secure.colluders} colluding devices"
            aggregation = _among(secure, (*_FEW, 4 * secure.colluders))
            releases = _of_devices(aggregation, multipliers[0])
        else:
            releases = _of_server(aggregation, multipliers)
            suspected = list(_suspicions(releases, multipliers, trials, seed))
        pair = _with_and_without(aggregation, releases, multipliers, trials, seed, released.sensitivity)
    failure /= 2 + len(suspected)
    finding = sampled(test, "user", promise.epsilon, [pair], failure, promise.delta)
    # At a small delta, a few trials show nothing.
    if finding.defect or finding.power >= NOTHING_SEEN:
        yield finding
    also = f"{test}, but for a probability of {_LARGER_DELTA:g}"
    yield sampled(also, "user", at_larger, [pair], failure, _LARGER_DELTA)
    yield from (suspicion.finding(failure) for suspicion in suspected)


def _with_and_without(
    aggregation: Aggregation,
    releases: Releases,
    multipliers: tuple[float, ...],
    trials: int,
    seed: int,
    sensitivity: float,
) -> tuple[Sent, Sent]:
    """Return what is seen with a user of the largest contribution and without, many times.

    All releases are seen along the contribution, and of each number whether it is in a tail, and where.
    """
    parts = np.array([0, 1]), np.zeros(1, dtype=np.int32), np.array([1 << statistics.TARGET_BITS])
    largest = statistics.StatisticsContributions(*parts, np.ones((1, 1), dtype=np.float32))
    contribution: Floats = _summed(aggregation, largest, 1, 0.0, np.ones((2, 1), dtype=np.uint64))[0]
    precisions, moved = np.array([multiplier**-2 for multiplier in multipliers]), sensitivity * contribution
    # A contribution is 1 long: bins of a quarter of the noise tell all that matters.
    width = max(float(precisions.sum() ** -0.5) / 4, 1 / 16)
    step, sides = float(np.abs(contribution).min()) / 4, []
    for side in (0, 1):
        sums = [numbers if side else numbers + moved for numbers in releases(trials, seed + side, 0)]
        along = [numbers @ contribution for numbers in sums]
        weighted: Floats = np.tensordot(precisions / precisions.sum(), np.array(along), 1)
        binned = np.clip(np.floor(weighted / width) + _BINS // 2, 0, _BINS).astype(np.int64)
        tails = tuple(
            _tail(numbers[:, column], multiplier, step)
            for numbers, multiplier in zip(sums, multipliers, strict=True)
            for column in range(numbers.shape[1])
        )
        sides.append(Sent((binned,), tails, np.zeros((binned.size, 0), dtype=np.float32)))
    return sides[0], sides[1]


def _tail(numbers: Floats, multiplier: float, step: float) -> Column:
    """Return 0 for numbers in the middle of the noise, and else how many steps it is to the middle."""
    beyond = np.clip(np.abs(numbers) / multiplier, _FROM_HERE_A_TAIL, _TO_HERE) - _FROM_HERE_A_TAIL
    steps = np.ceil(beyond * multiplier / step).astype(np.int64)
    # Two numbers for each distance: above and below.
    return np.where(steps > 0, 2 * steps - (numbers > 0), 0)


def _of_devices(aggregation: Aggregation, multiplier: float) -> Releases:
    """Return the noise of devices that are left, once."""

    def releases(items: int, seed: int, total: int) -> list[Floats]:
        nothing, keys = _without_ratings(aggregation, seed)
        return [_summed(aggregation, nothing, items, multiplier, keys)]

    return releases


def _of_server(aggregation: Aggregation, multipliers: tuple[float, ...]) -> Releases:
    """Return the noise that a trusted server adds, in all rounds."""

    def releases(items: int, seed: int, total: int) -> list[Floats]:
        layout = _layout(items)
        sums = Aggregate(np.full((items, layout.width), total, dtype=np.int64), None, 1)
        return [
            aggregation.release(sums, layout, multiplier, ReleaseDraws(seed, number)) / layout.scales
            - total * UNIT
            for number, multiplier in enumerate(multipliers, start=1)
        ]

    return releases


def _suspicions(
    releases: Releases, multipliers: tuple[float, ...], trials: int, seed: int
) -> Iterator[Suspicion]:
    """Yield where a server could use noise again."""

    def classes(seed: int, total: int = 0) -> list[Column]:
        """Return the noise of an item's first number in each round, in quarters of a deviation."""
        return [
            np.clip(np.floor(4 * numbers[:, 0] / multiplier) + _BINS // 2, 0, _BINS).astype(np.int64)
            for numbers, multiplier in zip(releases(trials, seed, total), multipliers, strict=True)
        ]

    noise = classes(seed)
    if len(noise) > 1:
        rounds = tuple(of_one_origin(one, other) for one, other in pairwise([*noise, noise[0]]))
        yield Suspicion("noise of two rounds", rounds)
    yield Suspicion("noise of two items", tuple(map(of_neighbors, noise)))
    for test, other_noise in (
        ("noise of two runs", classes(seed + 1)),
        ("noise of other sums", classes(seed, total=1)),
    ):
        yield Suspicion(test, tuple(map(of_one_origin, noise, other_noise)))


def _of_counts(released: NoisySums, delta: float, trials: int, seed: int) -> tuple[tuple[Sent, Sent], float]:
    """Return counts of messages among the fakes of as few honest devices as are tolerated, and their loss.

    One message of one release stands for all of them: it has the fakes that theirs amount to. Another stands
    for what is sent instead by who has something else to say, or nothing. The loss is that at a larger delta.
    """
    single = replace(cast(ShuffledAggregation, released.aggregation), messages=1, null_fakes=1)
    budget = accounting.PrivacyBudget(
        epsilon=released.epsilon(delta), per="user", composition="pld", delta=delta
    )
    (multiplier,) = single.multipliers(budget, (1.0,), released.sensitivity)
    aggregation, layout = _among(single, (*_FEW, 4 * single.colluders)), _layout(_MESSAGES_AT_ONCE)
    sides = []
    for side in (0, 1):
        counts, at_once = [], _MESSAGES_AT_ONCE * layout.width
        nothing, keys = _without_ratings(aggregation, seed + side)
        for number in range(1, 1 + -(-2 * trials // at_once)):
            draws = RoundDraws(DeviceDraws(keys), number, 0)
            reports = aggregation.encode(nothing, layout, multiplier, draws)
            counts.append(aggregation.decode(reports, layout, multiplier)[1].total[:at_once])
        # How often each of so many messages is a fake, and each of as many others.
        one, other = np.concatenate(counts)[: 2 * trials].reshape(2, trials)
        sides.append(Sent.of_rounds([one, other + 1] if side else [one + 1, other]))
    mechanism = aggregation.cost(multiplier, released.sensitivity).mechanism
    assert mechanism is not None
    adjacency: accounting.Adjacency = "add-or-remove-one" if released.sensitivity == 1 else "replace-one"
    composed = mechanism.composed([(mechanism, np.ones(1, np.bool_))], _LARGER_DELTA, adjacency)
    return (sides[0], sides[1]), float(composed[0])


def _without_ratings(
    aggregation: Aggregation, seed: int
) -> tuple[statistics.StatisticsContributions, Uint64s]:
    """Return the contributions of as few honest devices as are tolerated, and the keys of their noise."""
    devices = cast(SecureAggregation | ShuffledAggregation, aggregation)
    assert devices.users is not None
    n_devices = honest_shares(devices.users, devices.dropouts, devices.colluders)
    nothing = np.zeros(n_devices + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
    keys = words(seed, "devices of a total", 0, 2 * n_devices).reshape(2, n_devices)
    return statistics.StatisticsContributions(*nothing, np.ones((n_devices, 1), np.float32)), keys


def _summed(
    aggregation: Aggregation,
    contributions: statistics.StatisticsContributions,
    items: int,
    multiplier: float,
    keys: Uint64s,
) -> Floats:
    """Return the sums of what devices send, with the noise that is theirs, shape (items, width)."""
    layout = _layout(items)
    reports = aggregation.encode(contributions, layout, multiplier, RoundDraws(DeviceDraws(keys), 1, 0))
    _, aggregate = aggregation.decode(reports, layout, multiplier)
    released: Floats = aggregation.release(aggregate, layout, multiplier, ReleaseDraws(0, 1))
    return released / layout.scales


def _layout(items: int) -> statistics.StatisticsLayout:
    return statistics.StatisticsLayout(np.full(items, statistics.UNIT_WEIGHT), 0, 1.0, 1.0, 0.5, limit=1)


def _extents(released: NoisySums, seed: int) -> tuple[float, float]:
    """Return how long the longest contribution is, and how far two are apart, in what is allowed."""
    aggregation = _among(released.aggregation, (64, 128, 256, 1024))
    longest, apart = 0.0, 0.0
    for layout, contributions in released.probes(seed):
        keys = words(seed, "devices that contribute", 0, 2 * contributions.n_users)
        draws = RoundDraws(DeviceDraws(keys.reshape(2, contributions.n_users)), 1, 0)
        reports = aggregation.encode(contributions, layout, 0.0, draws)
        sums = [aggregation.decode([report], layout, 0.0)[1] for report in reports]
        differences = [
            replace(one, numbers=one.total - other.total, places=None) for one, other in combinations(sums, 2)
        ]
        longest = max([longest, *(aggregation.length(total, layout, 0.0) for total in sums)])
        apart = max([apart, *(aggregation.length(difference, layout, 0.0) for difference in differences)])
    return longest, apart / aggregation.farthest(released.farthest)


def _among(aggregation: AggregationT, sizes: Iterable[int]) -> AggregationT:
    """Return the aggregation for about as few devices as it accepts, so that totals are quickly made."""
    *tried, largest = sizes
    for users in tried:
        with suppress(SettingError):
            return aggregation.among(users)
    return aggregation.among(largest)
