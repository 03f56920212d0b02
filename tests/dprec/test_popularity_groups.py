"""Groups of items of about the same popularity."""

import numpy as np

from dprec.arrays import popularity_groups


def test_groups_have_about_the_same_number_of_ratings() -> None:
    ratings = np.random.default_rng(1).geometric(0.02, 400) - 1
    groups = popularity_groups(ratings, 3)
    sums = np.bincount(groups, weights=ratings)
    assert np.abs(sums - ratings.sum() / 3).max() <= ratings.max()
    # No item of a later group is more popular.
    for group in (0, 1):
        assert ratings[groups == group].min() >= ratings[groups > group].max()


def test_equally_popular_items_are_grouped_in_their_order() -> None:
    assert popularity_groups(np.array([2, 2, 2, 2]), 2).tolist() == [0, 0, 1, 1]
    assert popularity_groups(np.zeros(3, dtype=np.int64), 2).tolist() == [0, 0, 0]
