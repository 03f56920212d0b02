"""The least and the best of rows, compiled and interpreted, against sorted rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec import ratings
from dprec.arrays import Uint64s, offsets
from dprec.kernels.rows import add_without_largest, choose_best, choose_least
from dprec.ratings import least_of_rows
from tests.interpreted import twin

# Few different numbers, so that many are equal, and the largest that there are.
NUMBERS = st.lists(st.integers(0, 4) | st.sampled_from([2**64 - 1, 2**63]), max_size=9)


@given(st.lists(NUMBERS, max_size=6), st.data(), st.integers(1, 9))
def test_the_first_of_the_least_are_chosen(rows: list[list[int]], data: st.DataObject, at_once: int) -> None:
    wanted = np.array([data.draw(st.integers(0, len(row))) for row in rows], dtype=np.int64)
    numbers = np.array([number for row in rows for number in row], dtype=np.uint64)
    indptr = offsets(np.array([len(row) for row in rows], dtype=np.int64))
    expected: list[bool] = []
    for row, count in zip(rows, wanted.tolist(), strict=True):
        least = sorted(range(len(row)), key=row.__getitem__)[:count]
        expected += [place in least for place in range(len(row))]
    for function in (choose_least, twin(choose_least)):
        chosen = np.zeros(numbers.size, dtype=np.bool_)
        function(chosen, indptr, numbers, wanted, np.empty(9, dtype=np.uint64))
        assert chosen.tolist() == expected
    asked: list[int] = []

    def read(cells: slice) -> Uint64s:
        asked.extend(range(numbers.size)[cells])
        return numbers[cells]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ratings, "_CELLS_AT_ONCE", at_once)
        assert least_of_rows(read, indptr, wanted).tolist() == expected
    assert asked == list(range(numbers.size))


@given(
    st.lists(st.lists(st.tuples(st.floats(-2, 2), st.integers(0, 4)), max_size=9), max_size=5),
    st.integers(0, 6),
)
def test_the_largest_positive_values_are_left_out(rows: list[list[tuple[float, int]]], most: int) -> None:
    values = np.array([value for row in rows for value, _ in row])
    counts = np.array([count for row in rows for _, count in row], dtype=np.int64)
    indptr = offsets(np.array([len(row) for row in rows], dtype=np.int64))
    for function in (add_without_largest, twin(add_without_largest)):
        sums = np.empty(len(rows))
        function(sums, indptr, values, counts, most)
        for row, found in zip(rows, sums, strict=True):
            each = sorted((value for value, count in row for _ in range(count)), reverse=True)
            kept = sum(each) - sum(max(0.0, value) for value in each[:most])
            assert found == pytest.approx(kept, abs=1e-9)


@given(st.integers(0, 9), st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32))
def test_the_best_of_each_row_come_first_as_if_it_were_sorted(
    length: int, columns: int, values: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(0, values, (5, columns)) / 7
    wanted = random.random(scores.shape) < np.linspace(0, 1, 5)[:, None]
    ties = random.permutation(columns).astype(np.uint64) << np.uint64(50)
    for function in (choose_best, twin(choose_best)):
        places, best = np.full((5, length), -1), np.full((5, length), -np.inf)
        function(places, best, scores, wanted, ties)
        for row in range(5):
            order = sorted(np.flatnonzero(wanted[row]), key=lambda at: (-scores[row, at], ties[at]))[:length]
            missing = [-1] * (length - len(order))
            assert places[row].tolist() == order + missing
            assert best[row].tolist() == scores[row, order].tolist() + [-np.inf] * len(missing)
