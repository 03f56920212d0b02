"""Messages among fakes: losses against plain sums over the counts, samples and an attack."""

import math
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import poisson

from dprec.accounting import (
    HiddenMessages,
    PrivacyAccountant,
    hidden_delta,
    hidden_epsilon,
    largest_mu,
    least_fakes,
)
from dprec.accounting.events import Adjacency
from dprec.auditing import proportion_above, proportion_below

DELTA = 1e-6

FALSE_ALARM = 1e-6

Counts = NDArray[np.float64]


def count(fakes: float) -> tuple[Counts, Counts]:
    """Return the probabilities of a count with a message and of one without, for counts from 0."""
    counts = np.arange(math.ceil(fakes + 12 * math.sqrt(fakes) + 40))
    return poisson.pmf(counts - 1, fakes), poisson.pmf(counts, fakes)


def divergence(pairs: list[tuple[Counts, Counts]], epsilon: float) -> float:
    """Return the divergence of all counts together: a plain sum over whatever they can be."""
    one, other = (reduce(np.multiply.outer, side) for side in zip(*pairs, strict=True))
    return float(np.maximum(0.0, one - math.exp(epsilon) * other).sum())


def exact_delta(hidden: list[tuple[int, float]], epsilon: float, adjacency: Adjacency) -> float:
    """Return what is to be computed, for few messages."""
    rising = [count(fakes) for messages, fakes in hidden for _ in range(messages)]
    falling = [(other, one) for one, other in rising]
    if adjacency == "replace-one":
        return divergence(rising + falling, epsilon)
    return max(divergence(rising, epsilon), divergence(falling, epsilon))


def kinks(fakes: float) -> list[float]:
    """Return the epsilons at which a polygon is furthest above the curve: the losses of single counts."""
    return [math.log(reached / fakes) for reached in range(math.ceil(fakes), math.ceil(2 * fakes))]


CASES: list[tuple[list[tuple[int, float]], Adjacency]] = [
    ([(1, 5.0)], "add-or-remove-one"),
    ([(1, 14.0)], "add-or-remove-one"),
    ([(1, 200.0)], "add-or-remove-one"),
    ([(2, 5.5)], "add-or-remove-one"),
    ([(2, 30.0)], "add-or-remove-one"),
    ([(3, 9.0)], "add-or-remove-one"),
    ([(1, 14.0)], "replace-one"),
    ([(1, 300.0)], "replace-one"),
    ([(1, 20.0), (1, 50.0)], "add-or-remove-one"),
]


@pytest.mark.parametrize(("hidden", "adjacency"), CASES)
def test_delta_is_that_of_plain_sums_to_a_millionth_and_never_below(
    hidden: list[tuple[int, float]], adjacency: Adjacency
) -> None:
    events = [HiddenMessages(*one) for one in hidden]
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, *kinks(hidden[0][1])[:12]):
        exact, found = exact_delta(hidden, epsilon, adjacency), hidden_delta(events, epsilon, adjacency)
        assert exact <= found * (1 + 1e-9) + 1e-15
        assert found <= exact + 1e-6


@pytest.mark.parametrize(
    ("messages", "fakes", "epsilon"), [(10, 57.4, 0.5), (10, 30.0, 0.2), (100, 400.0, 1.0)]
)
@pytest.mark.parametrize("order", ["with", "without"])
def test_delta_of_many_messages_is_the_mean_of_samples(
    messages: int, fakes: float, epsilon: float, order: str
) -> None:
    """A mean is more than 5 standard errors off with a chance of 6e-7."""
    samples = 30_000
    counts = np.random.default_rng(3).poisson(fakes, (samples, messages)) + (order == "with")
    losses = np.log(counts / fakes).sum(axis=1) * (1 if order == "with" else -1)
    gains = -np.expm1(np.minimum(0.0, epsilon - losses))
    off = 5 * float(gains.std()) / math.sqrt(samples)
    found = hidden_delta([HiddenMessages(messages, fakes)], epsilon, "add-or-remove-one")
    assert gains.mean() <= found + off
    if order == "without":
        assert found <= gains.mean() + off


@pytest.mark.parametrize(("messages", "epsilon"), [(1, 1.0), (10, 1.0), (10, 2.0), (100, 0.5)])
@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
def test_no_attack_tells_more(messages: int, epsilon: float, adjacency: Adjacency) -> None:
    """Each bound on a probability fails with a chance of 1e-6 / 40: there are 40 of them."""
    delta, people = 0.1, 20_000
    fakes = least_fakes(messages, epsilon, delta, adjacency)
    draws = np.random.default_rng(messages)
    own, others = draws.poisson(fakes, (2, people, messages)), draws.poisson(fakes, (2, people, messages))
    own[0] += 1
    with np.errstate(divide="ignore"):
        evidence = np.log(own).sum(axis=2)
        if adjacency == "replace-one":
            others[1] += 1
            evidence -= np.log(others).sum(axis=2)
    most_told = 0.0
    for one, other in ((evidence[0], evidence[1]), (-evidence[1], -evidence[0])):
        for threshold in np.quantile(one, np.linspace(0.45, 0.99, 10), method="higher"):
            seen = proportion_below([(one >= threshold).sum()], people, FALSE_ALARM / 40)
            mistaken = proportion_above([(other >= threshold).sum()], people, FALSE_ALARM / 40)
            told = float(seen[0] - math.exp(epsilon) * mistaken[0])
            most_told = max(most_told, told)
            assert told <= delta
    assert most_told >= delta / 3


@pytest.mark.parametrize(
    ("messages", "epsilon", "expected"),
    [(1, 1.0, 34.07), (10, 1.0, 191.3), (10, 4.0, 19.53), (100, 1.0, 1797.0), (1000, 0.5, 64948.0)],
)
def test_the_least_fakes_for_a_budget(messages: int, epsilon: float, expected: float) -> None:
    fakes = least_fakes(messages, epsilon, DELTA)
    assert fakes == pytest.approx(expected, rel=1e-3)
    spent = hidden_epsilon([HiddenMessages(messages, fakes)], DELTA, "add-or-remove-one")
    assert 0.9999 * epsilon <= spent <= epsilon
    less = HiddenMessages(messages, 0.9999 * fakes)
    assert hidden_epsilon([less], DELTA, "add-or-remove-one") > epsilon


def test_many_messages_among_fakes_are_hidden_as_by_normal_noise() -> None:
    for epsilon, most in ((0.5, 1.001), (2.0, 1.002), (8.0, 1.01)):
        fakes = least_fakes(1000, epsilon, DELTA)
        assert 1 <= fakes * largest_mu(epsilon, DELTA) ** 2 / 1000 <= most
    between = least_fakes(1000, 1.0, DELTA, "replace-one")
    assert between == pytest.approx(2 * least_fakes(1000, 1.0, DELTA), rel=2e-3)


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


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
def test_exchanges_divide_a_budget_by_their_shares(adjacency: Adjacency) -> None:
    fakes = least_fakes(10, 1.0, DELTA, adjacency, (0.2, 0.8))
    alone = least_fakes(10, 1.0, DELTA, adjacency)
    assert 0.9 * alone < fakes < alone  # so many more messages are hidden as by normal noise
    together = [HiddenMessages(10, fakes / share) for share in (0.2, 0.8)]
    assert 0.9999 <= hidden_epsilon(together, DELTA, adjacency) <= 1


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
