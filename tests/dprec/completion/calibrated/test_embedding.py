"""Places of users and items, from nothing but which items were rated."""

import numpy as np
import pytest

from dprec.completion.calibrated.embedding import ItemSetEmbedding, standardised_logarithms

SHAPE = (60, 40)


def two_circles(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rated cells of users who nearly always rate items of their own half."""
    random = np.random.default_rng(seed)
    users, items = np.indices(SHAPE)
    same = (users < 30) == (items < 20)
    return np.nonzero(random.random(SHAPE) < np.where(same, 0.6, 0.05))


def test_the_first_dimension_tells_the_circles_apart() -> None:
    embedding = ItemSetEmbedding.of(*two_circles(), SHAPE, 3, seed=1)
    first = embedding.items[:, 0] * np.sign(embedding.items[0, 0])
    assert (first[:20] > 0).all()
    assert (first[20:] < 0).all()
    own = embedding.users[:, 0] * np.sign(embedding.items[0, 0])
    assert (own[:30] > 0).all()
    assert (own[30:] < 0).all()
    assert embedding.items.shape == (40, 3)


def test_over_the_ratings_places_have_mean_0_and_later_dimensions_spread_less() -> None:
    embedding = ItemSetEmbedding.of(*two_circles(), SHAPE, 4, seed=1)
    for embeddings, counts in (
        (embedding.users, embedding.user_counts),
        (embedding.items, embedding.item_counts),
    ):
        shares = counts / counts.sum()
        np.testing.assert_allclose(shares @ embeddings, 0, atol=1e-12)
        variances = shares @ embeddings**2
        assert variances[0] == pytest.approx(1.0)
        assert (np.diff(variances) <= 1e-12).all()


def test_who_rated_nothing_is_at_the_origin_and_missing_dimensions_are_0() -> None:
    users, items = two_circles()
    kept = (users != 7) & (items != 11)
    embedding = ItemSetEmbedding.of(users[kept], items[kept], SHAPE, 4, seed=1)
    assert not embedding.users[7].any()
    assert not embedding.items[11].any()
    tiny = ItemSetEmbedding.of(np.array([0, 1]), np.array([1, 2]), (2, 3), 4, seed=1)
    assert tiny.items.shape == (3, 4)
    assert not tiny.items.any()
    empty = ItemSetEmbedding.of(np.zeros(0, int), np.zeros(0, int), SHAPE, 2, seed=1)
    assert not empty.items.any()
    assert not empty.users.any()


def test_logarithms_of_counts_are_standardised_over_the_ratings() -> None:
    counts = np.array([0, 1, 10, 100])
    values = standardised_logarithms(counts)
    assert values[0] == 0
    assert counts @ values == pytest.approx(0, abs=1e-9)
    assert counts @ values**2 / counts.sum() == pytest.approx(1)
    assert (np.diff(values[1:]) > 0).all()
    assert not standardised_logarithms(np.array([5, 5])).any()
