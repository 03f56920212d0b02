"""What shuffled reports tell: bounds against exact divergences, single reports and users composed."""

import itertools
import math
from itertools import chain

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dprec.accounting import (
    ChannelDraws,
    ShuffledChannel,
    ShuffledProfiles,
    ShuffledReports,
    clones_delta,
    closed_form_epsilon,
    compose,
    two_answers_delta,
    with_the_same_items,
)
from dprec.accounting.events import Shuffled
from dprec.accounting.shuffling import computed_for, expected_excess
from dprec.channel import Channel


def k_ary_response(symbols: int, epsilon: float) -> Channel:
    """Return k-ary randomised response."""
    rows = np.ones((symbols, symbols)) + np.expm1(epsilon) * np.eye(symbols)
    levels = np.arange(1.0, symbols + 1)
    return Channel.from_probabilities(rows, levels, levels, epsilon)


def histogram_of(channel: Channel, levels: tuple[int, ...]) -> NDArray[np.float64]:
    """Return Pr(counts) of the symbols of reports of these levels, a dimension for each symbol."""
    rows = channel.probabilities
    counts = np.ones((1,) * channel.symbols)
    for level in levels:
        grown = np.zeros(np.add(counts.shape, 1))
        for symbol, probability in enumerate(rows[level]):
            moved = tuple(
                slice(axis == symbol, size + (axis == symbol)) for axis, size in enumerate(counts.shape)
            )
            grown[moved] += probability * counts
        counts = grown
    return counts


def exact_delta(channel: Channel, epsilon: float, reports: int) -> float:
    """Return the divergence of shuffled reports of which one changes, for the worst of all profiles."""
    levels = range(len(channel.inputs))
    worst = 0.0
    for others in itertools.combinations_with_replacement(levels, reports - 1):
        outcomes = [histogram_of(channel, (*others, level)) for level in levels]
        for one, other in itertools.permutations(outcomes, 2):
            worst = max(worst, float(np.maximum(0.0, one - np.exp(epsilon) * other).sum()))
    return worst


def uneven_channel() -> Channel:
    """Return a channel of three levels and four symbols of which no two rows or columns are alike."""
    rows = np.random.default_rng(0).dirichlet(np.full(4, 3.0), 3) + 0.05
    return Channel.from_probabilities(rows, np.arange(1.0, 4), np.arange(1.0, 5), 10.0)


CHANNELS = {
    "one bit": k_ary_response(2, 1.0),
    "three answers": k_ary_response(3, 1.0),
    "three answers at 2": k_ary_response(3, 2.0),
    "uneven": uneven_channel(),
}


@pytest.mark.parametrize("reports", [1, 2, 4, 6])
@pytest.mark.parametrize("name", CHANNELS)
def test_no_profile_of_few_users_tells_more(name: str, reports: int) -> None:
    channel = CHANNELS[name]
    blanket = ShuffledChannel(channel)
    for epsilon in np.array([0.0, 0.3, 0.6]) * channel.epsilon:
        exact, bound = exact_delta(channel, epsilon, reports), blanket.delta(epsilon, reports)
        assert bound >= exact
        # The blanket is all of the others that hides: nearly so for randomised response.
        assert bound <= exact * (3 if name == "uneven" else 1.15)


@pytest.mark.parametrize("reports", [1, 3, 6])
@pytest.mark.parametrize(("symbols", "local"), [(2, 1.0), (3, 1.0), (3, 2.0)])
def test_no_profile_of_few_users_tells_more_than_clones(symbols: int, local: float, reports: int) -> None:
    channel = k_ary_response(symbols, local)
    for epsilon in (0.0, 0.3 * local, 0.6 * local):
        exact = exact_delta(channel, epsilon, reports)
        assert clones_delta(epsilon, reports, local) >= exact * (1 - 1e-9)
        assert two_answers_delta(epsilon, reports, local, symbols) >= exact * (1 - 1e-9)


def divergence_of_clones(epsilon: float, reports: int, local: float, clone: float) -> float:
    """Return that of Theorem 3.1 of [feldman2021] by enumeration, of counts of both symbols.

    With C ~ Binomial(n - 1, clone), A ~ Binomial(C, 1/2) and D ~ Bernoulli(e^local / (e^local + 1)) it is
    that of (A + D, C - A + 1 - D) from (A + 1 - D, C - A + D).
    """
    one, other = np.zeros((2, reports + 1, reports + 1))
    truth = math.exp(local) / (math.exp(local) + 1)
    for clones in range(reports):
        own = np.arange(clones + 1)
        masses = binom.pmf(clones, reports - 1, clone) * binom.pmf(own, clones, 0.5)
        for outcome, first in ((one, truth), (other, 1 - truth)):
            outcome[own + 1, clones - own] += first * masses
            outcome[own, clones - own + 1] += (1 - first) * masses
    return float(np.maximum(0.0, one - math.exp(epsilon) * other).sum())


@pytest.mark.parametrize(("reports", "local"), [(2, 1.0), (30, 1.0), (200, 2.0)])
def test_clones_hide_as_much_as_is_published(reports: int, local: float) -> None:
    for epsilon in (0.0, 0.2 * local, 0.5 * local):
        exact = divergence_of_clones(epsilon, reports, local, math.exp(-local))
        assert clones_delta(epsilon, reports, local) == pytest.approx(exact, rel=1e-6, abs=1e-14)
        for symbols in (2, 5):
            lie = 1 / (math.exp(local) + symbols - 1)
            exact = divergence_of_clones(epsilon, reports, local, 2 * lie) * lie * (math.exp(local) + 1)
            found = two_answers_delta(epsilon, reports, local, symbols)
            assert found == pytest.approx(exact, rel=1e-6, abs=1e-14)


def test_a_closed_form_needs_many_reports_and_a_report_alone_hides_in_none() -> None:
    assert closed_form_epsilon(600, 1.0, 1e-6) == 1.0
    assert closed_form_epsilon(700, 1.0, 1e-6) < 1.0
    assert clones_delta(0.4, 1, 1.0) == pytest.approx((math.exp(1) - math.exp(0.4)) / (1 + math.exp(1)))
    assert clones_delta(1.0, 1, 1.0) == 0


def test_only_messages_on_the_same_items_are_alike() -> None:
    profiles = [[1, 2], [1, 2], [1], [2, 3], [], [1, 2], [513]]
    counts = np.array([len(own) for own in profiles])
    items = np.concatenate(profiles).astype(np.int32)
    assert with_the_same_items(counts, items).tolist() == [3, 3, 1, 1, 1, 3, 1]


def test_a_message_that_nothing_hides_loses_what_it_would_without_shufflers() -> None:
    losses = np.array([0.0, 0.5, 0.5, 0.5, 40.0, 900.0, 0.5])
    mixed = np.array([1, 1, 100, 10_000, 10_000, 10_000, 0])
    epsilons = ShuffledProfiles(losses, mixed).per_user(DELTA)
    assert epsilons[:2].tolist() == [0.0, 0.5]
    assert epsilons[2] > 5 * epsilons[3]
    assert epsilons[4:6].tolist() == [40.0, 900.0]
    assert math.isinf(epsilons[6])


@pytest.mark.parametrize(("loss", "mixed"), [(0.5, 100), (1.0, 1000)])
def test_a_hidden_message_loses_what_clones_leave(loss: float, mixed: int) -> None:
    (epsilon,) = ShuffledProfiles(np.array([loss]), np.array([mixed])).per_user(DELTA)
    assert clones_delta(epsilon, mixed, loss) <= DELTA < clones_delta(0.999 * epsilon, mixed, loss)


CHANNEL = k_ary_response(2, 1.0)
DELTA = 1e-6


def reports_of(mixed: list[list[int]]) -> ShuffledReports:
    """Return the reports of users, given among how many each is shuffled."""
    users = np.repeat(np.arange(len(mixed)), [len(own) for own in mixed])
    return ShuffledReports(CHANNEL, users, np.array([*chain(*mixed)], dtype=np.int64), len(mixed))


def test_bounds_are_computed_for_no_more_reports_than_there_are() -> None:
    reports = np.array([1, 2, 3, 99, 100, 583, 10**6])
    computed = computed_for(reports)
    assert (computed <= reports).all()
    assert (computed > reports / 1.1 - 1).all()
    assert (computed_for(np.arange(1, 8)) == np.arange(1, 8)).all()


def test_many_users_are_composed_as_one_by_one() -> None:
    mixed = [[100, 100, 500], [1, 10, 100, 500] * 5, [500] * 200]
    together = reports_of(mixed).per_user(DELTA)
    shuffled, step = ShuffledChannel(CHANNEL), 1 / 512
    for own, found in zip(mixed, together.tolist(), strict=True):
        sizes, times = np.unique(computed_for(np.array(own)), return_counts=True)
        kinds = [shuffled.losses(size, step) for size in sizes.tolist()]
        each = compose(list(zip(kinds, times.tolist(), strict=True))).epsilon(DELTA)
        assert found == pytest.approx(each, rel=0.01)
        assert found <= sum(reports_of([own]).per_report(DELTA / len(own)))


def test_who_sent_no_report_has_no_bound_by_shuffling() -> None:
    composed = reports_of([[100], [], [100, 100]]).per_user(DELTA)
    assert np.isinf(composed[1])
    assert 0 < composed[0] < composed[2] < 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 7, 60])
def test_the_excess_of_whole_numbers_is_bounded_closely(seed: int, count: int) -> None:
    draws = np.random.default_rng(seed)
    # Every second time, sums above 0 are rare.
    values = np.sort(draws.choice(np.arange(-9, 10), 4, replace=False)).astype(float) - 6 * (seed % 2)
    values[-1] = abs(values[-1]) + 1
    masses = draws.dirichlet(np.full(4, 2.0))
    one = np.bincount(values.astype(np.int64) + 20, masses, minlength=40)
    sums = np.ones(1)
    for _ in range(count):
        sums = np.convolve(sums, one)
    exact = float(np.maximum(0.0, np.arange(sums.size) - 20 * count) @ sums)
    bound = expected_excess(values, masses, count)
    assert bound >= exact * (1 - 1e-9)
    # In the furthest tails the grid counts, though not at a delta that anybody asks for.
    assert bound <= exact * (1.02 if exact > 1e-15 else 4)


def test_two_exchanges_that_are_shuffled_share_delta() -> None:
    """Else each of them could fail with all of it, and both together with twice as much."""
    channel, users, delta = k_ary_response(2, 1.0), 400, 1e-4
    draws = ChannelDraws((channel,), 0, np.ones(users, dtype=np.int64))
    reports = ShuffledReports(channel, np.arange(users), np.full(users, users), users)
    everybody = np.ones(users, dtype=np.bool_)
    one = Shuffled(draws, reports)
    twice = Shuffled.composed([(one, everybody), (one, everybody)], delta, "replace-one")
    assert twice == pytest.approx(2 * reports.per_user(delta / 2))
    assert (twice > 2 * reports.per_user(delta)).all()
    assert (
        twice < ChannelDraws.composed([(draws, everybody), (draws, everybody)], delta, "replace-one")
    ).all()
