"""Rows of numbers in fields of one width."""

import numpy as np
import pytest

from dprec.wire import FixedFields

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
