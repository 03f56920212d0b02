"""Tables that are no rating per line in the usual order: what is said, and that what it says works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dprec.datasets import DelimitedTable, InMemory
from dprec.errors import InputError
from dprec.ratings import Ratings

RANDOM = np.random.default_rng(0)
CELLS = RANDOM.choice(30 * 15, 200, replace=False)
FRAME = pd.DataFrame(
    {"user": CELLS // 15 + 100, "item": CELLS % 15 + 1, "rating": RANDOM.integers(1, 6, CELLS.size)}
)
MATRIX = FRAME.pivot_table(index="user", columns="item", values="rating")


def same(ratings: Ratings) -> bool:
    columns = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items], ratings.values
    return {*zip(*columns, strict=True)} == {*FRAME.itertuples(index=False, name=None)}


@pytest.mark.parametrize(
    ("written", "header"),
    [({}, True), ({"header": False}, False), ({"na_rep": "NaN"}, True), ({"na_rep": "0", "sep": "\t"}, True)],
)
def test_a_matrix_in_a_file_is_told_how_to_become_ratings(
    written: Any, header: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    MATRIX.to_csv("wide.csv", **written)
    with pytest.raises(InputError, match=r"wide\.csv: 16 columns of few different numbers") as caught:
        DelimitedTable(path="wide.csv").load()
    hint = caught.value.accepted.partition("column per item: ")[2].partition("; ")[0]
    assert ("header=None" in hint) is not header
    separator = written.get("sep", ",")
    exec(hint.replace("FILE", f"'wide.csv', sep={separator!r}"), {"pandas": pd})
    missing = (0,) if written.get("na_rep") == "0" else ()
    ratings = DelimitedTable(path="ratings.csv", missing=missing).load()
    assert ratings.count == len(FRAME)
    assert same(ratings) or not header


def test_a_header_of_items_alone_is_that_of_a_matrix(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("who,heat,alien,jaws\nann,1,,5\nbob,,2,3\n")
    with pytest.raises(
        InputError, match=r"is not clear; accepted: .* of a column per item, a line per rating"
    ):
        DelimitedTable(path=str(path)).load()


def test_many_columns_of_numbers_are_ratings_where_settings_say_so(tmp_path: Path) -> None:
    path = tmp_path / "flags.csv"
    wide = FRAME.assign(item=1).drop_duplicates(["user", "item"])
    for flag in range(10):
        wide[f"flag{flag}"] = RANDOM.integers(0, 2, len(wide))
    wide.to_csv(path, index=False, header=False)
    with pytest.raises(InputError, match=r"if a line is a rating, --set dataset.user_column=1"):
        DelimitedTable(path=str(path)).load()
    assert DelimitedTable(path=str(path), user_column=1).load().count == len(wide)
    wide.to_csv(path, index=False)
    assert DelimitedTable(path=str(path)).load().count == len(wide)


def test_an_array_of_users_and_items_is_told_how_to_become_ratings() -> None:
    matrix = MATRIX.fillna(0).to_numpy()
    with pytest.raises(InputError, match=r"an array of shape \(30, 15\); accepted: scipy\.sparse\.coo_array"):
        InMemory.of(matrix)
    assert InMemory.of(scipy.sparse.coo_array(matrix)).ratings == len(FRAME)


def test_texts_of_several_lines_are_told_how_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.assign(review='a text\nof "two" lines, 5').to_csv("reviews.csv", index=False)
    with pytest.raises(InputError, match=r"reviews\.csv, line 2: line break inside quotes") as caught:
        DelimitedTable(path="reviews.csv").load()
    hint = caught.value.accepted.partition("as those of: ")[2]
    named = hint.replace("USER", "user").replace("ITEM", "item").replace("'RATING'", "'rating'")
    exec(named.replace("FILE", "'reviews.csv'"), {"pandas": pd})
    assert same(DelimitedTable(path="ratings.csv").load())


TIMES = 880_000_000 + np.arange(len(FRAME)) * 86_400


@pytest.mark.parametrize(
    "times", [TIMES, TIMES * 1000, pd.to_datetime(TIMES, unit="s"), pd.to_datetime(TIMES, unit="s").date]
)
def test_times_in_the_third_column_are_told_from_ratings(times: Any, tmp_path: Path) -> None:
    path = tmp_path / "timed.csv"
    frame = FRAME.assign(time=times)[["user", "item", "time", "rating"]]
    frame.to_csv(path, index=False, header=False)
    fix = "--set dataset.rating_column=4 --set dataset.timestamp_column=3"
    with pytest.raises(InputError, match=f"timed.csv: times in the third column, .*; accepted: {fix}$"):
        DelimitedTable(path=str(path)).load()
    read = DelimitedTable(path=str(path), rating_column=4, timestamp_column=3)
    assert same(read.load())
    loaded = read.load_timed().times
    assert loaded is not None
    assert np.unique(loaded).size == len(FRAME)
    frame.drop(columns="rating").to_csv(path, index=False, header=False)
    with pytest.raises(InputError, match=r"times in the third column, .*; accepted: a column of ratings"):
        DelimitedTable(path=str(path)).load()


def test_large_numbers_are_ratings_on_a_scale_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("1,1,200000000\n1,2,400000000\n2,1,300000000\n")
    assert DelimitedTable(path=str(path), low=1e8, high=5e8, step=1e8).load().count == 3


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("packed", [None, "gzip"])
def test_text_is_read_by_its_byte_order_mark(encoding: str, packed: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    named = FRAME.assign(user=FRAME["user"].map("frau müller {} 😀".format))
    named.to_csv(path, index=False, encoding=encoding, compression=packed)
    ratings = DelimitedTable(path=str(path)).load()
    assert {*ratings.user_ids.tolist()} == {*named["user"]}
    assert ratings.count == len(FRAME)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xff\xfe1\x00,", "a byte order mark of UTF-16, and then truncated data"),
        (b"\xff\xfe\x00\xdc,\x00", "a byte order mark of UTF-16, and then illegal encoding"),
        (b"\xff\xfe\x00\x00\xff\xff\xff\xff", "a byte order mark of UTF-32, and then code point"),
        ("1,2,3\n".encode("utf-16-le"), "line 1: a zero byte; accepted: .* iconv -f utf-16le"),
        (b"\xff\xfe", "an empty file"),
        (b"\xff", "line 1: byte 0xff"),
    ],
)
def test_damaged_text_in_other_encodings_is_refused(data: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"mine\.csv[:,] {found}"):
        DelimitedTable(path=str(path)).load()


@pytest.mark.parametrize(
    ("texts", "identifiers"),
    [
        (["1.0", "2.0", "10.0"], [1, 2, 10]),
        (["1", "1.0", "2"], [1, 2]),
        (["-3.0", "0", "0.0", "7.000"], [-3, 0, 7]),
        (["1.5", "1.0", "1"], ["1", "1.0", "1.5"]),
        (["1.0", "ann", "1"], ["1", "1.0", "ann"]),
        (["007", "7", "7.0"], ["007", "7", "7.0"]),
        (["1.0", "123456789012345678.0"], [1, 123456789012345678]),
        (["1.0", "1234567890123456789012"], ["1.0", "1234567890123456789012"]),
    ],
)
def test_integers_with_decimals_of_zero_are_the_same_people(
    texts: list[str], identifiers: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("".join(f"{text},{item},{item % 5 + 1}\n" for item, text in enumerate(texts)))
    assert DelimitedTable(path=str(path), low=1, high=5).load().user_ids.tolist() == identifiers


def test_the_same_people_far_apart_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.datasets.files._BLOCK_BYTES", 32)
    path = tmp_path / "mine.csv"
    lines = [
        f"{user}{'.0' if item > 4 else ''},{item},{item % 5 + 1}" for item in range(10) for user in (1, 2)
    ]
    path.write_text("\n".join(lines) + "\n")
    assert DelimitedTable(path=str(path)).load().user_ids.tolist() == [1, 2]
    path.write_text("\n".join([*lines, "ann,3,3"]) + "\n")
    assert DelimitedTable(path=str(path)).load().user_ids.tolist() == ["1", "1.0", "2", "2.0", "ann"]
