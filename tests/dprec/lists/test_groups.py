"""Groups of items: which are found, what others of a user's items say, and what lifts add to a score."""

import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Floats
from dprec.lists.groups import (
    LEAST_LIFT,
    NO_GROUP,
    ItemGroups,
    grouped_at,
    groups_at,
    groups_of,
    others_in_groups,
)

PLANTED = np.random.default_rng(1).permutation(np.arange(40) % 4)


def table_of(groups: np.ndarray, within: float, deviation: float = 0.2) -> Floats:
    """Return a table of items of which those of a group go together more often, shape (items, items)."""
    random, popularity = np.random.default_rng(2), 1 / (2 + np.arange(groups.size))
    table = np.outer(popularity, popularity) * np.where(groups[:, None] == groups, within, 1.0)
    table *= np.exp(deviation * random.standard_normal(table.shape))
    table = np.triu(table, 1)
    return table + table.T


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_groups_are_found_whatever_the_starts(seed: int) -> None:
    found = groups_of(table_of(PLANTED, 6.0), 4, seed)
    assert found.dtype == np.uint8
    assert len(set(zip(found.tolist(), PLANTED.tolist(), strict=True))) == len(set(found.tolist())) == 4


def test_groups_are_the_same_for_a_seed_and_no_more_than_asked_for() -> None:
    nothing = table_of(PLANTED, 1.0, 1.0)
    assert np.array_equal(groups_of(nothing, 7, 3), groups_of(nothing, 7, 3))
    assert not np.array_equal(groups_of(nothing, 7, 3), groups_of(nothing, 7, 4))
    assert groups_of(nothing, 7, 3).max() < 7
    assert groups_of(nothing, 1, 3).tolist() == [0] * 40
    # Of items that are in no pair nothing is known, and each is in a group all the same.
    assert groups_of(np.zeros((5, 5)), 5, 0).max() < 5


OWN = st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=5)
GROUPED = st.lists(st.sampled_from([0, 1, 2, NO_GROUP]), min_size=8, max_size=8)


@given(sets=OWN, groups=GROUPED)
def test_others_are_counted_by_group_squared_and_of_length_one(
    sets: list[set[int]], groups: list[int]
) -> None:
    users = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    places = np.array([item for own in sets for item in sorted(own)], dtype=np.int32)
    found = others_in_groups(users, places, np.array(groups, dtype=np.uint8), 3, len(sets))
    expected = []
    for own in sets:
        for item in sorted(own):
            counts = Counter(groups[other] for other in own - {item})
            squares = [counts[group] ** 2 for group in range(3)]
            expected.append([square / (math.hypot(*squares) or 1.0) for square in squares])
    np.testing.assert_allclose(found, np.reshape(expected, (-1, 3)), rtol=1e-12)


TOLD = ItemGroups(np.array([1, 3], dtype=np.int32), np.log([[2.0, 1.0], [0.5, 4.0]]), np.log([3.0, 1.0]), 2.0)
POPULARITY = np.log([9.0, 2.0, 5.0, 1.0])


def test_items_belong_to_groups_by_what_is_above_expectation() -> None:
    # Expected are 6 and 2 of item 1, 3 and 1 of item 3; above are 6 and 0, 0 and 3.
    np.testing.assert_allclose(TOLD.memberships(POPULARITY), [[6 / 7, 0], [0, 3 / 4]])


def test_scores_are_logarithms_of_what_the_groups_of_the_own_items_make_likelier() -> None:
    sets = sp.csr_array(np.array([[1.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]))
    found = TOLD.scores(sets, TOLD.memberships(POPULARITY))
    first = 2 * np.log(np.array([1 + 6 / 7 * 2, 1 + 6 / 7 * 0.5]) / (13 / 7))
    both = 2 * np.log(np.array([1 + 6 / 7 * 2 + 3 / 4, 1 + 6 / 7 * 0.5 + 3 / 4 * 4]) / (1 + 6 / 7 + 3 / 4))
    np.testing.assert_allclose(found, [first, [0, 0], both], atol=1e-12)


WIDE = st.floats(-200, 200)


@given(lifts=st.lists(WIDE, min_size=6, max_size=6), rest=st.lists(WIDE, min_size=5, max_size=5))
def test_nothing_belongs_to_groups_by_more_than_one_and_all_scores_are_finite(
    lifts: list[float], rest: list[float]
) -> None:
    """Of whatever a server can send."""
    items = np.arange(2, dtype=np.int32)
    groups = ItemGroups(items, np.reshape(lifts, (2, 3)), np.array(rest[:3]), 200.0)
    memberships = groups.memberships(np.array(rest[3:]))
    assert memberships.min() >= 0
    assert memberships.sum(axis=1).max() <= 1 + 1e-12
    assert np.isfinite(groups.scores(sp.csr_array(np.array([[1.0, 0], [1, 1]])), memberships)).all()


def test_without_noise_lifts_are_the_sum_over_what_popularity_explains() -> None:
    popularity, lifted = np.array([8.0, 4.0, 2.0, 1.0]), np.ones((4, 2))
    lifted[1, 0], lifted[2, 1], lifted[3, 1] = 3.0, 5.0, 0.0
    noisy = 10 * np.outer(popularity, [3.0, 2.0]) * lifted
    found = ItemGroups.of(np.arange(4, dtype=np.int32), noisy, 1e-6, popularity, 0.7)
    base = np.outer(popularity, noisy.sum(axis=0))
    base *= (noisy * base).sum() / (base**2).sum()
    np.testing.assert_allclose(found.lifts, np.log(np.maximum(noisy / base, LEAST_LIFT)), atol=1e-6)
    np.testing.assert_allclose(np.exp(found.expected) * 1e-6 * popularity[:, None], base)
    assert found.share == 0.7


def test_of_noise_alone_hardly_anything_belongs_to_a_group() -> None:
    random, popularity = np.random.default_rng(3), 1 / (2 + np.arange(200.0))
    base = 20 * np.outer(popularity, np.ones(8))
    noise = 3 * random.standard_normal(base.shape)
    planted = base.copy()
    planted[5, 2] += 60
    items = np.arange(200, dtype=np.int32)
    nothing, something = (
        ItemGroups.of(items, sums + noise, 3.0, popularity).memberships(np.log(popularity))
        for sums in (base, planted)
    )
    assert np.median(nothing.sum(axis=1)) < 0.1
    assert something[5].argmax() == 2
    assert something[5, 2] > 0.8


def test_there_are_groups_where_items_are_many_beside_the_table_and_noise_is_small() -> None:
    assert groups_at(400, 1.4e-4, 8_000) == 20
    assert groups_at(400, 1.4e-4, 7_999) == 0
    assert groups_at(400, 2.6e-4, 8_000) == 0
    assert groups_at(0, 1e-5, 8_000) == 0
    assert groups_at(9, 1e-5, 8_000) == 8
    assert groups_at(5, 1e-5, 8_000) == 5
    assert groups_at(4_000, 0.0, 1_000_000) == 150
    # About as many numbers as pairs.
    assert grouped_at(400, 20, 8_000) == 4_000
    assert grouped_at(400, 20, 3_000) == 3_000
    assert grouped_at(10, 150, 8_000) == 10
