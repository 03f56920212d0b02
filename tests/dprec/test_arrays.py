"""Every function on ragged rows against the same rows as Python lists."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import (
    GrowingArray,
    blocks,
    cut,
    find,
    offsets,
    places_of,
    row_maxima,
    row_sums,
    rows_of,
    segments,
    sizes_of,
)

COUNTS = st.lists(st.integers(0, 5), max_size=12)
ROWS = st.lists(st.lists(st.integers(0, 2**40), max_size=5), max_size=12)


def whole(numbers: list[int], dtype: type[np.integer] = np.int64) -> np.ndarray:
    return np.array(numbers, dtype=dtype)


@given(COUNTS, st.sampled_from([np.int64, np.int32, np.uint8]))
def test_offsets_are_where_rows_begin_and_the_last_one_ends(
    counts: list[int], dtype: type[np.integer]
) -> None:
    found = offsets(whole(counts, dtype))
    assert found.dtype == np.int64
    assert found.tolist() == [sum(counts[:row]) for row in range(len(counts) + 1)]


def test_offsets_of_small_types_do_not_overflow() -> None:
    assert offsets(np.full(4, 200, dtype=np.uint8)).tolist() == [0, 200, 400, 600, 800]


@given(COUNTS)
def test_every_cell_has_its_row_and_its_place_in_it(counts: list[int]) -> None:
    cells = [(row, place) for row, count in enumerate(counts) for place in range(count)]
    found = zip(rows_of(whole(counts)).tolist(), places_of(whole(counts)).tolist(), strict=True)
    assert list(found) == cells


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_rows_may_be_of_a_smaller_type(dtype: type[np.integer]) -> None:
    rows = rows_of(np.array([2, 0, 1]), dtype)
    assert (rows.dtype, rows.tolist()) == (dtype, [0, 0, 2])


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5)), max_size=12))
def test_segments_count_up_from_their_starts(pairs: list[tuple[int, int]]) -> None:
    starts, counts = whole([start for start, _ in pairs], np.int32), whole([count for _, count in pairs])
    found = segments(starts, counts)
    assert found.dtype == np.int64
    assert found.tolist() == [start + place for start, count in pairs for place in range(count)]


@given(ROWS)
def test_sums_and_maxima_are_those_of_each_row(rows: list[list[int]]) -> None:
    values = whole([value for row in rows for value in row])
    indptr = offsets(whole([len(row) for row in rows]))
    assert row_sums(values, indptr).tolist() == [sum(row) for row in rows]
    assert row_maxima(values, indptr).tolist() == [max(row, default=0) for row in rows]


def test_a_row_of_negative_numbers_has_a_negative_maximum() -> None:
    assert row_maxima(np.array([-3, -1, -2]), np.array([0, 2, 2, 3])).tolist() == [-1, 0, -2]


@given(st.lists(st.binary(max_size=6), max_size=12), st.binary(max_size=3))
def test_pieces_are_cut_where_they_were_joined(pieces: list[bytes], rest: bytes) -> None:
    assert sizes_of(pieces).tolist() == [len(piece) for piece in pieces]
    assert cut(b"".join(pieces) + rest, sizes_of(pieces)) == pieces


@given(COUNTS, st.integers(1, 12))
def test_blocks_are_consecutive_and_of_about_the_size_that_is_asked_for(counts: list[int], most: int) -> None:
    found = list(blocks(whole(counts), most))
    assert [row for block in found for row in range(block.start, block.stop)] == list(range(len(counts)))
    largest = max(counts, default=0)
    assert all(sum(counts[block]) < most + largest for block in found)
    assert len(found) <= 1 + sum(counts) // most


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
