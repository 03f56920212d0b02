from dataclasses import replace

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.observations import Observations
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def seen(users: list[int], items: list[int]) -> Observations:
    return Observations.of(
        np.array(users, dtype=np.int32),
        np.array(items, dtype=np.int32),
        np.arange(len(users)) * 1.0,
        (4, 3),
        STARS,
    )


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


def test_values_are_read_once_when_they_are_asked_for() -> None:
    times: list[int] = []

    def read() -> Floats:
        times.append(1)
        return np.array([2.0, 5.0, 3.0])

    cells = replace(seen([0, 0, 3], [1, 2, 1]), read=read)
    assert cells.counts.sum() == cells.items.size
    assert not times
    assert (cells.mean, cells.values.tolist()) == (10 / 3, [2.0, 5.0, 3.0])
    assert len(times) == 1
    by_item = cells.unlinked(with_sets=True)
    assert (by_item.items.tolist(), by_item.values.tolist()) == ([1, 1, 2], [2.0, 3.0, 5.0])


def test_cells_in_another_order_are_refused() -> None:
    with pytest.raises(ValueError, match="not by user"):
        seen([1, 0], [0, 0])


def test_nobody_is_seen() -> None:
    nobody = seen([], [])
    assert (nobody.counts.tolist(), nobody.mean) == ([0] * 4, 3.0)
