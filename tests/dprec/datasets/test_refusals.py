"""Files that are refused: what is at fault, by file and line or by setting, and what was found there."""

from pathlib import Path
from typing import Any

import pytest

from dprec.datasets import DelimitedTable
from dprec.errors import InputError

PLAIN = "1,2,3\n1,3,4\n"
NUMBERED: dict[str, Any] = {"has_header": True, "item_column": 2, "rating_column": 3}


def rated(*values: object) -> str:
    return "user,item,rating\n" + "".join(f"1,{item},{value}\n" for item, value in enumerate(values))


CONTENTS: list[tuple[str | bytes, dict[str, Any], str, str]] = [
    (rated(1, 2, 3.5), {}, "", "ratings from 1 to 3.5 that are as little as 1 apart"),
    (rated(0.001, 0.002, 900), {}, "", "ratings from 0.001 to 900"),
    (rated(3, 3), {}, "", "2 ratings that are all 3"),
    (rated(3, 4), {"low": 5.0}, "", "a scale from 5 to 4"),
    (rated(3, 4), {"low": -1e308, "high": 1e308}, "", "a scale from -1e+308 to 1e+308"),
    (rated(1, "1e305"), {}, "", "a scale from 1 to 1e+305"),
    (rated(1, 6), {"low": 1.0, "high": 5.0, "step": 1.0}, ", line 3", "rating 6"),
    (rated(1, 2), {"step": 0.3}, "", "1.0 to 2.0 by 0.3"),
    ("1,1,-1\n2,2,-1\n", {"missing": [-1]}, "", "no rating but -1"),
    ("1;2;3,5\n1;3;4,5\n", {}, ", line 1", "'3,5' in column 3"),
    ("who,item,rating\n1,2,3\n", {}, ", line 1", "which of the columns 'who', 'item', 'rating' holds"),
    ("user,user,item\n1,2,3\n", {}, ", line 1", "which of the columns 'user', 'user', 'item' holds"),
    ("," * 300 + "\n1,2,3\n", {}, ", line 1", "which of the columns '', '', "),
    ("who,heat,alien,jaws\nann,1,,5\nbob,,2,3\n", {}, ", line 1", "which of the columns 'who', 'heat'"),
    (PLAIN, {"rating_column": 4}, ", line 1", "no column 4 among 3"),
    (PLAIN, {"user_column": 0}, ", line 1", "no column 0 among 3"),
    (PLAIN, {"user_column": "user"}, ", line 1", "no column 'user'"),
    ("a,a,b\n1,2,3\n", {**NUMBERED, "user_column": "a"}, ", line 1", "2 columns 'a'"),
    (f"1,1,1\n1,{'x' * 300},1\n", {}, ", line 2", "300 bytes in column 2"),
    ('1,a,1\n2,"b\nc",1\n3,d,1\n', {}, ", line 2", "line break inside quotes"),
    ('1,a,1\n2,"b,1\n3,d,1\n', {}, ", line 2", "unexpected end of data"),
    ('1,a,1\n2,"b"c,1\n3,d,1\n', {}, ", line 2", "',' expected after"),
    ("1,1,1\n" + "\n" * 100 + "2,2,2\n", {}, ", line 2", "an empty line"),
    (b"\xff\xfe1\x00,", {}, "", "a byte order mark of UTF-16, and then truncated data"),
    (b"\xff\xfe\x00\xdc,\x00", {}, "", "a byte order mark of UTF-16, and then illegal encoding"),
    (b"\xff\xfe\x00\x00\xff\xff\xff\xff", {}, "", "a byte order mark of UTF-32, and then code point"),
    ("1,2,3\n".encode("utf-16-le"), {}, ", line 1", "a zero byte"),
    (b"\xff\xfe", {}, "", "an empty file"),
    (b"\xff", {}, ", line 1", "byte 0xff"),
]
TIMED: list[tuple[str | bytes, dict[str, Any], str, str]] = [
    (PLAIN, {"timestamp_column": 4}, ", line 1", "no column 4 among 3"),
    (
        "user,item,rating\n1,2,3\n1,3,4\n",
        {},
        ", line 1",
        "which of the columns 'user', 'item', 'rating' holds the times",
    ),
    ("1,2,3,soon\n1,3,4,later\n", {}, ", column 4", "values such as 'soon'"),
]


@pytest.mark.parametrize(
    ("load", "contents", "settings", "place", "found"),
    [*(("load", *case) for case in CONTENTS), *(("load_timed", *case) for case in TIMED)],
)
def test_a_file_is_refused_where_it_cannot_be_read(
    load: str, contents: str | bytes, settings: dict[str, Any], place: str, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    with pytest.raises(InputError) as caught:
        getattr(DelimitedTable(path=str(path), **settings), load)()
    assert caught.value.where == f"{path}{place}"
    assert caught.value.found.startswith(found)
    assert len(str(caught.value)) < 700


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({}, "path"),
    ({"train_path": "a"}, "test_path"),
    ({"test_path": "a"}, "train_path"),
    ({"path": "a", "test_path": "b"}, "path"),
    ({"path": "absent.csv"}, "absent.csv"),
    ({"path": "a" * 5000}, "a" * 80 + "..."),
    ({"path": "mine.csv", "step": 0.0}, "step"),
    ({"path": "mine.csv", "low": 1, "high": 2, "step": 0.3}, "scale"),
    ({"path": "mine.csv", "has_header": False, "user_column": "user"}, "user_column"),
]


@pytest.mark.parametrize(("settings", "where"), SETTINGS)
def test_settings_that_do_not_go_together_are_named(
    settings: dict[str, Any], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(rated(1, 2))
    with pytest.raises(InputError) as caught:
        DelimitedTable(**settings).load()
    assert caught.value.where == where
