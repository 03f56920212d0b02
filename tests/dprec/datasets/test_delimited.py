"""The reader of text and Parquet, beyond what every data set's layout asks of it."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dprec.datasets import DelimitedTable
from dprec.datasets.base import read_fold
from dprec.datasets.delimited import TextLayout, read_rows
from dprec.errors import InputError
from dprec.rating_rows import RatingRows
from dprec.ratings import Ratings
from tests.make import STARS
from tests.refusals import refused_at


def read(path: Path, text: str | bytes, layout: TextLayout = TextLayout()) -> RatingRows:  # noqa: B008 - frozen
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_rows(path, layout)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.csv"


@pytest.mark.parametrize(
    ("cells", "identifiers"),
    [
        (["7", "-3", "9223372036854775807"], [7, -3, 2**63 - 1]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["+7", "-0"], ["+7", "-0"]),
        (["9223372036854775808"], ["9223372036854775808"]),
        (["1.5", "1.0", "1"], ["1.5", "1.0", "1"]),
        # As pandas writes identifiers beside a missing one.
        (["1", "1.0", "2.000"], [1, 1, 2]),
        (["-3.0", "0", "0.0"], [-3, 0, 0]),
        (["007", "7", "7.0"], ["007", "7", "7.0"]),
        (["1.0", "123456789012345678.0"], [1, 123456789012345678]),
        (["1.0", "1234567890123456789012"], ["1.0", "1234567890123456789012"]),
        (["1.0", "ann", "nan"], ["1.0", "ann", "nan"]),
        ([" a b ", "\tc", "zoë 😀"], ["a b", "c", "zoë 😀"]),
        ([" 7", "8 "], [7, 8]),
    ],
)
def test_identifiers_are_numbers_only_if_nothing_is_lost(
    cells: list[str], identifiers: list[Any], path: Path
) -> None:
    rows = read(path, "".join(f"{cell},{item},1\n" for item, cell in enumerate(cells)))
    assert rows.users.values.tolist() == identifiers
    assert rows.users.distinct.dtype.kind in "iU"
    assert rows.items.distinct.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "layout", "users", "items"),
    [
        ('u , i,r\n a b ,\t7 , 4.5\n"c", 8 ,3\n', TextLayout(header=True, rating="r"), ["a b", "c"], [7, 8]),
        ('1,"a, ""b""",4\n2,plain,5\n', TextLayout(), [1, 2], ['a, "b"', "plain"]),
        ('1, "x, y",4\n2, "z",5\n', TextLayout(), [1, 2], ["x, y", "z"]),
        ('1,a"b,4\n2,5" x,5\n', TextLayout(), [1, 2], ['a"b', '5" x']),
        ('"7";"\\"038\\"";"4"\n"8";"a\\b";"5"\n', TextLayout(separator=";"), [7, 8], ['"038"', "a\\b"]),
        ('"7";"""038""";"4"\n"8";"a\\";"5"\n', TextLayout(separator=";"), [7, 8], ['"038"', "a\\"]),
        ("1 2\t3\n  4\t\t5   1  \r\n", TextLayout(separator="whitespace"), [1, 4], [2, 5]),
        *(
            (f"1{mark}2{mark}3.5\n4{mark}5{mark}1\n", TextLayout(separator=mark), [1, 4], [2, 5])
            for mark in (";", "|", "\t", "::", "<>", "¦")
        ),
        ("\n\n".join(["1,2,3", ""]) + "\n" * 200 + " \r\n", TextLayout(), [1], [2]),
    ],
)
def test_quotes_blanks_and_separators(
    text: str, layout: TextLayout, users: list[Any], items: list[Any], path: Path
) -> None:
    rows = read(path, text, layout)
    assert (rows.users.values.tolist(), rows.items.values.tolist()) == (users, items)


@pytest.mark.parametrize("bad", [2, 50, 100])
@pytest.mark.parametrize("separator", [",", "::", "whitespace"])
@pytest.mark.parametrize("wrong", ["1,2,x", "1,2", "", "1,2,3,4", "1,2,3\0", "caf\xe9,2,3"])
def test_what_is_wrong_is_found_on_its_line(bad: int, separator: str, wrong: str, path: Path) -> None:
    lines = [f"{n},5,1" for n in range(1, 101)]
    text = "\n".join([*lines[: bad - 1], wrong, *lines[bad - 1 :]])
    mark = {"whitespace": " "}.get(separator, separator)
    if wrong == "1,2,3\0":
        return  # a zero byte at the end of a line is nothing
    with refused_at(f"some.csv, line {bad}"):
        read(path, text.replace(",", mark).encode("latin-1"), TextLayout(separator=separator))


@given(
    lines=st.lists(st.text('0123456789,,,,"\r\t .-e\0é\\', max_size=14), max_size=30),
    separator=st.sampled_from([",", ",,", "whitespace"]),
    header=st.booleans(),
    bad_byte=st.booleans(),
)
@example(lines=["", "\x000"], separator=",", header=False, bad_byte=False)
def test_any_text_is_read_or_refused_in_one_line(
    lines: list[str], separator: str, header: bool, bad_byte: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "rows.csv"
    text = "\n".join(["1,2,3", "4,5,6", *lines])
    path.write_bytes(text.encode() + b"\xff" * bad_byte)
    refused = ""
    try:
        rows = read_rows(path, TextLayout(separator=separator, header=header))
    except InputError as error:
        refused = str(error)
    if refused:
        assert "rows.csv" in refused
        assert "\n" not in refused
    else:
        assert np.isfinite(rows.values).all()
        # A zero byte at the end of a line is nothing.
        assert rows.users.places.size == len(text.replace("\0", "").rstrip().split("\n")) - header


def test_a_fold_has_one_space_of_identifiers(tmp_path: Path) -> None:
    def fold(train: str, test: str) -> tuple[RatingRows, RatingRows]:
        return read(tmp_path / "x.base", train), read(tmp_path / "x.test", test)

    train, test = read_fold(*fold("1,10,3\n2,11,4\n", "1,12,5\n3,10,1\n"), STARS)
    for part in (train, test):
        assert part.user_ids.tolist() == [1, 2, 3]
        assert part.item_ids.tolist() == [10, 11, 12]
    assert (train.count, test.count) == (2, 2)
    train, test = read_fold(*fold("1,10,3\n", "1,11,5\nx,11,1\n"), STARS)
    assert train.user_ids.tolist() == test.user_ids.tolist() == ["1", "x"]
    with refused_at("x.test"):
        read_fold(*fold("1,10,3\n", "2,10,5\n"), STARS)
    with refused_at("x.test, line 2"):
        read_fold(*fold("1,10,3\n", "1,11,5\n1,10,5\n"), STARS)


TEXT = b"user,item,rating\n1,2,3\n1,3,4\n"


def zstd(path: Path) -> None:
    pl.read_csv(TEXT).lazy().sink_csv(path, compression="zstd", check_extension=False)


@pytest.mark.parametrize("pack", [lambda path: path.write_bytes(gzip.compress(TEXT)), zstd])
def test_packed_text(pack: Callable[[Path], object], path: Path) -> None:
    pack(path)
    assert DelimitedTable(path=str(path)).load().values.tolist() == [3, 4]
    for damaged in (path.read_bytes()[:-9], path.read_bytes()[:12] + b"x" * 20):
        path.write_bytes(damaged)
        with refused_at("some.csv"):
            DelimitedTable(path=str(path)).load()


@pytest.mark.parametrize(
    "users", [[1, 2, 1], ["b", "a", "b"], pl.Series(["b", "a", "b"], dtype=pl.Categorical)]
)
def test_parquet(users: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    frame = pl.DataFrame({"note": ["x"] * 3, "userId": users, "movieId": [5, 6, 6], "score": [1.0, 2, 4]})

    def load(table: pl.DataFrame) -> Ratings:
        table.write_parquet(path, row_group_size=2)
        return DelimitedTable(path=str(path)).load()

    assert load(frame).user_ids.tolist() == sorted(set(users))
    assert load(frame).values.tolist() == ([1, 4, 2] if users[0] == 1 else [2, 1, 4])
    assert load(frame.select("userId", "movieId")).scale.implicit
    for wrong, place in (
        (frame.rename({"movieId": "zork", "note": "rest"}), ""),
        (frame.with_columns(score=pl.Series([1.0, None, 2])), ", row 2"),
        (frame.with_columns(userId=pl.Series(["a", "a\0", "b"])), ", userId"),
    ):
        with refused_at(f"mine.parquet{place}"):
            load(wrong)
    # A part of a table is no text in another encoding.
    frame.write_parquet(path)
    for part in (b"PAR1 and no more", path.read_bytes()[:-9]):
        path.write_bytes(part)
        with refused_at("mine.parquet") as caught:
            DelimitedTable(path=str(path)).load()
        assert caught.value.accepted == "a file that is a whole table"
