"""Dates beside times of any unit."""

import numpy as np
import pytest

from dprec.moments import in_unit_of, reach_of, seconds_of
from tests.refusals import refused_at

NOON = 1_117_627_200
"""2005-06-01 12:00 in UTC."""


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("2005-06-01", NOON - 43_200),
        ("2005-06-01 12:00:00", NOON),
        ("2005-06-01T12:00:00Z", NOON),
        ("2005-06-01 14:00:00+02:00", NOON),
        (7.0, 7.0),
        ("1117627200", NOON),
        ("20050601", 20_050_601),
        ("2005", NOON - 151.5 * 86_400),
    ],
)
def test_dates_are_seconds_and_numbers_are_themselves(moment: float | str, seconds: float) -> None:
    assert seconds_of(moment) == seconds


@pytest.mark.parametrize("moment", ["", "now", "today", "2005-13-01", "tomorrow", "1e", "NaT"])
def test_what_is_no_date_is_refused(moment: str) -> None:
    with refused_at("settings"):
        seconds_of(moment)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_a_date_is_compared_in_the_unit_of_the_data(unit: int) -> None:
    # A time that is missing, and one beyond all, do not hide the unit of the others.
    times = np.array([0, NOON - 60, NOON, NOON + 60, 10 * NOON], dtype=np.float64) * unit
    at = in_unit_of(times, "2005-06-01 12:00:00")
    assert (times < at).tolist() == [True, True, False, False, False]
    assert in_unit_of(times, 5.0) == in_unit_of(times, "5") == 5.0
    assert reach_of(times[2:4], "2005-06-01") == (
        f"2005-06-01 12:00:00 ({NOON * unit}) to 2005-06-01 12:01:00 ({(NOON + 60) * unit})"
    )
    assert reach_of(times[2:4], 5.0) == f"{NOON * unit} to {(NOON + 60) * unit}"
