"""A device's own factors: the ridge solution, whatever the partition, and defined for any item factors."""

from __future__ import annotations

import numpy as np
import pytest

from dprec.completion import Profiles, solve_user_factors
from dprec.datasets import Synthetic
from dprec.randomness import generator

USERS, ITEMS, RANK = 30, 20, 3


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    ratings = Synthetic(users=USERS, items=ITEMS, ratings=240).load()
    ratings = ratings.select(ratings.users != 4)
    return Profiles(ratings.indptr, ratings.items, ratings.values, ITEMS)


def part(profiles: Profiles, start: int, stop: int) -> Profiles:
    first, last = profiles.indptr[start], profiles.indptr[stop]
    return Profiles(
        profiles.indptr[start : stop + 1] - first,
        profiles.items[first:last],
        profiles.values[first:last],
        ITEMS,
    )


def test_every_user_has_the_ridge_solution(profiles: Profiles) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    solved = solve_user_factors(profiles, factors, 0.7)
    for user in range(USERS):
        own = part(profiles, user, user + 1)
        design = np.vstack([factors[own.items], np.sqrt(0.7) * np.eye(RANK)])
        target = np.concatenate([own.values, np.zeros(RANK)])
        expected = np.linalg.lstsq(design, target)[0]
        np.testing.assert_allclose(solved[user], expected, rtol=1e-9, atol=1e-12)
    assert solved[4].tolist() == [0.0] * RANK


def test_residuals_are_what_the_factors_miss(profiles: Profiles) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    own = solve_user_factors(profiles, factors, 0.7)
    expected = [
        value - own[user] @ factors[item]
        for user, item, value in zip(profiles.users, profiles.items, profiles.values, strict=True)
    ]
    np.testing.assert_allclose(profiles.residuals(own, factors), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 7])
def test_a_user_is_solved_alike_in_every_partition(profiles: Profiles, size: int) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    together = solve_user_factors(profiles, factors, 0.7)
    alone = [
        solve_user_factors(part(profiles, start, min(start + size, USERS)), factors, 0.7)
        for start in range(0, USERS, size)
    ]
    assert np.concatenate(alone).tolist() == together.tolist()


def test_a_user_without_a_solution_gets_zeros_and_nobody_else_does(profiles: Profiles) -> None:
    """Two equal factors of 1e30 drown the ridge for those who rated the item, and for them only."""
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    expected = solve_user_factors(profiles, factors, 0.7)
    item = 3
    factors[item] = 1e30
    raters = set(profiles.users[profiles.items == item].tolist())
    assert 0 < len(raters) < USERS
    solved = solve_user_factors(profiles, factors, 0.7)
    assert np.isfinite(solved).all()
    others = [user for user in range(USERS) if user not in raters]
    assert solved[others].tolist() == expected[others].tolist()
    only = Profiles(np.array([0, 1]), np.array([item], dtype=np.int32), np.array([5.0]), ITEMS)
    assert solve_user_factors(only, factors, 0.7).tolist() == [[0.0] * RANK]
