"""Updates that are clipped, rounded and added up: as NumPy does it, and the same bits without a compiler."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprec.kernels.updates import add_up, clip
from tests.interpreted import twin

UNIT = 1000.0


def updates() -> np.ndarray:
    """Return short, long, empty and broken updates of seven numbers."""
    rows = np.random.default_rng(1).standard_normal((9, 7)) * np.geomspace(1e-3, 1e3, 9)[:, None]
    rows[2] = 0.0
    rows[4, 3], rows[5, 0], rows[6] = np.nan, -np.inf, 1e200
    return rows


@pytest.mark.parametrize("kernel", [clip, twin(clip)], ids=["compiled", "interpreted"])
def test_steps_are_cut_towards_zero_and_no_longer_than_a_unit(kernel: Callable[..., Any]) -> None:
    rows, steps, norms = updates(), np.full((9, 8), 7, dtype=np.int32), np.empty(9)
    kernel(steps, norms, rows, 2.0, UNIT)
    with np.errstate(over="ignore"):
        expected = np.where(np.isfinite(rows).all(axis=1), np.linalg.norm(rows, axis=1), np.inf)
    np.testing.assert_allclose(norms, expected, rtol=1e-14)
    kept = np.isfinite(expected)
    exact = rows[kept] * (UNIT / np.maximum(expected[kept], 2.0))[:, None]
    assert np.abs(steps[kept, :7] - np.trunc(exact)).max() <= 1
    assert (np.linalg.norm(steps[:, :7].astype(float), axis=1) <= UNIT).all()
    assert not steps[~kept, :7].any()
    # What an update has besides is left to others.
    assert (steps[:, 7] == 7).all()


@pytest.mark.parametrize("kernel", [add_up, twin(add_up)], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(("longest", "right"), [(5, [1, 1, 0, 0, 0, 1]), (0, [1, 1, 1, 0, 1, 1])])
def test_reports_that_no_device_sends_are_not_added(
    kernel: Callable[..., Any], longest: int, right: list[int]
) -> None:
    rows = np.array([[3, 4, 2], [-3, 4, -2], [4, 4, 2], [9, 0, 0], [0, 0, 1], [0, -5, 0]], dtype=np.int32)
    total, valid = np.zeros(3, dtype=np.int64), np.empty(6, dtype=np.bool_)
    kernel(total, valid, rows, 2, longest, 8, 2)
    assert valid.tolist() == [bool(each) for each in right]
    np.testing.assert_array_equal(total, rows[valid].sum(axis=0))


def test_the_bits_are_the_same_where_nothing_is_compiled() -> None:
    found = []
    for kernel in (clip, twin(clip)):
        steps, norms = np.zeros((9, 7), dtype=np.int32), np.empty(9)
        kernel(steps, norms, updates(), 2.0, UNIT)
        found.append((steps.tobytes(), norms.tobytes()))
    assert found[0] == found[1]
