import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import find

NUMBERS = st.lists(st.integers(-20, 20), max_size=15)


@given(st.sets(st.integers(-20, 20), max_size=15), NUMBERS)
def test_what_is_present_stands_at_its_place(known: set[int], wanted: list[int]) -> None:
    keys, values = np.array(sorted(known), dtype=np.int64), np.array(wanted, dtype=np.int64)
    places, present = find(keys, values)
    assert present.tolist() == [value in known for value in wanted]
    assert keys[places[present]].tolist() == values[present].tolist()
    assert np.all((places >= 0) & (places < max(len(known), 1)))


def test_keys_may_be_strings() -> None:
    places, present = find(np.array(["a", "c"]), np.array(["c", "b", "z"]))
    assert present.tolist() == [True, False, False]
    assert places[0] == 1
