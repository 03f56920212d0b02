"""Embeddings of users and items, from nothing but which items were rated.

Embeddings within what item sets may say to everybody: the least raters, and noise.

Sums over everybody's item sets, with noise: how far one profile moves them, and how large the noise is.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from dprec.completion import embedded, spectral
from dprec.completion.calibrated import embedding as noisy_sets
from dprec.completion.calibrated.embedding import (
    RATINGS_PER_USER,
    ItemSetEmbedding,
    NoisySets,
    noise_edge,
    sums_of_squares,
    weighted_counts,
)
from dprec.observations import AS_THEY_ARE, EmbeddingRelease
from tests.distributions import check_drawn, check_independent

SHAPE, CIRCLES = (60, 40), (2000, 40)


def rated_circles(users: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rated cells of users who nearly always rate items of their own half."""
    random = np.random.default_rng(seed)
    user, item = np.indices((users, CIRCLES[1]))
    same = (user < users / 2) == (item < CIRCLES[1] / 2)
    return np.nonzero(random.random((users, CIRCLES[1])) < np.where(same, 0.6, 0.05))


def test_over_the_ratings_embeddings_have_mean_0_and_later_dimensions_spread_less() -> None:
    embedding = ItemSetEmbedding.of(*rated_circles(60), SHAPE, 4, seed=1)
    for embeddings, counts in (
        (embedding.users, embedding.user_counts),
        (embedding.items, embedding.item_counts),
    ):
        shares = counts / counts.sum()
        np.testing.assert_allclose(shares @ embeddings, 0, atol=1e-12)
        variances = shares @ embeddings**2
        assert variances[0] == pytest.approx(1.0)
        assert (np.diff(variances) <= 1e-12).all()


def same(first: ItemSetEmbedding, second: ItemSetEmbedding) -> bool:
    """Return whether everything is equal in two geometries."""
    return all(np.array_equal(ours, vars(second)[name]) for name, ours in vars(first).items())


def test_who_alone_rated_an_item_changes_no_embedding_if_items_need_two_raters() -> None:
    users, items = rated_circles(60)
    shape = (60, CIRCLES[1] + 2)
    alone = np.r_[users, 3, 50], np.r_[items, 40, 41]
    as_they_are = embedded(*alone, shape, AS_THEY_ARE, 3, 1)
    assert as_they_are.items[40].any()
    assert as_they_are.items[41].any()
    left_out = embedded(*alone, shape, EmbeddingRelease(least_raters=2), 3, 1)
    assert not left_out.items[40:].any()
    # Nor does it matter to any other embedding who it was.
    others = embedded(
        np.r_[users, 20, 21], np.r_[items, 40, 41], shape, EmbeddingRelease(least_raters=2), 3, 1
    )
    np.testing.assert_array_equal(left_out.items, others.items)
    # How often an item is rated is told all the same.
    np.testing.assert_array_equal(left_out.item_counts, as_they_are.item_counts)
    np.testing.assert_array_equal(left_out.user_counts, as_they_are.user_counts)


def test_where_no_item_has_enough_raters_only_popularity_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    # As a large matrix, which is decomposed by iteration.
    monkeypatch.setattr(spectral, "DENSE_CELLS", 1)
    users, items = np.arange(40) // 2, np.arange(40) % 30
    embedding = embedded(users, items, (20, 30), EmbeddingRelease(least_raters=5), 3, 1)
    np.testing.assert_array_equal(embedding.users, np.zeros((20, 3)))
    np.testing.assert_array_equal(embedding.items, np.zeros((30, 3)))
    np.testing.assert_array_equal(embedding.item_counts, [2] * 10 + [1] * 20)
    assert embedding.popularity[0] > 0 > embedding.popularity[29]


def test_noise_is_the_same_again_and_another_for_another_budget_or_profile() -> None:
    users, items = rated_circles()
    first = embedded(users, items, CIRCLES, EmbeddingRelease(epsilon=4.0), 3, 1)
    assert same(first, embedded(users, items, CIRCLES, EmbeddingRelease(epsilon=4.0), 3, 1))
    assert not same(first, embedded(users, items, CIRCLES, EmbeddingRelease(epsilon=4.0), 3, 2))
    exact = np.bincount(items, minlength=40)
    for changed in (
        embedded(users, items, CIRCLES, EmbeddingRelease(epsilon=2.0), 3, 1),
        embedded(users[:-1], items[:-1], CIRCLES, EmbeddingRelease(epsilon=4.0), 3, 1),
    ):
        noise = np.corrcoef(first.item_counts - exact, changed.item_counts - exact)[0, 1]
        # A correlation of 40 independent pairs exceeds 0.7 with a probability below 1e-6.
        assert abs(noise) < 0.7


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


def test_the_noise_on_pairs_is_symmetric_and_as_large_in_every_direction() -> None:
    rated = sp.csr_array(np.random.default_rng(1).random((400, 120)) < 0.5).astype(float)
    released = NoisySets.released(rated, 2.0, 1, np.random.default_rng(3))
    assert released.pair_items.size == 120
    np.testing.assert_array_equal(released.together, released.together.T)
    noise = released.together - sums_of_squares(rated, released.counts)
    assert_standard_normal(noise[np.triu_indices(120, 1)] / released.pair_noise)
    assert_standard_normal(np.diag(noise) / (np.sqrt(2) * released.pair_noise))


def test_nothing_is_left_of_the_last_bits_of_what_noise_was_added_to() -> None:
    rated = sp.csr_array(np.random.default_rng(1).random((400, 120)) < 0.5).astype(float)
    released = NoisySets.released(rated, 2.0, 1, np.random.default_rng(3))
    for sums, noise in ((released.counts, released.count_noise), (released.together, released.pair_noise)):
        # Small beside the noise, and 2**30 or more of what sums in floating point are told apart by.
        step = 2.0 ** np.floor(np.log2(noise * 2.0**-16))
        assert step > 2.0**30 * np.finfo(float).eps * noise
        np.testing.assert_array_equal(sums / step, np.rint(sums / step))
        assert np.unique(sums).size > 100


def test_the_noise_of_both_releases_has_its_deviation_and_is_drawn_once_for_each() -> None:
    """200 items give 19,900 pairs, and 20,000 items counts: enough to find an error of 5 %."""
    nothing = sp.csr_array(np.zeros((4, 20_000)))
    counts = NoisySets.released(nothing, 0.7, 10**9, np.random.default_rng(5))
    assert counts.pair_items.size == 0
    check_drawn(counts.counts / counts.count_noise, stats.norm())
    check_independent(counts.counts[::2], counts.counts[1::2])
    rated = sp.csr_array(np.random.default_rng(1).random((400, 200)) < 0.5).astype(float)
    released = NoisySets.released(rated, 2.0, 1, np.random.default_rng(3))
    assert released.pair_items.size == 200
    # What both cost together is what was asked for, but for the margin of rounding.
    of_counts, of_pairs = np.sqrt(RATINGS_PER_USER) / released.count_noise, 1 / released.pair_noise
    assert 1 - 1e-8 < np.hypot(of_counts, of_pairs / np.sqrt(2)) / 2.0 <= 1
    noise = released.together - sums_of_squares(rated, released.counts)
    check_drawn(noise[np.triu_indices(200, 1)] / released.pair_noise, stats.norm())
    # Of two halves of the items: no pair is in both columns.
    across = noise[:100, 100:]
    check_independent(across[:, ::2], across[:, 1::2])


def test_unequal_weights_have_the_edge_of_noise_drawn_with_them() -> None:
    random = np.random.default_rng(1)
    rows, columns = random.lognormal(sigma=0.3, size=500), random.lognormal(sigma=0.3, size=700)
    noise = random.standard_normal((500, 700)) * rows[:, None] * columns
    assert noise_edge(rows, columns) == pytest.approx(np.linalg.norm(noise, 2), rel=0.05)
