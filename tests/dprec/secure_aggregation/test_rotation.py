"""Rotations: they keep norms, come back, and spread what is large."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from dprec.secure_aggregation import Rotation, largest_number, padded_size


@pytest.mark.parametrize("size", [1, 5, 16, 100])
def test_a_rotation_keeps_the_norm_and_comes_back(size: int) -> None:
    rows = np.random.default_rng(size).standard_normal((7, size))
    rotation = Rotation.of(size, 1, "test")
    turned = rotation.turned(rows)
    assert turned.shape == (7, padded_size(size))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(rows, axis=1))
    np.testing.assert_allclose(rotation.turned_back(turned), rows, atol=1e-12)


def test_it_is_the_matrix_of_walsh_and_hadamard_with_signs() -> None:
    rotation = Rotation.of(8, 1, "test")
    expected = hadamard(8) / np.sqrt(8) @ np.diag(rotation.signs)
    np.testing.assert_allclose(rotation.turned(np.eye(8)).T, expected, atol=1e-12)


def test_numbers_of_a_turned_vector_stay_below_the_bound() -> None:
    # The bound fails for one of 200,000 numbers with a probability of 1e-12 each.
    rows = np.zeros((100, 2000))
    rows[:, :50] = 3.0
    rotation = Rotation.of(2000, 1, "test")
    turned = rotation.turned(rows * np.random.default_rng(1).choice([-1, 1], rows.shape))
    bound = largest_number(3 * np.sqrt(50), 2048, 1e-12)
    assert np.abs(turned).max() < bound < 4
    assert largest_number(2.0, 4, 1e-12) == 2.0
