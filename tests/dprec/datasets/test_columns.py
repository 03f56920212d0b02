"""Which ratings may decide on the scale, and what is said of those that may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable, RatingColumns
from dprec.errors import InputError
from dprec.ratings import RatingScale

STARS = np.repeat([1.0, 2, 3, 4, 5], 2000)


def scale(values: Any, **settings: Any) -> RatingScale:
    return RatingColumns(**settings).scale(np.asarray(values, dtype=float), "mine.csv")


@pytest.mark.parametrize(
    ("odd", "found"),
    [
        ([99], "1 of 10,001 ratings (99) widen the scale from 1 to 5 to 1 to 99"),
        ([99] * 9, "9 of 10,009 ratings (99)"),
        ([99] * 5000, "5,000 of 15,000 ratings (99)"),
        ([-1], "1 of 10,001 ratings (-1) widen the scale from 1 to 5 to -1 to 5"),
        ([-1] * 5000, "5,000 of 15,000 ratings (-1)"),
        ([77, 99, 10000], "3 of 10,003 ratings (77, 99, 10000) widen"),
        ([-50, 50], "2 of 10,002 ratings (-50, 50) widen the scale from 1 to 5 to -50 to 50"),
        (np.arange(10, 19), "9 of 10,009 ratings (10, 11, 12, 13, 14 ...)"),
    ],
)
def test_few_ratings_do_not_widen_the_scale(odd: Any, found: str) -> None:
    with pytest.raises(InputError) as caught:
        scale([*STARS, *odd])
    assert caught.value.where == "missing"
    assert caught.value.found.startswith(f"mine.csv: {found}")


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ([*STARS, 99], {"high": 99}),
        ([*STARS, -1, -1], {"low": -1}),
        ([*STARS, *[6] * 3], {}),
        ([*STARS, *[20, 21] * 6], {}),  # 12 of 10,012
        ([-1, 1, 1, -1], {}),
        ([-2, -1, 1, 2], {}),
        ([1, 2, 9], {}),
        ([5] * 9999 + [1], {}),
    ],
)
def test_what_may_be_a_scale_is_one(values: Any, settings: Any) -> None:
    found = scale(values, **settings)
    assert (found.low, found.high) == (min(values), max(values))


@pytest.mark.parametrize(
    ("odd", "fixes"),
    [
        ("99", [{"missing": [99]}, {"missing": 99}, {"high": 99}]),
        ("-1", [{"missing": (-1,)}, {"low": -1}]),
    ],
)
def test_the_fix_that_is_named_works(odd: str, fixes: list[Any], tmp_path: Any) -> None:
    path = tmp_path / "mine.csv"
    lines = [f"{user},{item},{1 + (user + item) % 5}" for user in range(10) for item in range(10)]
    path.write_text("\n".join([*lines[:50], f"99,99,{odd}", *lines[50:], "100,100,3"]) + "\n")
    with pytest.raises(
        InputError, match=rf"accepted: --set 'dataset.missing=\[{odd}\]' if that means not rated, or"
    ) as caught:
        DelimitedTable(path=str(path)).load()
    for fix in fixes:
        assert DelimitedTable(path=str(path), **fix).load().count == 101 + ("missing" not in fix)
    end = "high" if odd == "99" else "low"
    assert f"or --set dataset.{end}={odd} if it is a rating" in caught.value.accepted
    # A rating behind one that is missing is still reported on its own line.
    path.write_text(path.read_text().replace("100,100,3", "100,100,7"))
    with pytest.raises(InputError, match=r"mine.csv, line 102: rating 7; accepted: one of 1, 2, 3, 4, 5"):
        DelimitedTable(path=str(path), missing=[float(odd)], low=1, high=5).load()


def test_a_file_without_any_rating(tmp_path: Any) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("1,1,-1\n2,2,-1\n")
    with pytest.raises(InputError, match=r"mine.csv: no rating but -1; accepted: others"):
        DelimitedTable(path=str(path), missing=[-1]).load()


SLIDER = np.round(np.linspace(-9.95, 9.9, 398), 2)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({}, "the ends of the scale, such as low=-10, high=10; ratings between"),
        ({"step": 1}, "the ends of the scale, such as low=-10, high=10"),
        ({"continuous": False}, "the ends of the scale, such as continuous=True, low=-10, high=10"),
        ({"low": -10}, "the ends of the scale, such as low=-10, high=10"),
    ],
)
def test_the_hint_for_a_slider_works(settings: Any, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        scale(SLIDER, **settings)
    assert caught.value.accepted.startswith(hint)
    found = scale(
        SLIDER,
        **{**settings, "low": -10, "high": 10, "continuous": None if settings != {"step": 1} else True},
    )
    assert (found.low, found.high, found.continuous) == (-10, 10, True)
    assert found.levels == (21 if "step" in settings else 41)


def test_given_ends_with_even_levels_are_no_slider() -> None:
    assert not scale([2, 4.5], low=1, high=5).continuous
    assert scale([2, 4.5], low=1, high=5).levels == 9
