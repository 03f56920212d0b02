"""The modulus: no sum is taken for another one, by a bound."""

import numpy as np
import pytest
from scipy.stats import skellam

from dprec.errors import SettingError
from dprec.secure_aggregation import centred, check_modulus, modulus_bits, reduced
from dprec.secure_aggregation.encoding import OVERFLOW, skellam_tail


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
