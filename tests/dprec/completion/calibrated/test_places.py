"""Places within what item sets may say to everybody: the least raters, and noise."""

import numpy as np
import pytest

from dprec.completion import embedded
from dprec.completion.calibrated.embedding import ItemSetEmbedding
from dprec.observations import AS_THEY_ARE, EmbeddingRelease

SHAPE = (2000, 40)


def two_circles(users: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rated cells of users who nearly always rate items of their own half."""
    random = np.random.default_rng(seed)
    user, item = np.indices((users, SHAPE[1]))
    same = (user < users / 2) == (item < SHAPE[1] / 2)
    return np.nonzero(random.random((users, SHAPE[1])) < np.where(same, 0.6, 0.05))


def same(first: ItemSetEmbedding, second: ItemSetEmbedding) -> bool:
    """Return whether everything is equal in two geometries."""
    return all(np.array_equal(ours, vars(second)[name]) for name, ours in vars(first).items())


def test_who_alone_rated_an_item_changes_no_place_if_items_need_two_raters() -> None:
    users, items = two_circles(60)
    shape = (60, SHAPE[1] + 2)
    alone = np.r_[users, 3, 50], np.r_[items, 40, 41]
    as_they_are = embedded(*alone, shape, AS_THEY_ARE, 3, 1)
    assert as_they_are.items[40].any()
    assert as_they_are.items[41].any()
    left_out = embedded(*alone, shape, EmbeddingRelease(least_raters=2), 3, 1)
    assert not left_out.items[40:].any()
    # Nor does it matter to any other place who it was.
    others = embedded(
        np.r_[users, 20, 21], np.r_[items, 40, 41], shape, EmbeddingRelease(least_raters=2), 3, 1
    )
    np.testing.assert_array_equal(left_out.items, others.items)
    # How often an item is rated is told all the same.
    np.testing.assert_array_equal(left_out.item_counts, as_they_are.item_counts)
    np.testing.assert_array_equal(left_out.user_counts, as_they_are.user_counts)


def test_without_a_least_number_everything_is_as_it_is() -> None:
    cells = two_circles(60)
    assert same(embedded(*cells, (60, 40), AS_THEY_ARE, 3, 1), ItemSetEmbedding.of(*cells, (60, 40), 3, 1))


def test_with_little_noise_the_circles_are_told_apart_and_with_much_nothing_is_placed() -> None:
    cells = two_circles()
    embedding = embedded(*cells, SHAPE, EmbeddingRelease(epsilon=2.0), 3, 1)
    first = embedding.items[:, 0] * np.sign(embedding.items[0, 0])
    assert (first[:20] > 0).all()
    assert (first[20:] < 0).all()
    own = embedding.users[:, 0] * np.sign(embedding.items[0, 0])
    assert (own[:1000] > 0).mean() > 0.99
    assert (own[1000:] < 0).mean() > 0.99
    # The other dimensions do not stand out from the noise.
    assert not embedding.items[:, 1:].any()
    private = embedded(*cells, SHAPE, EmbeddingRelease(epsilon=0.01), 3, 1)
    assert not private.items.any()
    assert private.count_reliability < embedding.count_reliability


def test_noise_is_the_same_again_and_another_for_another_budget_or_profile() -> None:
    users, items = two_circles()
    first = embedded(users, items, SHAPE, EmbeddingRelease(epsilon=4.0), 3, 1)
    assert same(first, embedded(users, items, SHAPE, EmbeddingRelease(epsilon=4.0), 3, 1))
    assert not same(first, embedded(users, items, SHAPE, EmbeddingRelease(epsilon=4.0), 3, 2))
    exact = np.bincount(items, minlength=40)
    for changed in (
        embedded(users, items, SHAPE, EmbeddingRelease(epsilon=2.0), 3, 1),
        embedded(users[:-1], items[:-1], SHAPE, EmbeddingRelease(epsilon=4.0), 3, 1),
    ):
        noise = np.corrcoef(first.item_counts - exact, changed.item_counts - exact)[0, 1]
        # A correlation of 40 independent pairs exceeds 0.7 with a probability below 1e-6.
        assert abs(noise) < 0.7


@pytest.mark.parametrize("dimensions", [0, 3, 60])
def test_every_number_of_dimensions_is_kept(dimensions: int) -> None:
    embedding = embedded(*two_circles(), SHAPE, EmbeddingRelease(epsilon=4.0), dimensions, 1)
    assert embedding.items.shape == (40, dimensions)
    assert embedding.users.shape == (2000, dimensions)
    assert np.isfinite(embedding.items).all()


def test_nobody_has_a_place_where_nobody_rated_anything() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    embedding = embedded(nothing, nothing, SHAPE, EmbeddingRelease(epsilon=1.0), 2, 1)
    assert not embedding.items.any()
    assert not embedding.users.any()
