import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import GrowingArray


@given(st.lists(st.lists(st.integers(0, 2**15), max_size=40), max_size=12))
def test_it_holds_its_parts_one_after_the_other(parts: list[list[int]]) -> None:
    growing = GrowingArray(np.uint16)
    for part in parts:
        growing.extend(np.array(part, dtype=np.uint16))
    taken = growing.take()
    assert taken.dtype == np.uint16
    assert taken.tolist() == [value for part in parts for value in part]
    growing.extend(np.ones(1, dtype=np.uint16))
    assert taken.size == sum(map(len, parts))
    assert growing.take().tolist() == [1]


def test_it_asks_for_little_more_memory_than_its_values_need() -> None:
    growing, part = GrowingArray(np.float64), np.ones(1 << 12)
    tracemalloc.start()
    for _ in range(256):
        growing.extend(part)
    values = growing.take()
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values.nbytes == 8 << 20
    assert size < 1.01 * values.nbytes
    # Where an array is enlarged, Python's tracing knows of the new place alone.
    assert peak < 1.2 * values.nbytes
