"""Sums over the rated cells of users and items."""

import numpy as np

from dprec.completion.calibrated.latent_ratings import Cells

CELLS = Cells(np.array([0, 0, 2, 2, 2]), np.array([1, 3, 0, 1, 3]), (4, 5))
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0, -1.0])


def test_sums_are_those_of_a_loop_over_the_cells_for_vectors_and_matrices() -> None:
    random = np.random.default_rng(1)
    of_items, of_users = random.normal(size=(5, 2, 2)), random.normal(size=(4, 3))
    by_user, by_item = np.zeros((4, 2, 2)), np.zeros((5, 3))
    for user, item, weight in zip(CELLS.users, CELLS.items, WEIGHTS, strict=True):
        by_user[user] += weight * of_items[item]
        by_item[item] += weight * of_users[user]
    np.testing.assert_allclose(CELLS.by_user(WEIGHTS, of_items), by_user, rtol=1e-12)
    np.testing.assert_allclose(CELLS.by_item(WEIGHTS, of_users), by_item, rtol=1e-12)


def test_vectors_without_dimensions_have_sums_without_dimensions() -> None:
    assert CELLS.by_user(WEIGHTS, np.zeros((5, 0))).shape == (4, 0)
    assert CELLS.by_item(WEIGHTS, np.zeros((4, 0, 0))).shape == (5, 0, 0)
