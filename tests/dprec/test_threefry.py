import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec import threefry as module
from dprec.randomness import threefry

WORD = st.integers(0, 2**64 - 1)


def column(*words: int) -> NDArray[np.uint64]:
    return np.array(words, dtype=np.uint64)


# Known answers of Random123, the authors' own implementation: key, counter, output.
KNOWN = [
    ((0, 0), (0, 0), (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)),
    ((2**64 - 1,) * 2, (2**64 - 1,) * 2, (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)),
    (
        (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x243F6A8885A308D3, 0x13198A2E03707344),
        (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    ),
]


@pytest.mark.parametrize(("key", "counter", "output"), KNOWN)
def test_known_answers(key: tuple[int, int], counter: tuple[int, int], output: tuple[int, int]) -> None:
    low, high = (column(word) for word in counter)
    assert threefry(column(*key).reshape(2, 1), low, high).ravel().tolist() == list(output)


@given(cut=st.integers(0, 40), key=st.tuples(WORD, WORD), counter=st.tuples(WORD, WORD))
def test_division_changes_nothing(cut: int, key: tuple[int, int], counter: tuple[int, int]) -> None:
    """Nor does the size of the blocks, nor whether words that are the same for all come as one number."""
    steps = np.arange(40, dtype=np.uint64)
    keys = column(*key).reshape(2, 1) + steps
    low, high = column(counter[0]) + steps, column(counter[1]) ^ steps
    whole = threefry(keys, low, high)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 7)
        parts = [threefry(keys[:, part], low[part], high[part]) for part in (slice(cut), slice(cut, None))]
    assert np.concatenate(parts, axis=1).tolist() == whole.tolist()
    alike = threefry(keys, low, counter[1])
    assert alike[:, 0].tolist() == whole[:, 0].tolist()


def test_the_input_is_left_alone() -> None:
    keys, counters = np.ones((2, 5), dtype=np.uint64), np.arange(5)
    threefry(keys, counters, counters)
    assert keys.tolist() == np.ones((2, 5)).tolist()
    assert counters.tolist() == [0, 1, 2, 3, 4]


def test_every_bit_is_fair() -> None:
    draws = threefry(np.full((2, 20_000), 3, dtype=np.uint64), np.arange(20_000), 0)
    ones = np.array([int(((draws >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    # 64 bits, each of 40,000 draws and off by more than 6 standard deviations with probability 2e-9: 1.3e-7.
    assert np.all(np.abs(ones - 20_000) <= 6 * np.sqrt(10_000))
