"""Kernels of packed numbers, compiled and interpreted, against their digits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Pieces
from dprec.kernels.codec import read_fields, write_fields
from tests.interpreted import twin


@given(st.integers(1, 62), st.lists(st.integers(0, 2**62 - 1), max_size=9))
def test_numbers_are_packed_as_their_digits(bits: int, numbers: list[int]) -> None:
    words = np.array([number & ((1 << bits) - 1) for number in numbers], dtype=np.int64)
    digits = "".join(format(word, f"0{bits}b") for word in words.tolist())
    size = -(-len(digits) // 8)
    expected = int(digits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")
    whole, bounds = Pieces.of([expected]), np.array([0, size])
    indptr = np.array([0, words.size])
    for function in (write_fields, twin(write_fields)):
        data = np.zeros(size, dtype=np.uint8)
        function(indptr, words, bits, bounds, data)
        assert data.tobytes() == expected
    for function in (read_fields, twin(read_fields)):
        read, valid = np.zeros(words.size, dtype=np.int64), np.zeros(1, dtype=np.bool_)
        function(whole.buffer, bounds, bits, (1 << bits) - 1, indptr, read, valid)
        np.testing.assert_array_equal(read, words)
        assert valid[0]
