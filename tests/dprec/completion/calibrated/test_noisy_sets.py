"""Sums over everybody's item sets, with noise: how far one profile moves them, and how large the noise is."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from dprec.completion.calibrated import noisy_sets
from dprec.completion.calibrated.embedding import (
    RATINGS_PER_USER,
    NoisySets,
    sums_of_squares,
    weighted_counts,
)
from dprec.privacy.gaussian import gaussian_epsilon

PROFILES = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
"""Every set of six items, the empty one first."""


def assert_standard_normal(values: np.ndarray) -> None:
    """Fail with a probability of 1e-6 if the values are of a standard normal distribution."""
    assert stats.kstest(values, "norm").pvalue > 1e-6


def largest_moves(sums: np.ndarray, bound: float) -> tuple[float, float]:
    """Return how far a profile in place of none moves a sum, and in place of another one, over the bound."""
    rows = sums.reshape(len(sums), -1)
    alone = np.linalg.norm(rows, axis=1)
    apart = np.linalg.norm(rows[:, None] - rows, axis=2)
    return float(alone.max() / bound), float(apart.max() / bound)


@pytest.mark.parametrize("ratings_per_user", [1, 3, RATINGS_PER_USER])
def test_no_profile_moves_the_counts_by_more_than_the_root_of_the_ratings_that_count(
    ratings_per_user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_sets, "RATINGS_PER_USER", ratings_per_user)
    sums = np.stack([weighted_counts(sp.csr_array(row[None])) for row in PROFILES])
    removed, replaced = largest_moves(sums, np.sqrt(ratings_per_user))
    assert removed <= 1 + 1e-12
    assert replaced <= np.sqrt(2) * (1 + 1e-12)
    # The bound is reached where so many items can be rated.
    assert (removed > 1 - 1e-12) is (ratings_per_user <= 6)


@pytest.mark.parametrize("counts", [np.ones(6), np.array([9.0, 1.0, 4.0, 2.0, 0.1, 30.0])])
def test_no_profile_moves_the_second_sum_by_more_than_1(counts: np.ndarray) -> None:
    sums = np.stack([sums_of_squares(sp.csr_array(row[None]), counts) for row in PROFILES])
    assert not sums[0].any()
    removed, replaced = largest_moves(sums, 1.0)
    assert removed == pytest.approx(1.0, abs=1e-9)
    assert 1.3 < replaced <= np.sqrt(2) * (1 + 1e-9)
    np.testing.assert_allclose(np.linalg.eigvalsh(sums).min(axis=1), 0.0, atol=1e-9)


def test_the_sums_are_those_of_their_definition() -> None:
    counts, random = np.array([5.0, 2.0, 8.0, 1.0, 3.0, 4.0]), np.random.default_rng(1)
    rows = PROFILES[random.integers(1, len(PROFILES), size=40)]
    rest = rows - rows.sum(axis=1, keepdims=True) * counts / counts.sum()
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    np.testing.assert_allclose(sums_of_squares(sp.csr_array(rows), counts), rest.T @ rest, atol=1e-12)
    weights = np.sqrt(np.minimum(1.0, RATINGS_PER_USER / rows.sum(axis=1)))
    np.testing.assert_allclose(weighted_counts(sp.csr_array(rows)), weights @ rows)


def test_who_rates_in_proportion_to_popularity_adds_nothing_but_rounding() -> None:
    everything = np.ones((3, 6))
    assert not sums_of_squares(sp.csr_array(everything), np.ones(6)).any()


@pytest.mark.parametrize("distance", [0.2, 1.5])
def test_the_noise_of_both_releases_is_what_their_distance_says(distance: float) -> None:
    items = 60
    rated = sp.csr_array(np.zeros((4, items)))
    draws = [NoisySets.released(rated, distance, 1, np.random.default_rng(seed)) for seed in range(40)]
    counts = np.concatenate([each.counts for each in draws]) / draws[0].count_noise
    assert_standard_normal(counts)
    of_counts = np.sqrt(RATINGS_PER_USER) / draws[0].count_noise
    of_pairs = 1 / (np.sqrt(2) * draws[0].pair_noise)
    # What both cost together is what was asked for, but for the margin of rounding.
    assert 1 - 1e-8 < np.hypot(of_counts, of_pairs) / distance <= 1
    assert gaussian_epsilon(float(np.hypot(of_counts, of_pairs)), 1e-6) <= gaussian_epsilon(distance, 1e-6)


def test_the_noise_on_pairs_is_symmetric_and_as_large_in_every_direction() -> None:
    rated = sp.csr_array(np.random.default_rng(1).random((400, 120)) < 0.5).astype(float)
    released = NoisySets.released(rated, 2.0, 1, np.random.default_rng(3))
    assert released.kept.size == 120
    np.testing.assert_array_equal(released.together, released.together.T)
    noise = released.together - sums_of_squares(rated, released.counts)
    assert_standard_normal(noise[np.triu_indices(120, 1)] / released.pair_noise)
    assert_standard_normal(np.diag(noise) / (np.sqrt(2) * released.pair_noise))


def log_likelihood(released: NoisySets, rated: sp.csr_array) -> float:
    """Return the log likelihood of what was released, up to a constant, if these are the sets."""
    of_counts = released.counts - weighted_counts(rated)
    kept = released.kept
    of_pairs = released.together - sums_of_squares(rated[:, kept], released.counts[kept])
    # Every pair is there twice, with half of the noise's precision; so is the diagonal once.
    squares = (of_counts**2).sum() / released.count_noise**2
    return -float(squares + (of_pairs**2).sum() / (2 * released.pair_noise**2)) / 2


@pytest.mark.parametrize("ratings", [4, 25])
def test_what_is_released_tells_a_profile_from_none_no_better_than_its_distance(ratings: int) -> None:
    random, distance, draws = np.random.default_rng(2), 1.5, 100
    others = (random.random((400, 30)) < 0.4).astype(float)
    own = np.r_[np.ones(ratings), np.zeros(30 - ratings)]
    without, present = (sp.csr_array(rows) for rows in (others, np.vstack([others, own])))
    gains = []
    for seed in range(draws):
        released = NoisySets.released(present, distance, 1, np.random.default_rng(seed))
        assert released.kept.size == 30
        gains.append(log_likelihood(released, present) - log_likelihood(released, without))
    # The gains have the mean m^2 / 2 and the variance m^2 if m is what the profile moves in all. The mean is
    # farther from its expectation than 5 of its standard deviations with a probability below 1e-6.
    error = 5 * distance / np.sqrt(draws)
    moved = np.sqrt(noisy_sets._SHARE_OF_COUNTS * min(ratings, RATINGS_PER_USER) / RATINGS_PER_USER + 0.7)
    assert np.mean(gains) <= distance**2 / 2 + error
    assert np.mean(gains) == pytest.approx((moved * distance) ** 2 / 2, abs=error)


def test_items_below_the_least_count_or_within_the_noise_are_not_kept() -> None:
    rated = sp.csr_array(np.arange(40)[:, None] >= np.array([0, 10, 37, 40])).astype(float)
    many = NoisySets.released(sp.vstack([rated] * 10).tocsr(), 1e3, 35, np.random.default_rng(1))
    np.testing.assert_array_equal(many.kept, [0, 1])
    np.testing.assert_array_equal(
        NoisySets.released(sp.vstack([rated] * 10).tocsr(), 1e3, 5, np.random.default_rng(1)).kept, [0, 1, 2]
    )
    noisy = NoisySets.released(rated, 0.5, 1, np.random.default_rng(1))
    assert 3 * noisy.count_noise > 40
    assert noisy.kept.size == 0
    assert noisy.together.shape == (0, 0)
