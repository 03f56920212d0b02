"""Messages among fakes: losses against plain sums over the counts, samples and an attack."""

import math
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import poisson

from dprec.accounting import (
    HiddenMessages,
    PrivacyAccountant,
    hidden_delta,
    hidden_epsilon,
    least_fakes,
    participation_epsilon,
)
from dprec.accounting.events import Adjacency
from tests.refusals import refused_at

DELTA = 1e-6


Counts = NDArray[np.float64]

Hidden = tuple[int, float, float]
"""Messages, fakes of each, and how many times as many null ones."""


def count(fakes: float, added: int, size: int) -> Counts:
    """Return the probabilities of 0 to ``size`` - 1 of a Poisson number to which some are added."""
    probabilities: Counts = poisson.pmf(np.arange(size) - added, fakes)
    return probabilities


def pair(fakes: float, one: int, other: int, beyond: float = 1e-12) -> tuple[Counts, Counts]:
    """Return the probabilities of a count with so many messages, and with as many others."""
    size = int(poisson.isf(beyond, fakes)) + max(one, other) + 1
    return count(fakes, one, size), count(fakes, other, size)


def divergence(pairs: list[tuple[Counts, Counts]], epsilon: float) -> float:
    """Return the divergence of all counts together: a plain sum over whatever they can be."""
    one, other = (reduce(np.multiply.outer, side) for side in zip(*pairs, strict=True))
    return float(np.maximum(0.0, one - math.exp(epsilon) * other).sum())


def exact_delta(hidden: list[Hidden], epsilon: float, adjacency: Adjacency) -> float:
    """Return what is to be computed, for few messages."""
    pairs = []
    for messages, fakes, null_fakes in hidden:
        pairs += messages * [pair(fakes, 1, 0)]
        if adjacency == "replace-one":
            pairs += messages * [pair(fakes, 0, 1)]
        else:
            pairs += [pair(null_fakes * messages * fakes, 0, messages)]
    return max(divergence(pairs, epsilon), divergence([(two, one) for one, two in pairs], epsilon))


def kinks(fakes: float) -> list[float]:
    """Return the epsilons at which a polygon is furthest above the curve: the losses of single counts."""
    return [math.log(reached / fakes) for reached in range(math.ceil(fakes), math.ceil(2 * fakes))]


CASES: list[tuple[list[Hidden], Adjacency]] = [
    ([(1, 5.0, 1.0)], "add-or-remove-one"),
    ([(1, 14.0, 3.0)], "add-or-remove-one"),
    ([(1, 200.0, 1.0)], "add-or-remove-one"),
    ([(2, 5.5, 1.0)], "add-or-remove-one"),
    ([(2, 12.0, 2.0)], "add-or-remove-one"),
    ([(1, 14.0, 2.0)], "replace-one"),
    ([(1, 300.0, 1.0)], "replace-one"),
    ([(1, 4.0, 1.0), (1, 5.0, 2.0)], "add-or-remove-one"),
]


@pytest.mark.parametrize(("hidden", "adjacency"), CASES)
def test_delta_is_that_of_plain_sums_to_a_few_millionths_and_never_below(
    hidden: list[Hidden], adjacency: Adjacency
) -> None:
    events = [HiddenMessages(*one) for one in hidden]
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, *kinks(hidden[0][1])[:6]):
        exact, found = exact_delta(hidden, epsilon, adjacency), hidden_delta(events, epsilon, adjacency)
        assert exact <= found * (1 + 1e-9) + 1e-15
        assert found <= exact + 2e-6


KINDS = 4


def sent(messages: int, kinds: int = KINDS) -> list[tuple[int, ...]]:
    """Return all that a device can send, as how often it sends each message, the null message last."""
    sets = [own for size in range(messages + 1) for own in combinations(range(kinds), size)]
    return [(*(int(kind in own) for kind in range(kinds)), messages - len(own)) for own in sets]


def seen(one: tuple[int, ...], other: tuple[int, ...], means: list[float], epsilon: float) -> float:
    """Return the divergence of the joint distributions of all counts, by enumeration."""
    # Counts that are the same in both say nothing.
    each = zip(means, zip(one, other, strict=True), strict=True)
    pairs = [pair(mean, *own, beyond=1e-10) for mean, own in each if own[0] != own[1]]
    return divergence(pairs, epsilon) if pairs else 0.0


@pytest.mark.parametrize("null_fakes", [1.0, 3.0])
@pytest.mark.parametrize(("messages", "fakes"), [(1, 1.0), (1, 3.0), (2, 1.5), (2, 3.0)])
def test_no_two_profiles_tell_more_and_the_worst_tell_as_much(
    messages: int, fakes: float, null_fakes: float
) -> None:
    """Whatever a device can send, beside nothing and beside all else: joint distributions, enumerated."""
    means = KINDS * [fakes] + [null_fakes * messages * fakes]
    event = [HiddenMessages(messages, fakes, null_fakes)]
    (nothing, *profiles) = sent(messages)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        beside_none = max(
            max(seen(own, nothing, means, epsilon), seen(nothing, own, means, epsilon)) for own in profiles
        )
        found = hidden_delta(event, epsilon, "add-or-remove-one")
        assert beside_none - 1e-8 <= found <= beside_none + 1e-5
        # By symmetry, the first of each size stands for all.
        firsts = list({own[-1]: own for own in profiles}.values())
        between = max(seen(one, other, means, epsilon) for one in firsts for other in profiles)
        found = hidden_delta(event, epsilon, "replace-one")
        assert max(between, beside_none) - 1e-8 <= found <= between + 1e-5


@pytest.mark.parametrize(("messages", "kinds", "null_fakes"), [(1, 2, 1.0), (1, 2, 2.0), (2, 2, 1.0)])
def test_whether_a_device_took_part_at_all_is_told_by_counts_no_better(
    messages: int, kinds: int, null_fakes: float
) -> None:
    """An absent device takes its fakes along; joint distributions of all counts, enumerated."""
    fakes, devices, delta = 4.0, 5, 0.1
    means = kinds * [fakes] + [null_fakes * messages * fakes]
    event = HiddenMessages(messages, fakes, null_fakes)
    epsilon = participation_epsilon([(event, kinds)], devices, delta)
    told = []
    for own in sent(messages, kinds):
        one, other = (
            reduce(
                np.multiply.outer,
                [count(share * mean, added, 45) for mean, added in zip(means, each, strict=True)],
            )
            for share, each in ((1.0, own), (1 - 1 / devices, [0] * len(own)))
        )
        for first, second in ((one, other), (other, one)):
            told.append(float(np.maximum(0.0, first - math.exp(epsilon) * second).sum()))
    assert delta - 1e-4 <= max(told) <= delta + 1e-9
    between = hidden_epsilon([event], delta, "add-or-remove-one")
    assert participation_epsilon([(event, kinds)], 10**9, delta) <= between
    assert participation_epsilon([(event, kinds)], 2, 1e-9) == math.inf
    assert participation_epsilon([], 2, delta) == 0.0


@pytest.mark.parametrize(
    ("messages", "fakes", "epsilon"), [(10, 57.4, 0.5), (10, 30.0, 0.2), (100, 400.0, 1.0)]
)
@pytest.mark.parametrize("order", ["with", "without"])
def test_delta_of_many_messages_is_the_mean_of_samples(
    messages: int, fakes: float, epsilon: float, order: str
) -> None:
    """A mean is more than 5 standard errors off with a chance of 6e-7."""
    samples = 30_000
    random, null = np.random.default_rng(3), 2.0 * messages * fakes
    counts = random.poisson(fakes, (samples, messages)) + (order == "with")
    nulls = random.poisson(null, samples) + messages * (order == "without")
    told = np.log(counts / fakes).sum(axis=1)
    told -= np.log(np.maximum(0, nulls[:, None] - np.arange(messages)) / null).sum(axis=1)
    losses = told * (1 if order == "with" else -1)
    gains = -np.expm1(np.minimum(0.0, epsilon - losses))
    off = 5 * float(gains.std()) / math.sqrt(samples)
    found = hidden_delta([HiddenMessages(messages, fakes, 2.0)], epsilon, "add-or-remove-one")
    assert gains.mean() <= found + off
    if order == "without":
        assert found <= gains.mean() + off


@pytest.mark.parametrize(
    ("messages", "epsilon", "expected"),
    [(1, 1.0, 34.48), (10, 1.0, 201.66), (10, 4.0, 20.12), (100, 1.0, 1908.0), (1000, 8.0, 455.6)],
)
def test_the_least_fakes_for_a_budget(messages: int, epsilon: float, expected: float) -> None:
    fakes = least_fakes(messages, epsilon, DELTA, null_fakes=16)
    assert fakes == pytest.approx(expected, rel=1e-3)
    spent = hidden_epsilon([HiddenMessages(messages, fakes, 16)], DELTA, "add-or-remove-one")
    assert 0.9999 * epsilon <= spent <= epsilon
    less = HiddenMessages(messages, 0.9999 * fakes, 16)
    assert hidden_epsilon([less], DELTA, "add-or-remove-one") > epsilon


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5)])
def test_more_fakes_than_can_be_counted_are_refused(shares: tuple[float, ...]) -> None:
    for epsilon, delta in ((1e-9, 1e-9), (1e-6, 1e-6), (1e-300, 1e-6)):
        with refused_at("privacy.epsilon"):
            least_fakes(10, epsilon, delta, "replace-one", shares)


def test_a_message_is_never_certain_more_often_than_delta() -> None:
    for messages in (1, 100):
        fakes = least_fakes(messages, 50.0, DELTA)
        assert fakes == pytest.approx(math.log(messages / DELTA), rel=1e-3)
        assert messages * math.exp(-fakes) <= DELTA
    too_few = HiddenMessages(100, math.log(99 / DELTA))
    assert hidden_epsilon([too_few], DELTA, "add-or-remove-one") == math.inf
    for fakes in (0.0, 1e-9, 0.01, 2.0):
        few = [HiddenMessages(10, fakes)]
        assert hidden_epsilon(few, DELTA, "add-or-remove-one") == math.inf
        assert hidden_delta(few, 1.0, "replace-one") >= 1 - (1 - math.exp(-fakes)) ** 10


def test_an_account_charges_users_for_the_exchanges_that_they_took_part_in() -> None:
    accountant = PrivacyAccountant(rated=np.ones(4, dtype=np.bool_), history=[])
    singles, pairs = HiddenMessages(1, 300.0), HiddenMessages(10, 400.0)
    took_part = np.array([[True, True, False, False], [True, False, True, False]])
    for number, (own, event) in enumerate(zip(took_part, (singles, pairs), strict=True), start=1):
        accountant.step(number, own, math.inf, math.inf, event)
    for adjacency in ("add-or-remove-one", "replace-one"):
        expected = [
            hidden_epsilon(own, DELTA, adjacency) for own in ([singles, pairs], [singles], [pairs], [])
        ]
        assert accountant.get_epsilon(DELTA, adjacency=adjacency).tolist() == expected
        assert expected[0] > expected[2] > expected[1] > expected[3] == 0
    assert np.isinf(accountant.get_epsilon()).tolist() == [True, True, True, False]
