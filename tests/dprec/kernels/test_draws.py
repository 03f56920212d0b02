"""Kernels of draws, compiled and interpreted, against numbers from elsewhere."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.arrays import offsets
from dprec.kernels import draws as compiled
from dprec.kernels.discrete_laplace import draw, philox
from tests.interpreted import interpreted, twin

BOTH = [compiled, interpreted("dprec.kernels.draws")]
WORD = st.integers(0, 2**64 - 1)
COUNTS = st.lists(st.integers(0, 4), max_size=6)


def words(data: st.DataObject, count: int) -> NDArray[np.uint64]:
    return np.array(data.draw(st.lists(WORD, min_size=count, max_size=count)), dtype=np.uint64)


def bits(module: ModuleType, key: list[int], counter: list[int]) -> list[int]:
    return [int(word) for word in module.threefry(*(np.uint64(word) for word in key + counter))]


# Known answers of Random123, the authors' own implementation: key, counter, output.
KNOWN = [
    ([0, 0], [0, 0], [0xC2B6E3A8C2C69865, 0x6F81ED42F350084D]),
    ([2**64 - 1] * 2, [2**64 - 1] * 2, [0xE02CB7C4D95D277A, 0xD06633D0893B8B68]),
    (
        [0xA4093822299F31D0, 0x082EFA98EC4E6C89],
        [0x243F6A8885A308D3, 0x13198A2E03707344],
        [0x263C7D30BB0F0AF1, 0x56BE8361D3311526],
    ),
]


@pytest.mark.parametrize("module", BOTH)
@pytest.mark.parametrize(("key", "counter", "output"), KNOWN)
def test_known_answers(module: ModuleType, key: list[int], counter: list[int], output: list[int]) -> None:
    assert bits(module, key, counter) == output


@settings(max_examples=30)
@given(COUNTS, WORD, st.data())
def test_words_and_sums_are_those_of_each_cell(counts: list[int], high: int, data: st.DataObject) -> None:
    indptr, size = offsets(np.array(counts, dtype=np.int64)), sum(counts)
    keys = words(data, 2 * len(counts)).reshape(2, -1)
    items, values = np.arange(size, dtype=np.int32) * 3, words(data, size)
    for module in BOTH:
        cells, sums = np.empty(size, dtype=np.uint64), np.empty_like(keys)
        module.of_cells(keys, indptr, items, np.uint64(high), cells)
        module.digests(keys, indptr, items, values, sums)
        users = np.repeat(np.arange(len(counts)), counts)
        own = [keys[:, user].tolist() for user in users.tolist()]
        assert cells.tolist() == [bits(compiled, key, [3 * cell, high])[0] for cell, key in enumerate(own)]
        parts = np.array(
            [bits(compiled, key, [3 * cell, int(values[cell])]) for cell, key in enumerate(own)],
            dtype=np.uint64,
        ).reshape(-1, 2)
        expected = [parts[users == user].sum(axis=0, dtype=np.uint64) for user in range(len(counts))]
        assert sums.T.tolist() == [total.tolist() for total in expected]
        pairs = np.empty((2, size), dtype=np.uint64)
        module.of_counters(np.ascontiguousarray(keys[:, users]), items.astype(np.uint64), values, pairs)
        assert pairs.T.tolist() == parts.tolist()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any), st.integers(0, 8), st.data())
def test_a_symbol_is_the_first_whose_draws_are_not_past(
    weights: list[int], guided: int, data: st.DataObject
) -> None:
    """Among draws of 8 bits, with two rows of which one is turned round, and a guide of some of the bits."""
    shares = np.array(weights) * 256 // sum(weights)
    shares[np.argmax(shares)] += 256 - shares.sum()
    cumulative = np.cumsum([shares, shares[::-1]], axis=1).astype(np.uint64)
    shift = 8 - guided
    starts = np.arange(1 << guided, dtype=np.uint64) << np.uint64(shift)
    guide = np.array([np.searchsorted(row, starts, side="right") for row in cumulative]).astype(np.uint16)
    draws, rows = np.tile(np.arange(256), 2), np.repeat([0, 1], 256).astype(np.uint8)
    random_words = draws.astype(np.uint64) << np.uint64(56) | words(data, 512) >> np.uint64(8)
    for module in BOTH:
        symbols = np.empty(512, dtype=np.uint16)
        module.invert(rows, random_words, np.uint64(56), cumulative, guide, np.uint64(shift), symbols)
        expected = np.concatenate([np.repeat(np.arange(row.size), row) for row in (shares, shares[::-1])])
        assert symbols.tolist() == expected.tolist()


def sampled(
    module: ModuleType, rows: list[list[int]], orders: list[int], distance: int, starts: list[int], slots: int
) -> list[list[int]]:
    """Return the cells that are found of each row, numbered within it."""
    indptr = offsets(np.array([len(row) for row in rows], dtype=np.int64))
    sizes = np.array([size for row in rows for size in row], dtype=np.int64)
    chosen = np.full((len(rows), slots), -1, dtype=np.int64)
    line, distances = np.zeros(max(map(len, rows)), dtype=np.int64), np.full(len(rows), distance)
    keys = np.array(orders, dtype=np.uint64)
    module.sample(indptr, sizes, keys, distances, np.array(starts), line, chosen)
    found = zip(chosen.tolist(), indptr[:-1].tolist(), strict=True)
    return [[cell - first for cell in row if cell >= 0] for row, first in found]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), WORD, st.integers(1, 40), st.floats(0, 0.999))
def test_cells_at_equal_distances_of_a_line_are_found(
    sizes: list[int], order: int, distance: int, start: float
) -> None:
    # Each cell by itself: so is its place in the line.
    rows, nothing = [[1] * len(sizes), []], [0, 0]
    (line, _) = sampled(compiled, rows, [order, 0], 1, nothing, len(sizes))
    assert sorted(line) == list(range(len(sizes)))
    first = int(start * distance)
    points = range(first, sum(sizes), distance)
    ends = np.cumsum([sizes[cell] for cell in line])
    places = np.searchsorted(ends, points, side="right").tolist()
    expected = [line[place] for place in dict.fromkeys(places)]
    for module in BOTH:
        slots = max(len(points), 1)
        found = sampled(module, [sizes, [], sizes], [order, 1, order], distance, [first, 0, first], slots)
        assert found == [expected, [], expected]


def test_every_order_of_a_line_is_as_likely() -> None:
    # Each of 24 orders is 6 deviations off its mean of 1000 with a chance of 2e-9, so 5e-8 for all.
    users = 24_000
    keys = np.random.default_rng(2).integers(0, 2**64, users, dtype=np.uint64).tolist()
    orders = sampled(compiled, [[1] * 4] * users, keys, 1, [0] * users, 4)
    kinds, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(kinds) == 24
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(1000)


@given(WORD, WORD, st.integers(0, 2**63 - 1))
def test_words_are_those_of_numpy(key: int, second_key: int, index: int) -> None:
    block, lane = divmod(index, 4)
    stream = np.random.Philox(key=np.array([key, second_key], dtype=np.uint64), counter=block)
    assert (
        philox(np.uint64(key), np.uint64(second_key), np.uint64(index)) == stream.random_raw(lane + 1)[lane]
    )


def test_draws_are_the_same_where_nothing_is_compiled() -> None:
    keys = np.random.default_rng(0).integers(0, 2**64, (96, 2), dtype=np.uint64)
    indices = np.array([0, 1, 2, 3, 5, 2**40, 2**62])
    for bits in (1, 32):
        drawn = np.zeros((2, indices.size), dtype=np.int64)
        assert draw(drawn[0], indices, keys, bits)
        assert twin(draw)(drawn[1], indices, keys, bits)
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert np.unique(drawn[0]).size > 1
        assert not draw(drawn[0], indices, keys[:1], bits)


@pytest.mark.parametrize("module", BOTH)
def test_numbers_are_those_of_a_words_column_and_words_at_a_limit_are_counted(module: ModuleType) -> None:
    limits = np.array([0, 5, 2**62 - 1, 2**61], dtype=np.uint64)
    own, other = np.arange(4, dtype=np.int32), np.arange(10, 14, dtype=np.int32)
    columns = np.array([0, 1, 1, 2, 3, 3], dtype=np.uint64)
    rests = np.array([0, 4, 5, 2**62 - 1, 2**61 - 1, 2**61 + 1], dtype=np.uint64)
    numbers = np.empty(6, dtype=np.int32)
    words_of_columns = (columns << np.uint64(62)) | rests
    assert module.look_up_numbers(numbers, words_of_columns, np.uint64(2), limits, own, other) == 3
    assert numbers.tolist() == [10, 1, 11, 12, 3, 13]
