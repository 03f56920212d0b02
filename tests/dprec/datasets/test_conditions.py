"""Conditions on the columns of a table."""

import polars as pl
import pytest

from dprec.datasets.conditions import rows_that_meet
from dprec.errors import SettingError

EVENTS = pl.LazyFrame(
    {
        "event": ["play", " skip ", "", "play"],
        "hours": ["2", "10", "0.5", ""],
        "item": ["007", "7", "08", "x"],
        "user-id": ["a", "b", "c", "d"],
        "n": [1, 2, 3, None],
    }
)


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("event = 'play'", [True, False, False, True]),
        ("event == 'skip'", [False, True, False, False]),
        ("event IS NULL", [False, False, True, False]),
        ("hours >= 2", [True, True, False, False]),  # as numbers: '10' comes before '2'
        ("hours LIKE '1%'", [False, True, False, False]),
        ("item = '007'", [True, False, False, False]),
        ("\"user-id\" IN ('a', 'c') AND NOT event = 'play'", [False, False, False, False]),
        ("\"user-id\" <> 'a' AND n BETWEEN 2 AND 3", [False, True, True, False]),
    ],
)
def test_rows_that_meet_a_condition(condition: str, met: list[bool]) -> None:
    if any(met):
        assert rows_that_meet(EVENTS, condition).to_list() == met
    else:
        with pytest.raises(SettingError, match="which no row meets"):
            rows_that_meet(EVENTS, condition)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("kind = 'play'", "'kind' is no column"),
        ('event = "play"', "a text stands in single quotes: 'play'"),
        ("hours >", "unable to parse"),
        ("hours + 1", "true of nothing"),
        ("1 = 1", "of no column"),
        ("sum(n) > 1", "of all rows together"),
        ("n > (SELECT 1)", "where: "),
        ("read_csv('/etc/passwd') = 1", "unsupported function"),
        ("__import__('os').system('x')", "where: "),
        ("event = 'play'; DROP TABLE x", "invalid expression"),
        ("n = 'play'", "where: "),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(condition: str, found: str) -> None:
    with pytest.raises(SettingError) as error:
        rows_that_meet(EVENTS, condition)
    assert error.value.key == "where"
    assert found in str(error.value)
    assert "Resolved plan" not in str(error.value)
