"""Rounding to whole steps: right on average, and never longer than the bound."""

import numpy as np
import pytest

from dprec.secure_aggregation import rounded_rows, steps_of_unit
from dprec.secure_aggregation.secrets import derived_key

DEVICES, NUMBERS = 400, 30


def keys(count: int) -> list[bytes]:
    return [derived_key(bytes([7]), "test", number.to_bytes(4, "little")) for number in range(count)]


def test_no_rounded_vector_is_longer_than_the_bound() -> None:
    norm = 12
    steps = steps_of_unit(norm, NUMBERS)
    values = np.random.default_rng(1).standard_normal((DEVICES, NUMBERS))
    values *= steps / np.linalg.norm(values, axis=1, keepdims=True)
    rounded = rounded_rows(values.ravel(), np.full(DEVICES, NUMBERS), norm, keys(DEVICES))
    lengths = np.linalg.norm(rounded.reshape(DEVICES, NUMBERS), axis=1)
    assert lengths.max() <= norm
    assert lengths.max() > norm - 0.5
    assert (np.abs(rounded - values.ravel()) < 1).all()


def test_rounding_is_right_on_average() -> None:
    # Sums of 4000 deviates of variance below 1/4: beyond 5.4 of their deviations once in 10**7.
    values = np.tile(np.array([0.25, -1.75, 3.0]), 4000)
    rounded = rounded_rows(values, np.full(4000, 3), 100, keys(4000)).reshape(-1, 3)
    assert np.abs(rounded.mean(axis=0) - [0.25, -1.75, 3.0]).max() < 5.4 * 0.5 / np.sqrt(4000)
    assert set(rounded[:, 2]) == {3}


def test_a_device_whose_attempts_all_fail_rounds_towards_zero() -> None:
    values = np.array([0.9, -0.9, 1.2])
    assert rounded_rows(values, np.array([3]), 1, keys(1)).tolist() == [0, 0, 1]


def test_devices_without_numbers_are_passed_over_and_each_rounds_alone() -> None:
    values = np.random.default_rng(2).standard_normal(10) * 5
    together = rounded_rows(values, np.array([4, 0, 6]), 100, keys(3))
    alone = rounded_rows(values[4:], np.array([6]), 100, keys(3)[2:])
    np.testing.assert_array_equal(together[4:], alone)


@pytest.mark.parametrize(("norm", "numbers"), [(256, 60), (64, 2000), (10, 300)])
def test_the_steps_of_a_unit_leave_room_for_rounding(norm: int, numbers: int) -> None:
    steps = steps_of_unit(norm, numbers)
    assert steps**2 + numbers / 4 + steps + np.sqrt(numbers) / 2 == pytest.approx(norm**2)
    assert steps_of_unit(5, 1000) <= 0
