"""Kernels of alternating directions, compiled and interpreted, against sums of arrays."""

from types import ModuleType

import numpy as np
import pytest

from dprec.kernels import directions as compiled
from tests.interpreted import interpreted

BOTH = [compiled, interpreted("dprec.kernels.directions")]
BOUND = 0.7


@pytest.mark.parametrize("kernels", BOTH)
def test_entries_have_the_bits_of_sums_of_arrays(kernels: ModuleType) -> None:
    matrix, clipped, inside, dual = np.random.default_rng(1).normal(size=(4, 500))
    target, within = np.empty(500), np.empty(500)
    kernels.weigh(target, matrix, clipped, dual, 3.0)
    assert target.tobytes() == (((clipped - dual) * 3.0 + matrix) / (1 + 3.0)).tobytes()
    relaxed, before = 1.7 * inside + (1 - 1.7) * clipped, dual.copy()
    kernels.move_within(within, dual, clipped, inside, 1.7, BOUND)
    assert within.tobytes() == np.clip(relaxed + before, -BOUND, BOUND).tobytes()
    assert dual.tobytes() == (before + (relaxed - within)).tobytes()
    assert 0 < np.count_nonzero(np.abs(within) < BOUND) < within.size


@pytest.mark.parametrize("kernels", BOTH)
def test_what_is_no_number_stays_none(kernels: ModuleType) -> None:
    target, nothing = np.empty(3), np.zeros(3)
    within = np.array([np.nan, 2.0, -0.1])
    kernels.relax(target, within, nothing, nothing, 1.7, BOUND)
    np.testing.assert_array_equal(within, [np.nan, BOUND, -0.1])
    np.testing.assert_array_equal(target, 1.7 * within)
