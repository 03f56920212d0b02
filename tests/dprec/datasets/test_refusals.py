"""Files that are refused: what is at fault, by file and line or by setting, and what was found there."""

import bz2
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import (
    Dataset,
    DelimitedTable,
    LightGCN,
    MsWeb,
    OneBitSynthetic,
    Synthetic,
    SyntheticDomains,
    selected,
)
from dprec.datasets.delimited import TextLayout
from dprec.datasets.synthetic import Arrivals
from dprec.datasets.table import ItemColumns, UserColumns
from dprec.errors import InputError
from dprec.schedules.periods import ByPeriod
from dprec.splits import Temporal

PLAIN = "1,2,3\n1,3,4\n"
NUMBERED: dict[str, Any] = {"has_header": True, "item_column": 2, "rating_column": 3}
LISTS = "0 1 2 3\n1 2\n2\n"


def rated(*values: object) -> str:
    return "user,item,rating\n" + "".join(f"1,{item},{value}\n" for item, value in enumerate(values))


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name in names:
            members.writestr(name, PLAIN)
    return file.getvalue()


Case = tuple[str | bytes, dict[str, Any], str, str]
"""What a file holds, settings, the place in it that is named, and the beginning of what is said of it."""

TABLES: list[Case] = [
    (rated(1, 2, 3.3333333), {}, "", "ratings from 1 to 3.33333 that are as little as 1 apart"),
    (rated(0.001, 0.002, 900), {}, "", "ratings from 0.001 to 900"),
    (rated(3, 3), {}, "", "2 ratings of 3, and no other"),
    (rated(3), {}, "", "1 rating of 3, and no other"),
    (rated(3, 4), {"low": 5.0}, "", "a scale from 5 to 4"),
    (rated(3, 4), {"low": -1e308, "high": 1e308}, "", "a scale from -1e+308 to 1e+308"),
    (rated(1, "1e305"), {}, "", "a scale from 1 to 1e+305"),
    (rated(1, 6), {"low": 1.0, "high": 5.0, "step": 1.0}, ", line 3", "rating 6"),
    (rated(1, 2), {"step": 0.3}, "", "1.0 to 2.0 by 0.3"),
    ("1,1,-1\n2,2,-1\n", {"missing": [-1]}, "", "no rating but -1"),
    ("1;2;3,5\n1;3;4,5\n", {}, ", line 1", "'3,5' in column 3"),
    ("1,10\n2,nan\n", {}, ", line 2", "'nan' in column 2"),
    ("user,item\n1,10\nNaN,20\n", {}, ", line 3", "'NaN' in user"),
    ("1,10\n,20\n", {}, ", line 2", "nothing in column 1"),
    ("who,item,rating\n1,2,3\n", {}, ", line 1", "which of the columns 'who', 'item', 'rating' holds"),
    ("user,user,item\n1,2,3\n", {}, ", line 1", "which of the columns 'user', 'user' holds the users"),
    ("," * 300 + "\n1,2,3\n", {}, ", line 1", "which of the columns '', '', "),
    ("who,heat,alien,jaws\nann,1,,5\nbob,,2,3\n", {}, ", line 1", "which of the columns 'who', 'heat'"),
    (PLAIN, {"rating_column": 4}, ", line 1", "no column 4 among 3"),
    (PLAIN, {"user_column": 0}, ", line 1", "no column 0 among 3"),
    (PLAIN, {"user_column": "user"}, ", line 1", "no column 'user'"),
    ("a,a,b\n1,2,3\n", {**NUMBERED, "user_column": "a"}, ", line 1", "2 columns 'a'"),
    (f"1,1,1\n1,{'x' * 300},1\n", {}, ", line 2", "300 bytes in column 2"),
    ('1,a,1\n2,"b\nc",1\n3,d,1\n', {}, ", line 2", "a quote that does not end with its cell"),
    ('1,a,1\n2,"b,1\n3,d,1\n', {}, ", line 2", "a quote that does not end with its cell"),
    ('1,a,1\n2,"b"c,1\n3,d,1\n', {}, ", line 2", "a quote that does not end with its cell"),
    ("1,1,1\n" + "\n" * 100 + "2,2,2\n", {}, ", line 2", "an empty line"),
    ("", {}, "", "an empty file"),
    ("1," * 20_000, {}, ", line 1", "20001 columns"),
    (f"1,2,3\n1,3,{'9' * 5000}x\n", {}, ", line 2", "'9999"),
    ("\ufeff1,2,3\n1,3,4\n".encode("utf-16-le"), {}, "", "text in UTF-16"),
    ("\ufeff1,2,3\n1,3,4\n".encode("utf-32-be"), {}, "", "text in UTF-16 or UTF-32"),
    ("1,2,3\n".encode("utf-16-le"), {}, ", line 1", "a zero byte"),
    (b"\xff", {}, ", line 1", "byte 0xff"),
    (bz2.compress(b"1,2,3\n"), {}, "", "an archive"),
    (lzma.compress(b"1,2,3\n"), {}, "", "an archive"),
    (archive("ratings.csv"), {}, "", "a zip archive"),
    (archive("xl/workbook.xml"), {}, "", "a spreadsheet"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), {}, "", "a spreadsheet"),
    (LISTS, {}, "", "lines of integers, of different lengths"),
    ("1:\n1,2,2005-09-06\n", {}, ", line 1", "'1:', with the ratings of a film below it"),
    ("user,item,colour\n1,10,3\n", {}, ", line 1", "which of the columns 'user', 'item', 'colour' holds"),
]
TIMED: list[Case] = [
    (PLAIN, {"timestamp_column": 4}, ", line 1", "no column 4 among 3"),
    (PLAIN, {}, ", line 1", "no column of times"),
    (rated(3, 4), {}, ", line 1", "no column of times"),
    ("1,2,3,soon\n1,3,4,later\n", {}, ", line 1", "no column of times"),
]
LISTED: list[Case] = [
    *(
        (f"0 1\n1 2 {cell}\n", {}, ", line 2", repr(cell)[:20])
        for cell in ("a", "nan", "-1", "1.5", "\u00b2", "\u0663", "9" * 19)
    ),
    ("0\n1\n", {}, "", "no pairs"),
]
VISITED: list[Case] = [
    ("V,1,1\n", {}, ", line 1", "a visit of nobody"),
    ('C,"1",x\n', {}, ", line 1", "'x'"),
    ("A,1\n", {}, "", "no visits"),
]
USERS: list[Case] = [
    ("user,age\n", {}, "", "a header and nothing below it"),
    ("user,age\n1,2,3\n", {}, ", line 2", "3 columns"),
    ("user,age\n,2\n", {}, ", line 2", "nothing in user"),
    ("user,age,age\n1,2,3\n", {}, ", line 1", "column 'age' twice"),
    (f"user,age\n1,{'x' * 300}\n", {}, ", line 2", "300 bytes in age"),
    ("user," + ",".join(map(str, range(101))) + "\n1" + "," * 101, {}, ", line 1", "101 columns"),
    ("", {}, "", "an empty file"),
    *(
        ("user,age\n1,2\n", {"columns": columns}, ", line 1", "")
        for columns in (["sex"], [9], ["age", 2], ["user"], [1])
    ),
]
ITEM_HEADER = "item,title,year,genres\n8,First,1990,War\n"
ABOUT: dict[str, Any] = {"numbers": ["year"], "categories": ["genres"]}
ITEMS: list[Case] = [
    *(
        (f"{ITEM_HEADER}9,Other,{wrong},War\n", ABOUT, ", line 3", f"'{wrong}' in year")
        for wrong in ("nan", "inf", "1990s", "1_990")
    ),
    (f"{ITEM_HEADER},Other,1990,War\n", ABOUT, ", line 3", "nothing in item"),
    (ITEM_HEADER[2:], ABOUT, ", line 1", "no column 'item'"),
    ("item,title,year,genres\n", ABOUT, "", "a header and nothing below it"),
    (
        "item,year,genres\n" + "".join(f"{n},1990,{n}\n" for n in range(501)),
        ABOUT,
        "",
        "501 categories in genres",
    ),
    (
        "item,title,year,genres\n" + "".join(f"{n},x{n},1990,{n}\n" for n in range(251)),
        {"categories": ["title", "genres"]},
        "",
        "502 categories in all columns",
    ),
]


def of_items(**settings: Any) -> object:
    return ItemColumns(**settings).read(np.array([8]))


READERS: dict[str, tuple[Callable[..., object], list[Case]]] = {
    "ratings": (lambda **settings: DelimitedTable(**settings).load(), TABLES),
    "ratings with times": (lambda **settings: DelimitedTable(**settings).load_timed(), TIMED),
    "lists": (lambda **settings: LightGCN(**settings).load(), LISTED),
    "visits": (lambda **settings: MsWeb(**settings).load(), VISITED),
    "users": (lambda **settings: UserColumns(**settings).read(np.array([1])), USERS),
    "items": (of_items, ITEMS),
}


@pytest.mark.parametrize(
    ("reader", "contents", "settings", "place", "found"),
    [(reader, *case) for reader, (_, cases) in READERS.items() for case in cases],
)
def test_a_file_is_refused_where_it_cannot_be_read(
    reader: str, contents: str | bytes, settings: dict[str, Any], place: str, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    with pytest.raises(InputError) as caught:
        READERS[reader][0](path=str(path), **settings)
    assert caught.value.where == f"{path}{place}"
    assert caught.value.found.startswith(found)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def selected_of(kind: Callable[..., Dataset]) -> Callable[..., Dataset]:
    return lambda **settings: selected(kind(**settings))


SETTINGS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (DelimitedTable, {}, "path"),
    (DelimitedTable, {"train_path": "a"}, "path"),
    (DelimitedTable, {"test_path": "a"}, "path"),
    (DelimitedTable, {"path": "a", "test_path": "b"}, "path"),
    (DelimitedTable, {"path": "a", "train_path": "a", "test_path": "b"}, "path"),
    (DelimitedTable, {"path": "a", "validation_path": "b"}, "path"),
    (DelimitedTable, {"train_path": "a", "validation_path": "b"}, "path"),
    (DelimitedTable, {"path": "absent.csv"}, "absent.csv"),
    (DelimitedTable, {"path": "a" * 5000}, "a" * 80 + "..."),
    (DelimitedTable, {"path": "mine.csv", "low": 1, "high": 2, "step": 0.3}, "scale"),
    (DelimitedTable, {"path": "mine.csv", "has_header": False, "user_column": "user"}, "user_column"),
    (ItemColumns, {"path": "mine.csv", "numbers": ["year", "genres"], "categories": ["genres"]}, "numbers"),
    (ItemColumns, {"path": "mine.csv", "numbers": ["item"]}, "numbers"),
    (ItemColumns, {"path": "mine.csv", "numbers": list(range(1, 256))}, "numbers"),
    (ItemColumns, {"path": "mine.csv", "has_header": False, "numbers": [2]}, "column"),
    *((TextLayout, {"separator": mark}, "separator") for mark in ("", '"', "a", "1", ".", "-", "\n")),
    (Synthetic, {"users": 2, "items": 3, "ratings": 7}, "ratings"),
    (Synthetic, {"users": 0}, "users"),
    *((Synthetic, {"positive": rule}, "positive") for rule in ("4", ">= x", "< 3", ">= 1e999", "")),
    (selected_of(Synthetic), {"positive": "> 5"}, "positive"),
    (selected_of(Synthetic), {"min_items": 1000}, "min_items"),
    (selected_of(SyntheticDomains), {"positive": ">= 4"}, "positive"),
    (OneBitSynthetic, {"users": 100_000, "items": 100_000}, "users"),
    (OneBitSynthetic, {"alpha": 0.0}, "alpha"),
    *(
        (Arrivals, {key: value}, key)
        for key, value in (("days", 0.0), ("days", float("nan")), ("returning", 1.1), ("new_items", 1.0))
    ),
    (
        Synthetic,
        {
            **{"users": 50, "items": 100, "ratings": 4900},
            "arrivals": Arrivals(new_items=0.9, returning=0.0),
        },
        "ratings",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "where"), SETTINGS)
def test_settings_that_do_not_go_together_are_named(
    kind: Callable[..., Any],
    settings: dict[str, Any],
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(rated(1, 2))
    with pytest.raises(InputError) as caught:
        of_items(**settings) if kind is ItemColumns else kind(**settings).load()
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("user,item,rating", "data with times"),
        ("user,item,rating,shop,sold", "NAME, one of 'shop', 'sold'"),
    ],
)
def test_a_schedule_asks_for_times_alone(tmp_path: Path, header: str, accepted: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{header}\n1,2,3,a,b\n2,1,4,a,b\n")
    or_none = ", or a split that needs none, such as holdout"
    for split, otherwise in ((ByPeriod(days=7.0, most=None), ""), (Temporal(), or_none)):
        with pytest.raises(InputError, match="no column of times") as refused:
            split.split(DelimitedTable(path=str(path)), 1)
        assert refused.value.accepted.endswith(accepted + otherwise)


def test_no_column_without_numbers_is_offered_for_ratings(tmp_path: Path) -> None:
    path = tmp_path / "purchases.csv"
    path.write_text("customer_no,sku,purchased_on,store\nC1,S2,01.03.2024,A\nC2,S1,02.03.2024,B\n")
    with pytest.raises(InputError, match="holds the ratings is not clear") as refused:
        DelimitedTable(path=str(path)).load()
    assert "rating_column=none" in refused.value.accepted
    assert "purchased_on" not in refused.value.accepted
