"""Geometric noise on counts: its exact loss, by brute force, and its draws."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from dprec.channel import Channel
from dprec.randomness import DRAWS, words
from dprec.reports import counts as count_noise
from dprec.reports.counts import LEAST_EPSILON, CountNoise

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


def test_a_table_that_would_lose_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="epsilon 9e-06 for a count"):
        CountNoise.of(0.9 * LEAST_EPSILON, 10)
    monkeypatch.setattr(count_noise, "_MARGIN", -1e-6)
    with pytest.raises(ValueError, match="a count of 10 ratings at epsilon 1"):
        CountNoise.of(1.0, 10)


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


@pytest.mark.parametrize("count", [0, 3, 6])
def test_draws_follow_the_channel(count: int) -> None:
    """Chi-square of 100,000 draws: false alarm 1e-7 for each count."""
    noise, size, draws = CountNoise.of(0.7, 40), 6, 100_000
    counts = np.full(draws, count)
    noisy = noise.perturb(counts, np.full(draws, size), words(5, "counts", count * draws, draws))
    expected = noise.channel(size, np.array([count])).probabilities[0]
    assert chisquare(np.bincount(noisy, minlength=size + 1), expected * draws).pvalue > 1e-7
