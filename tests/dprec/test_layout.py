"""What is told of ratings that are otherwise laid out, and of parts that are no division."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from dprec.layout import division_defect, layout_defect
from dprec.ratings import ColdRatings, Ratings
from tests import make

RATINGS = make.random_ratings(8, 12)
COLUMNS = {name: getattr(RATINGS, name) for name in ("indptr", "items", "levels", "user_ids", "item_ids")}


@pytest.mark.parametrize(
    ("name", "change", "defect"),
    [
        ("items", list, "items that are no array of one dimension"),
        ("items", lambda items: items[:, None], "items that are no array of one dimension"),
        ("items", lambda items: items / 1, "items of type float64"),
        ("items", lambda items: items - 12, "item -12 of 12"),
        ("items", lambda items: items[:-1], "arrays of other lengths"),
        ("indptr", lambda indptr: indptr[:-1], "8 user_ids, and indptr of 8"),
        ("indptr", lambda indptr: indptr + 1, "indptr from 1"),
        ("indptr", lambda indptr: np.where(np.arange(9) == 3, 99, indptr), "indptr that falls"),
        ("levels", lambda levels: levels * 0, "level 0 of 5"),
        ("levels", lambda levels: levels + 5, "level 10 of 5"),
        ("item_ids", lambda ids: ids // 2, "item_ids of which some are alike"),
        ("user_ids", lambda ids: ids[:-1], "7 user_ids, and indptr of 9"),
    ],
)
def test_another_layout_is_told(name: str, change: Callable[[Any], Any], defect: str) -> None:
    changed: dict[str, Any] = {name: change(COLUMNS[name])}
    assert layout_defect(replace(RATINGS, **changed)) == defect


def test_ratings_as_they_are_made_have_no_defect() -> None:
    assert layout_defect(RATINGS) is None
    # Users without ratings, at either end and between others.
    assert layout_defect(make.ratings((1, 5, 3), (3, 2, 1), (3, 4, 1), users=6, items=7)) is None
    assert layout_defect(replace(RATINGS, times=np.zeros(3))) == "arrays of other lengths"
    assert layout_defect(make.ratings()) == "no rating"
    assert layout_defect(None) == "a value of type NoneType"


def test_cold_users_may_have_nothing_but_what_they_are_tested_on() -> None:
    warm, cold = (RATINGS.of_users(users, RATINGS.user_ids[users]) for users in np.split(np.arange(8), [5]))
    parts = {column.name: getattr(cold, column.name) for column in fields(Ratings)}
    nothing = cold.select(np.zeros(cold.count, dtype=np.bool_))
    assert division_defect((warm, ColdRatings(**parts, given=nothing))) is None
    shared = f"{cold.count} of {cold.count} test ratings in the given part too, as of user "
    assert str(division_defect((warm, ColdRatings(**parts, given=cold)))).startswith(shared)
    assert division_defect((warm, ColdRatings(**parts, given=warm))) == (
        "other user_ids in the test part than in the given part"
    )
