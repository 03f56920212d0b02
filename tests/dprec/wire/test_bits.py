"""Rows of numbers in fields of one width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.wire import BitStream, FixedFields
from dprec.wire.bits import MAX_FIELD_BITS, put

FIELDS = st.lists(
    st.integers(0, MAX_FIELD_BITS).flatmap(
        lambda width: st.tuples(st.just(width), st.integers(0, 2**width - 1))
    ),
    max_size=40,
)


def written(fields: list[tuple[int, int]]) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    widths = np.array([width for width, _ in fields], dtype=np.int64)
    values = np.array([value for _, value in fields], dtype=np.int64)
    positions = np.cumsum(widths) - widths
    bits = np.zeros(-(-int(widths.sum()) // 8) * 8, dtype=np.uint8)
    put(bits, positions, values, widths)
    return np.packbits(bits).tobytes(), positions, values, widths


@given(FIELDS)
def test_what_is_put_is_peeked(fields: list[tuple[int, int]]) -> None:
    packed, positions, values, widths = written(fields)
    assert BitStream([packed]).peek(positions, widths).tolist() == values.tolist()


@given(FIELDS)
def test_fields_are_the_binary_digits_of_their_values_end_to_end(fields: list[tuple[int, int]]) -> None:
    packed, *_ = written(fields)
    digits = "".join(f"{value:0{width}b}" for width, value in fields if width)
    padded = digits.ljust(len(packed) * 8, "0")
    assert packed == bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_a_stream_is_its_reports_end_to_end(reports: list[bytes]) -> None:
    stream = BitStream(reports)
    for report, start, end in zip(reports, stream.starts, stream.ends, strict=True):
        assert end - start == 8 * len(report)
        places = np.arange(start, end, 8)
        assert bytes(stream.peek(places, 8).astype(np.uint8).tolist()) == report
    whole = np.unpackbits(np.frombuffer(b"".join(reports), dtype=np.uint8))
    assert stream.ones.tolist() == np.flatnonzero(whole).tolist()


@given(st.binary(max_size=4), st.integers(0, 2**62), st.integers(0, MAX_FIELD_BITS))
def test_past_the_end_of_the_stream_is_zero(report: bytes, beyond: int, width: int) -> None:
    stream = BitStream([report])
    assert stream.peek(stream.ends + beyond, width).tolist() == [0]


ROWS = np.array([[0, 5, 1682], [1682, 1, 0]])


def test_rows_are_read_as_they_were_written() -> None:
    codec = FixedFields(3, 1682)
    pieces = codec.encode(ROWS)
    assert (codec.width, codec.size, [len(piece) for piece in pieces]) == (11, 5, [5, 5])
    valid, rows = codec.decode(pieces)
    assert valid.all()
    assert rows.tolist() == ROWS.tolist()


@pytest.mark.parametrize(("fields", "largest"), [(4, 0), (4, 1), (1, 255)])
def test_the_narrowest_rows(fields: int, largest: int) -> None:
    codec, rows = FixedFields(fields, largest), np.full((2, fields), largest)
    valid, read = codec.decode(codec.encode(rows))
    assert valid.all()
    assert read.tolist() == rows.tolist()
    assert codec.encode(rows[:0]) == []
    assert codec.decode([])[1].shape == (0, fields)


def test_malformed_rows_are_rejected_alone() -> None:
    codec = FixedFields(3, 1682)
    good = codec.encode(ROWS)[0]
    too_large = codec.encode(np.array([[0, 1683, 0]]))[0]
    padding = good[:-1] + bytes([good[-1] | 1])
    valid, rows = codec.decode([good[:-1], too_large, good, padding, b"", good + b"\0"])
    assert valid.tolist() == [False, False, True, False, False, False]
    assert rows[2].tolist() == ROWS[0].tolist()
    assert not np.delete(rows, 2, axis=0).any()
