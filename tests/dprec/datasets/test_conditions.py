"""Conditions on the columns of a table."""

import csv
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from dprec.datasets import DelimitedTable
from dprec.datasets.conditions import rows_that_meet
from dprec.errors import InputError, SettingError
from simulation.configuration.strict_yaml import parse_yaml

EVENTS = pl.LazyFrame(
    {
        "event": ["play", " skip ", "", "play"],
        "hours": ["2", "10", "0.5", ""],
        "item": ["007", "7", "08", "x"],
        "user-id": ["a", "b", "c", "d"],
        "n": [1, 2, 3, None],
        "uid": ["007", "7", "08", "x"],
        "user": ["a", "b", "c", "d"],
        "big": ["9007199254740993", "9007199254740992", "1", "2"],
        "odd": [1.0, float("nan"), 0.0, None],
    }
)


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("event = 'play'", [True, False, False, True]),
        ("event == 'skip'", [False, True, False, False]),
        ("event IS NULL", [False, False, True, False]),
        ("hours >= 2", [True, True, False, False]),  # as numbers: '10' comes before '2'
        ("uid = '007' AND hours >= 2", [True, False, False, False]),
        ("user = 'a' OR user-id = 'b'", [True, True, False, False]),  # a word of SQL, and an odd name
        ("big = 9007199254740993", [True, False, False, False]),
        ("LOWER(event) IN ('skip')", [False, True, False, False]),
        ("n / 0 > 1", [True, True, True, False]),
        ("item = '007'", [True, False, False, False]),
        ("\"user-id\" IN ('a', 'c') AND event = 'skip'", [False, False, False, False]),
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
        ("sum(n) > 1", "with sum(...)"),
        ("n > (SELECT 1)", "where: "),
        ("read_csv('/etc/passwd') = 1", "with read_csv(...)"),
        ("LPAD(event, 100000000000, 'x') = 'x'", "with LPAD(...)"),
        ("random() > 0", "with random(...)"),
        ("hours >= '5'", "numbers without quotes, as hours >= 3"),
        ("odd > 2", "no row meets"),
        ("__import__('os').system('x')", "with __import__(...)"),
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


@pytest.mark.parametrize(
    "name", ["item", "an item", "$(touch x)", "a`b`", 'a"b', "it's", "a\\b", "a!b", "{x}"]
)
def test_what_is_printed_of_a_hostile_header_is_one_argument_that_runs_nothing(
    name: str, tmp_path: Path
) -> None:
    with (tmp_path / "mine.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["user", name, "rating"], [1, "", 3], [2, 5, 4]])
    with pytest.raises(InputError) as error:
        DelimitedTable(path=str(tmp_path / "mine.csv"), item_column=2).load()
    printed = error.value.accepted.partition("without such rows, ")[2]
    shell = shutil.which("bash")
    assert shell is not None
    said = subprocess.run(
        [shell, "-c", f"printf '%s\\n' {printed}"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    flag, argument = said.stdout.splitlines()
    assert (flag, argument.partition("=")[0]) == ("--set", "dataset.where")
    assert name in str(parse_yaml(argument.partition("=")[2], "where"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]
