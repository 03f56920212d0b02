"""Vectors and presence in bytes: they come back, and damaged ones are refused."""

import numpy as np
import pytest

from dprec.secure_aggregation import MessageSizes, pack_vector, reduced, unpack_vector
from dprec.secure_aggregation.masking import pack_presence, unpack_presence


@pytest.mark.parametrize("bits", [1, 12, 13, 16, 20, 32, 45])
def test_vectors_come_back(bits: int) -> None:
    words = reduced(np.random.default_rng(bits).integers(-(2**61), 2**61, 37), bits)
    data = pack_vector(words, bits)
    assert len(data) == MessageSizes(4, 37, bits).vector
    np.testing.assert_array_equal(unpack_vector(data, 37, bits), words)


@pytest.mark.parametrize("data", [bytes(3), bytes(5), b"\x00\x00\x00\x01"])
def test_a_damaged_vector_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="masked vector"):
        unpack_vector(data, 2, 13)


def test_presence_comes_back_and_of_other_sizes_is_refused() -> None:
    present = np.array([True, False, True, True, False, True, True, True, False])
    np.testing.assert_array_equal(unpack_presence(pack_presence(present), 9), present)
    with pytest.raises(ValueError, match="presence"):
        unpack_presence(bytes(1), 9)
