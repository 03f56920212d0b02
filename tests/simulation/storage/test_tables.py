"""Tables as CSV: bytes that do not depend on how a table is written, and reading with the line in errors."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dprec.errors import InputError
from simulation.storage import files as tables
from simulation.storage.files import csv_of_columns, csv_of_rows, gzipped, read_columns, read_lines
from tests.refusals import refused_at

COLUMNS = {
    "user": np.array(["a,b", 'c"d', "é", "two\nlines"]),
    "count": np.array([1, 20, 300, 4000]),
    "loss": np.array([0.1, np.nan, np.inf, 1e-12]),
}
TEXT = 'user,count,loss\n"a,b",1,0.1\n"c""d",20,\né,300,\n"two\nlines",4000,1e-12\n'


def test_columns_and_rows_write_the_same_bytes() -> None:
    assert "".join(csv_of_columns(COLUMNS)) == TEXT
    finite = np.where(np.isfinite(COLUMNS["loss"]), COLUMNS["loss"], None)
    rows = [
        {"user": user, "count": count, "loss": loss}
        for user, count, loss in zip(COLUMNS["user"], COLUMNS["count"], finite, strict=True)
    ]
    assert "".join(csv_of_rows(rows)) == TEXT


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_bytes_do_not_depend_on_how_many_lines_are_written_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(tables, "_LINES_AT_ONCE", at_once)
    assert "".join(csv_of_columns(COLUMNS)) == TEXT


def test_rows_of_different_columns_leave_cells_empty() -> None:
    assert "".join(csv_of_rows([{"a": 1}, {"b": 2.5, "a": None}, {"b": 0}])) == "a,b\n1,\n,2.5\n,0\n"


def test_numbers_come_back_with_their_types(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TEXT, encoding="utf-8")
    read = read_columns(path, {"loss": np.float64, "count": np.int64}, "a table")
    assert {name: column.dtype for name, column in read.items()} == {"loss": np.float64, "count": np.int64}
    np.testing.assert_array_equal(read["count"], COLUMNS["count"])
    np.testing.assert_array_equal(read["loss"], [0.1, np.nan, np.nan, 1e-12])


def test_lines_say_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TEXT, encoding="utf-8")
    (_, header), *lines = read_lines(path, ("user",), "a table")
    assert header == ["user", "count", "loss"]
    assert [where for where, _ in lines] == [f"{path}, line {number}" for number in (2, 3, 4, 6)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no column count; accepted: a table"),
        ("loss\n1\n", "no column count; accepted: a table"),
        ("count,loss\n1,2\n3\n", "line 3: 1 cells; accepted: 2, one per column"),
        ("count,loss\n1,2,3\n", "line 2: 3 cells; accepted: 2, one per column"),
        ("count,loss\n1.5,2\n", "table.csv: count: .*1.5.*; accepted: numbers"),
        ("count,loss\n,2\n", "table.csv: count: .*; accepted: numbers"),
        ("count,loss\n99999999999999999999,2\n", "table.csv: count: .*; accepted: numbers"),
        ("count,loss\n1,good\n", "table.csv: loss: .*good.*; accepted: numbers"),
        ("count,loss\n1,\xff\n", "table.csv: .*; accepted: a table"),
    ],
)
def test_what_is_no_such_table_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=complaint):
        read_columns(path, {"count": np.int64, "loss": np.float64}, "a table")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with refused_at("nowhere.csv"):
        read_columns(tmp_path / "nowhere.csv", {"count": np.int64}, "a table")


def test_a_compressed_table_is_read_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_LINES_AT_ONCE", 3)
    path = tmp_path / "table.csv.gz"
    path.write_bytes(b"".join(gzipped(csv_of_columns(COLUMNS))))
    assert gzip.decompress(path.read_bytes()).decode() == TEXT
    assert list(read_lines(path, ("user",), "a table"))[1] == (f"{path}, line 2", ["a,b", "1", "0.1"])
    read = read_columns(path, {"user": np.str_, "loss": np.float64}, "a table")
    assert read["user"].tolist() == COLUMNS["user"].tolist()
    np.testing.assert_array_equal(read["loss"], [0.1, np.nan, np.nan, 1e-12])


def test_what_is_compressed_says_nothing_of_when_it_was() -> None:
    first = b"".join(gzipped([TEXT]))
    assert first == b"".join(gzipped([TEXT[:10], TEXT[10:]]))
    # Bytes 4 to 7 are the time; no flag says that a name or a comment follows.
    assert first[3:8] == bytes(5)


BOMB = b"user\n" + b"1\n" * 2_000_000
"""Four megabytes, which become four kilobytes."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (lambda whole: whole[:-9], "truncated or damaged"),
        (lambda whole: whole[:-8] + bytes(8), "truncated or damaged"),
        (lambda whole: b"no gzip", "truncated or damaged"),
        (lambda whole: whole[:20] + b"\xff" * 20 + whole[40:], "truncated or damaged"),
        (lambda whole: gzip.compress(b"user\n" + bytes([255]) * 9), "can't decode"),
        (lambda whole: gzip.compress(BOMB), "more than 100 times its size when decompressed"),
        (lambda whole: gzip.compress(bytes(1000) * 100_000), "more than 100 times|longer|line"),
    ],
    ids=["cut", "checksum", "other", "garbled", "text", "bomb", "one line"],
)
def test_a_hostile_file_is_refused_in_little_memory(
    tmp_path: Path, content: Callable[[bytes], bytes], found: str
) -> None:
    path = tmp_path / "table.csv.gz"
    lines = io.StringIO()
    lines.writelines(f"{each}\n" for each in ["user", *range(1000)])
    path.write_bytes(content(b"".join(gzipped([lines.getvalue()]))))
    tracemalloc.start()
    with pytest.raises(InputError, match=found) as caught:
        read_columns(path, {"user": np.float64}, "a table")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.where == str(path)
    assert "\n" not in str(caught.value)
    assert most < 600 * max(path.stat().st_size, 100_000)


def test_a_long_line_is_refused_whatever_it_is_compressed_to(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("user\n" + "1" * (1 << 21))
    with refused_at("table.csv"):
        read_columns(path, {"user": np.float64}, "a table")
