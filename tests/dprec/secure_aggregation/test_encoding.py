"""The modulus: no sum is taken for another one, by a bound.

Rounding to whole steps: right on average, and never longer than the bound.

Rotations: they keep norms, come back, and spread what is large.

A count sketch: right on average, and exact where an item is alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import skellam

from dprec.errors import SettingError
from dprec.secure_aggregation import (
    CountSketch,
    Rotation,
    centred,
    check_modulus,
    largest_number,
    modulus_bits,
    padded_size,
    reduced,
    rounded_rows,
    steps_of_unit,
)
from dprec.secure_aggregation.encoding import OVERFLOW, skellam_tail
from dprec.secure_aggregation.secrets import derived_key


@pytest.mark.parametrize("variance", [0.1, 3.0, 400.0, 1e6])
@pytest.mark.parametrize("probability", [1e-3, 1e-9])
def test_the_tail_is_a_bound_and_not_a_loose_one(variance: float, probability: float) -> None:
    tail = skellam_tail(variance, probability)
    beyond = 2 * skellam.sf(tail - 1, variance / 2, variance / 2)
    assert beyond <= probability
    assert 2 * skellam.sf(int(0.7 * tail) - 1, variance / 2, variance / 2) > probability


@pytest.mark.parametrize("bits", [2, 12, 16, 17, 33, 62])
def test_sums_of_either_sign_come_back(bits: int) -> None:
    largest = 2 ** (bits - 1)
    values = np.array([-largest, -1, 0, 1, largest - 1])
    np.testing.assert_array_equal(centred(reduced(values, bits), bits), values)
    assert (reduced(values, bits) < 2**bits).all()


def test_the_bits_hold_the_largest_sum_and_no_fewer_do() -> None:
    for largest in (1, 7, 8, 1000, 2**20):
        bits = modulus_bits(largest, 0.0, 100)
        assert 2 ** (bits - 1) - 1 >= largest > 2 ** (bits - 2) - 1
    tail = skellam_tail(50.0, OVERFLOW / 100)
    assert modulus_bits(0, 50.0, 100) == tail.bit_length() + 1


def test_a_sum_that_can_overflow_is_refused() -> None:
    assert check_modulus(None, 17) == 17
    assert check_modulus(20, 17) == 20
    with pytest.raises(SettingError, match=r"modulus_bits: 16, although a sum .* can need 17; accepted: 17"):
        check_modulus(16, 17)
    with pytest.raises(SettingError, match="sums of 63 bits"):
        check_modulus(None, 63)


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


def test_items_that_are_alone_come_back_and_others_are_right_on_average() -> None:
    totals = np.random.default_rng(1).standard_normal((40, 3))
    alone = CountSketch.of(40, 40, 1, "test")
    of_buckets = np.zeros((40, 3))
    np.add.at(of_buckets, alone.buckets, totals * alone.signs[:, None])
    np.testing.assert_array_equal(alone.estimates(of_buckets), totals)
    estimates = []
    for seed in range(400):
        sketch = CountSketch.of(40, 20, seed, "test")
        assert sketch.most_items == 2
        of_buckets = np.zeros((20, 3))
        np.add.at(of_buckets, sketch.buckets, totals * sketch.signs[:, None])
        estimates.append(sketch.estimates(of_buckets))
    # What another item adds has a deviation of about 1: means of 400 are off by 6 deviations once in 10**8.
    assert np.abs(np.mean(estimates, axis=0) - totals).max() < 6 * np.abs(totals).max() / 20
