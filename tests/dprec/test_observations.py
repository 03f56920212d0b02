from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Floats
from dprec.errors import InputError
from dprec.observations import Evidence, NoisyCounts, Observations, ResidualReports, SymbolReports
from dprec.ratings import RatingScale
from tests import make


def seen(users: list[int], items: list[int]) -> Observations:
    return make.observations(users, items, np.arange(len(users)) * 1.0, (4, 3))


def test_cells_are_found_by_user_and_by_item() -> None:
    cells = seen([0, 0, 3], [1, 2, 1])
    assert cells.indptr.tolist() == [0, 2, 2, 2, 3]
    assert cells.counts.tolist() == [2, 0, 0, 1]
    assert cells.users.tolist() == [0, 0, 3]
    assert (cells.by_user.indptr.tolist(), cells.by_user.data.tolist()) == ([0, 2, 2, 2, 3], [0, 1, 2])
    assert (cells.by_item.indptr.tolist(), cells.by_item.data.tolist()) == ([0, 0, 2, 3], [0, 2, 1])
    assert cells.by_item.indices.tolist() == [0, 3, 0]
    # A place takes 4 bytes where that is enough.
    assert {each.dtype for each in (cells.users, cells.by_item.data, cells.by_item.indices)} == {
        np.dtype(np.int32)
    }


def test_values_are_read_in_parts_and_kept_once_they_are_asked_for() -> None:
    times: list[int] = []

    def read() -> list[Floats]:
        times.append(1)
        return [np.array([2.0]), np.array([5.0, 3.0])]

    cells = replace(seen([0, 0, 3], [1, 2, 1]), read=read)
    assert cells.counts.sum() == cells.items.size
    assert not times
    assert (cells.mean, len(list(cells.parts())), len(times)) == (10 / 3, 2, 2)
    assert (cells.values.tolist(), cells.mean) == ([2.0, 5.0, 3.0], 10 / 3)
    assert (len(list(cells.parts())), len(times)) == (1, 3)
    by_item = cells.unlinked(with_sets=True)
    assert (by_item.items.tolist(), by_item.values.tolist()) == ([1, 1, 2], [2.0, 3.0, 5.0])


def test_cells_in_another_order_are_refused() -> None:
    with pytest.raises(ValueError, match="not by user"):
        seen([1, 0], [0, 0])


CHANNELS = [np.full((5, 2), 0.5), np.linspace([0.1, 0.9], [0.9, 0.1], 5), np.full((5, 3), 1 / 3)]


@st.composite
def collections(draw: st.DrawFn) -> list[Observations]:
    """Some collections of the same users, each with some of the cells and of the channels."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        cells = np.array(sorted(draw(st.sets(st.integers(0, 11)))), dtype=np.int64)
        own = draw(st.lists(st.sampled_from(range(3)), min_size=1, max_size=3))
        channel_of = np.array([draw(st.integers(0, len(own) - 1)) for _ in cells], dtype=np.int64)
        symbols = np.array([draw(st.integers(0, 1)) for _ in cells], dtype=np.int64)
        reports = SymbolReports(tuple(CHANNELS[each] for each in own), symbols, channel_of)
        values = np.array([draw(st.integers(1, 5)) for _ in cells], dtype=np.float64)
        parts.append(make.observations(cells // 3, cells % 3, values, (4, 3), evidence=reports))
    return parts


def told(cells: Observations) -> list[tuple[int, int, float, int, bytes]]:
    """Everything that each cell says."""
    reports = cells.symbols
    assert reports is not None
    channels = [reports.channels[each].tobytes() for each in reports.channel_of.tolist()]
    columns = (cells.users, cells.items, cells.values, reports.symbols)
    return list(zip(*(column.tolist() for column in columns), channels, strict=True))


@given(parts=collections())
def test_joined_collections_say_what_each_of_them_says(parts: list[Observations]) -> None:
    joined = Observations.joined(parts)
    each = [cell for part in parts for cell in told(part)]
    # Sorting is stable: of one cell, the reports come in the order of the collections.
    assert told(joined) == sorted(each, key=lambda cell: cell[:2])
    rated = joined.item_sets
    union = sorted({cell[:2] for cell in each})
    assert list(zip(rated.users.tolist(), rated.items.tolist(), strict=True)) == union
    assert joined.symbols is not None
    assert len(joined.symbols.channels) == len({channel.tobytes() for channel in joined.symbols.channels})
    again = Observations.joined([joined])
    assert (told(again), again.item_sets.items.tolist()) == (told(joined), rated.items.tolist())


@given(parts=collections())
def test_variances_and_likelihoods_are_joined_with_the_cells(parts: list[Observations]) -> None:
    known = [
        replace(part, noise_variance=1.0 + place, likelihood=np.repeat(part.values[:, None], 5, axis=1))
        for place, part in enumerate(parts)
    ]
    joined = Observations.joined(known)
    assert joined.likelihood is not None
    np.testing.assert_array_equal(joined.likelihood[:, 2], joined.values)
    sizes = [part.items.size for part in parts]
    expected = np.average(1.0 + np.arange(len(parts)), weights=sizes) if sum(sizes) else None
    assert joined.noise_variance == (None if expected is None else pytest.approx(expected))
    unknown = seen_with(SYMBOL, likelihood=np.ones((1, 5)))
    assert Observations.joined([*known, unknown]).noise_variance is None


def seen_with(evidence: Evidence | None, **named: Any) -> Observations:
    """One rated cell, with some evidence."""
    return replace(seen([0], [1]), evidence=evidence, **named)


ONE = np.zeros(1, dtype=np.int64)
SYMBOL = SymbolReports((CHANNELS[1],), ONE, ONE)


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (
            replace(seen_with(SYMBOL), scale=RatingScale.evenly(1, 10, 1)),
            "4 users on 3 items, one of 1, .* 10;",
        ),
        (replace(seen_with(SYMBOL), shape=(4, 7)), "4 users on 7 items"),
        (seen_with(None), "that some collections lack"),
        (seen_with(SYMBOL, likelihood=np.ones((1, 5))), "that some collections lack"),
        (seen_with(ResidualReports(ONE, ONE > 0, ONE * 0.1)), "ResidualReports"),
        (seen_with(replace(SYMBOL, counts=NoisyCounts(ONE, ONE, ONE, ONE, ONE, ONE * 1.0, 4))), "counts"),
        (seen_with(SYMBOL).unlinked(with_sets=True), "1 users"),
    ],
)
def test_what_cannot_be_joined_is_refused(second: Observations, found: str) -> None:
    with pytest.raises(InputError, match=found) as refused:
        Observations.joined([seen_with(SYMBOL), second])
    assert refused.value.where == "reports"
