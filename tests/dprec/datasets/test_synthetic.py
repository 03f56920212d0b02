"""Made-up ratings: the same from a seed, whoever computes them."""

import hashlib
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.datasets import Synthetic, synthetic
from dprec.datasets.synthetic import Arrivals
from dprec.ratings import Ratings
from tests.interpreted import interpreted

AGAIN = Arrivals(rated_again=0.3)


def digest(ratings: Ratings) -> str:
    whole = hashlib.sha256()
    for column in (ratings.indptr, ratings.items, ratings.levels):
        whole.update(column.tobytes())
    return whole.hexdigest()[:16]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "39045bdf5e4920d0"),
        ({"seed": 1}, "06c29ab548505776"),
        ({"users": 40, "items": 30, "ratings": 1100, "rank": 2}, "70d646d1aa6548e9"),
        ({"users": 2000, "items": 900, "ratings": 50_000, "noise": 0}, "8783b007495a9d6b"),
        ({"arrivals": AGAIN}, "80efc86cd35d32b3"),
    ],
)
def test_ratings_do_not_change_from_release_to_release(settings: dict[str, Any], expected: str) -> None:
    assert digest(Synthetic(**settings).load()) == expected


def test_second_ratings_do_not_change_from_release_to_release() -> None:
    changes = Synthetic(arrivals=AGAIN).load_changes()
    assert changes is not None
    assert digest(changes) == "0fcb4191febcb47f"


def test_ratings_are_the_same_in_blocks_of_any_size_and_where_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = Synthetic(users=200, items=400, ratings=5000)
    whole = digest(dataset.load())
    monkeypatch.setattr(synthetic, "_CHUNK", 97)
    monkeypatch.setitem(sys.modules, "dprec.kernels.profiles", interpreted("dprec.kernels.profiles"))
    assert digest(dataset.load()) == whole


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5]) | st.floats(-9, 9), min_size=1, max_size=60))
def test_as_many_opinions_are_of_each_level_as_stars_say(opinions: list[float]) -> None:
    values, ordered = np.array(opinions), [*sorted(opinions), *[np.inf] * 5]
    cuts = synthetic._cuts(values)
    assert cuts.tolist() == [ordered[place] for place in np.cumsum(synthetic._per_level(values.size))[:-1]]
    levels = synthetic._levels(values, cuts)
    assert levels.tolist() == [1 + sum(opinion >= cut for cut in cuts) for opinion in opinions]
