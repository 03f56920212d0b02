"""Item-based prediction on numbers worked out by hand."""

import numpy as np
import pytest

from dprec.crossdomain.recommender import item_based, nearest_neighbors


def test_neighbours_move_the_mean() -> None:
    predictions = item_based(
        np.array([3.0, 4.0, 2.0]),
        np.array([[0.5, 0.25], [-0.5, 0.5], [0.0, 0.0]]),
        np.array([[1.0, -1.0], [1.0, 1.0], [1.0, 1.0]]),
    )
    np.testing.assert_allclose(predictions, [3 + 0.25 / 0.75, 4.0, 2.0])


def test_shrinkage_pulls_to_the_mean() -> None:
    cell = (np.array([3.0]), np.array([[0.5]]), np.array([[2.0]]))
    assert item_based(*cell)[0] == 5.0
    assert item_based(*cell, 0.5)[0] == 4.0
    assert item_based(*cell, 1e9)[0] == pytest.approx(3.0)


def test_no_neighbours() -> None:
    assert item_based(np.array([3.5]), np.zeros((1, 0)), np.zeros((1, 0))).tolist() == [3.5]


def test_the_nearest_come_first_and_ties_in_order() -> None:
    similarities = np.array([[0.1, 0.5, 0.5, -0.3]])
    assert nearest_neighbors(similarities, 2).tolist() == [[1, 2]]
    assert nearest_neighbors(similarities, 9).tolist() == [[1, 2, 0, 3]]
