import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.kernels.vectors import pack, unpack
from tests.interpreted import twin


@given(st.integers(1, 62), st.lists(st.integers(0, 2**62 - 1), max_size=9))
def test_numbers_are_packed_as_their_digits(bits: int, numbers: list[int]) -> None:
    words = np.array([number & ((1 << bits) - 1) for number in numbers], dtype=np.uint64)
    digits = "".join(format(word, f"0{bits}b") for word in words.tolist())
    size = -(-len(digits) // 8)
    expected = int(digits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")
    for function in (pack, twin(pack)):
        data = np.zeros(size, dtype=np.uint8)
        function(words, bits, data)
        assert data.tobytes() == expected
    for function in (unpack, twin(unpack)):
        read = np.zeros(words.size, dtype=np.uint64)
        function(np.frombuffer(expected, dtype=np.uint8), bits, read)
        np.testing.assert_array_equal(read, words)
