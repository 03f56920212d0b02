"""Item factors on the wire: read back bit for bit, never longer than whole, refused when malformed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dprec.wire import BroadcastOptions, Factors, decode_broadcast, encode_broadcast

OPTIONS = [BroadcastOptions(dtype="float16", delta=True), BroadcastOptions(dtype="float32", delta=True)]
WIDE = st.floats(-1e39, 1e39, allow_nan=False)


def pair() -> st.SearchStrategy[tuple[BroadcastOptions, Factors, Factors]]:
    """Return rounded factors and what a device held before, of which they keep some numbers."""

    def build(drawn: tuple[BroadcastOptions, Any, Any, Any]) -> tuple[BroadcastOptions, Factors, Factors]:
        options, held, fresh, kept = drawn
        before = options.rounded(held)
        return options, np.where(kept, before, options.rounded(fresh)), before

    shapes = arrays.array_shapes(min_dims=2, max_dims=2, max_side=12)
    return shapes.flatmap(
        lambda shape: st.tuples(
            st.sampled_from(OPTIONS),
            arrays.arrays(np.float64, shape, elements=WIDE),
            arrays.arrays(np.float64, shape, elements=WIDE),
            arrays.arrays(np.bool_, shape),
        )
    ).map(build)


@given(pair())
def test_factors_come_back_bit_for_bit(case: tuple[BroadcastOptions, Factors, Factors]) -> None:
    options, factors, held = case
    whole, changes = encode_broadcast(factors), encode_broadcast(factors, held)
    assert len(whole) == 1 + factors.nbytes
    assert len(changes) <= len(whole)
    for data, known in ((whole, None), (whole, held), (changes, held)):
        read = decode_broadcast(data, options, factors.shape, known)
        assert read.dtype == factors.dtype
        assert read.tobytes() == factors.tobytes()


@given(pair())
def test_nothing_changed_takes_a_byte(case: tuple[BroadcastOptions, Factors, Factors]) -> None:
    options, factors, _ = case
    data = encode_broadcast(factors, factors)
    assert len(data) == 1
    assert decode_broadcast(data, options, factors.shape, factors).tobytes() == factors.tobytes()


@given(st.data(), pair())
def test_malformed_bytes_are_refused_or_read_as_finite_factors(
    data: st.DataObject, case: tuple[BroadcastOptions, Factors, Factors]
) -> None:
    options, factors, held = case
    good = encode_broadcast(factors, held)
    position = data.draw(st.integers(0, len(good) - 1))
    flipped = bytearray(good)
    flipped[position] ^= data.draw(st.integers(1, 255))
    for hostile in (bytes(flipped), good[:position], good + b"\0", data.draw(st.binary(max_size=64))):
        known = held.copy()
        try:
            read = decode_broadcast(hostile, options, factors.shape, known)
        except ValueError:
            continue
        finally:
            assert known.tobytes() == held.tobytes()
        assert read.shape == factors.shape
        assert np.isfinite(read).all()


@pytest.mark.parametrize("options", OPTIONS, ids=["float16", "float32"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(options: BroadcastOptions, value: float) -> None:
    factors = options.rounded(np.ones((3, 2)))
    hostile = factors.copy()
    hostile[1, 1] = value
    for data in (encode_broadcast(hostile), encode_broadcast(hostile, factors)):
        with pytest.raises(ValueError, match="not finite"):
            decode_broadcast(data, options, (3, 2), factors)


def test_changes_of_what_is_not_held_are_refused() -> None:
    factors = OPTIONS[1].rounded(np.ones((30, 2)))
    changes = encode_broadcast(factors, factors)
    with pytest.raises(ValueError, match="a broadcast of 1 bytes"):
        decode_broadcast(changes, OPTIONS[1], (30, 2), None)


def test_devices_see_finite_numbers_and_no_negative_zeros() -> None:
    narrow = OPTIONS[0].rounded(np.array([[1e9, -1e9], [-1e-12, -0.0]]))
    assert narrow.tolist() == [[65504.0, -65504.0], [0.0, 0.0]]
    assert not np.signbit(narrow[1]).any()
    assert OPTIONS[1].rounded(np.array([[1e300]])).tolist() == [[float(np.finfo(np.float32).max)]]
