"""Counts at a budget: what each is over, what is released, and how they arrive."""

import itertools

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.channel import Channel
from dprec.mechanisms import BitsAndCounts
from dprec.randomness import DRAWS
from dprec.reports import CountFamily
from dprec.reports.counts import LEAST_EPSILON, CountNoise, popularity_groups
from tests.make import STARS

CELLS = np.array([4, 0, 2])


def family(budget: PrivacyBudget, groups: int = 2, n_items: int = 40) -> CountFamily:
    made = BitsAndCounts(groups=groups).family(budget, STARS, n_items)
    assert isinstance(made, CountFamily)
    made.check()
    return made


def test_every_left_cell_is_in_one_group() -> None:
    made = family(PrivacyBudget(epsilon=1))
    counts = made.follow_up
    symbols, groups = np.array([2, 0, 2, 2, 1, 2]), np.array([0, 0, 1, 0, 1, 1])
    sizes = counts.grouped(CELLS, groups, made.left(symbols))
    assert sizes.tolist() == [[2, 1], [0, 0], [0, 1]]
    received = counts.received(np.array([0, 0, 0, 0, 2, 2]), groups, made.left(symbols), CELLS, 7 * sizes)
    assert received.cells.tolist() == [0, 2, 3, 5]
    assert received.row_of.tolist() == [0, 1, 0, 2]
    assert (received.users.tolist(), received.sizes.tolist()) == ([0, 0, 2], [2, 1, 1])
    assert received.values.tolist() == [14, 7, 7]
    assert (received.epsilons <= 1).all()
    assert received.least_level == 4


def test_what_is_released_adds_up_to_the_ledger_at_most() -> None:
    made = family(PrivacyBudget(epsilon=0.1), n_items=300)
    cells, sizes = np.array([200, 200, 0, 200]), np.array([[50, 40], [0, 0], [0, 0], [150, 0]])
    sent = cells > 0
    drawn = made.draws_about(cells, sizes)
    assert drawn.draws.tolist() == [110, 200, 0, 50]
    assert drawn.added is not None
    assert drawn.added == pytest.approx([9, 0, 0, 15], rel=0.02)
    accountant = made.accountant(cells, sent, sizes)
    losses = accountant.get_epsilon(1e-6)
    assert (losses <= 0.1 * cells * (1 + 1e-9)).all()
    # Bits compose to less than their sum, a count of as many ratings does not.
    assert losses[1] < 10 < losses[0] < losses[3]
    assert losses[2] == 0
    assert accountant.get_epsilon(per="rating")[0] == pytest.approx(0.1)
    assert accountant.get_epsilon().tolist() == pytest.approx([20, 20, 0, 20], rel=0.02)
    assert (losses <= accountant.get_epsilon()).all()


@pytest.mark.parametrize("size", [1, 2, 30, 100])
def test_the_loss_of_a_count_is_that_of_its_worst_pair_of_true_counts(size: int) -> None:
    made = family(PrivacyBudget(epsilon=0.5), n_items=200)
    epsilon = float(made.epsilons(np.array([size]))[0])
    noise = CountNoise.of(epsilon, 200)
    every = np.log(noise.channel(size, np.arange(size + 1)).probabilities)
    worst = np.ptp(every, axis=0).max()
    assert made.count_epsilon(epsilon, size) == pytest.approx(worst, rel=1e-12)


def test_groups_have_about_the_same_number_of_ratings() -> None:
    ratings = np.random.default_rng(1).geometric(0.02, 400) - 1
    groups = popularity_groups(ratings, 3)
    sums = np.bincount(groups, weights=ratings)
    assert np.abs(sums - ratings.sum() / 3).max() <= ratings.max()
    # No item of a later group is more popular.
    for group in (0, 1):
        assert ratings[groups == group].min() >= ratings[groups > group].max()


EPSILONS = (LEAST_EPSILON, 1e-3, 0.1, 0.5, 1.0, 3.0, 20.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("most", [1, 2, 30, 1000])
def test_no_count_loses_more_than_epsilon_when_it_changes_by_one(epsilon: float, most: int) -> None:
    noise = CountNoise.of(epsilon, most)
    assert 0.999 * epsilon <= noise.epsilon <= epsilon
    for size in {1, min(2, most), min(9, most)}:
        channel = noise.channel(size, np.arange(size + 1))
        assert (channel.weights.sum(axis=1) == DRAWS).all()
        neighbours = [noise.channel(size, np.array([count, count + 1])).epsilon for count in range(size)]
        assert max(neighbours) <= noise.epsilon
        assert channel.epsilon <= size * epsilon


def hockey_stick(channel: Channel, one: int, other: int, ratio: float) -> float:
    rows = channel.probabilities
    return float(np.maximum(0, rows[one] - ratio * rows[other]).sum())


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_none_and_all_of_the_ratings_are_told_apart_most_easily(epsilon: float) -> None:
    channel = CountNoise.of(epsilon, 50).channel(7, np.arange(8))
    for ratio in np.exp(epsilon * np.array([0, 0.5, 1, 2.5, 6])):
        extremes = hockey_stick(channel, 0, 7, ratio)
        others = [hockey_stick(channel, *pair, ratio) for pair in itertools.permutations(range(8), 2)]
        assert max(others) <= extremes + 1e-9


def test_a_count_is_two_sided_geometric_noise_clamped() -> None:
    epsilon, size = 0.7, 6
    channel = CountNoise.of(epsilon, 40).channel(size, np.array([2]))
    steps = np.arange(-400, 401)
    shares = np.exp(-epsilon * np.abs(steps))
    expected = np.bincount(np.clip(2 + steps, 0, size), weights=shares / shares.sum())
    np.testing.assert_allclose(channel.probabilities[0], expected, rtol=5e-4)
