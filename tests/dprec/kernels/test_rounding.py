"""Rounding within a norm: what it adds, and the same bits without a compiler."""

from typing import Any

import numpy as np
import pytest

from dprec.kernels.rounding import bound_squares, round_within
from tests.interpreted import twin

COUNTS = np.array([3, 0, 5, 1])
INDPTR = np.array([0, 3, 3, 8, 9])
VALUES = np.array([0.5, -2.25, 1.0, 1.5, -1.5, 0.25, 3.75, 0.0, -0.5])
KEYS = np.arange(8, dtype=np.uint64).reshape(2, 4)


@pytest.mark.parametrize("kernel", [bound_squares, twin(bound_squares)], ids=["compiled", "interpreted"])
def test_the_squares_of_rounded_numbers_have_the_mean_and_deviation_of_coins(kernel: Any) -> None:
    devices, factors, squares = np.array([3, 0, 1]), np.array([1.0, 2.0, 1.0]), np.empty(3)
    kernel(VALUES, INDPTR, devices, factors, squares)
    # 1 with a coin; 1, 4 or 5 by one, and 2; nothing.
    np.testing.assert_allclose(squares, [0.5 + 0.5, 1 + (16 + 0.5 * 9) + 4 + 0.5 * 9, 0.0])


@pytest.mark.parametrize("kernel", [round_within, twin(round_within)], ids=["compiled", "interpreted"])
def test_numbers_are_rounded_anew_until_they_are_within_the_bound(kernel: Any) -> None:
    for most in (9, 19, 400):
        rounded, apart = np.empty((2, 9), dtype=np.int64)
        kernel(VALUES, INDPTR, most, KEYS, 64, rounded)
        assert (np.abs(rounded - VALUES) < 1).all()
        squares = np.bincount(np.repeat(np.arange(4), COUNTS), rounded**2, minlength=4)
        towards_0 = np.trunc(VALUES).astype(np.int64)
        assert ((squares <= most) | (rounded[INDPTR[2]] == 1)).all()
        if most == 9:
            # Below 1 + 1 + 0 + 9 there is nothing for the third.
            assert rounded[3:8].tolist() == towards_0[3:8].tolist()
        round_within(VALUES, INDPTR, most, KEYS, 64, apart)
        assert rounded.tolist() == apart.tolist()
