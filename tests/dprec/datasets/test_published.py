"""Jester's two layouts, in text and in spreadsheets."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path
from typing import Any

import pytest

from dprec.datasets import Jester
from dprec.errors import InputError
from dprec.ratings import Ratings

TABLE = [[2, -7.82, 99, 10], [0, 99, 99, 99], [1, 99, 0.004, 99]]


def write_csv(path: Path, table: list[list[Any]]) -> Path:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in table))
    return path


def write_xlsx(path: Path, table: list[list[Any]]) -> Path:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in table:
        book.active.append(row)
    book.save(path)
    return path


def write_xls(path: Path, table: list[list[Any]]) -> Path:
    """Write a BIFF2 worksheet: a beginning, one record per cell, an end."""
    pytest.importorskip("xlrd")
    records = [struct.pack("<HHHH", 0x0009, 4, 2, 0x0010)]
    for row, cells in enumerate(table):
        for column, cell in enumerate(cells):
            place = struct.pack("<HH3x", row, column)
            if isinstance(cell, str):
                body, kind = place + bytes([len(cell)]) + cell.encode(), 0x0004
            else:
                body, kind = place + struct.pack("<d", cell), 0x0003
            records.append(struct.pack("<HH", kind, len(body)) + body)
    path.write_bytes(b"".join(records) + struct.pack("<HH", 0x000A, 0))
    return path


WRITERS = {".csv": write_csv, ".xlsx": write_xlsx, ".xls": write_xls}


def load(path: Path, **settings: Any) -> Ratings:
    return Jester(path=str(path), **settings).load()


@pytest.mark.parametrize("suffix", WRITERS)
def test_one_row_per_user(suffix: str, tmp_path: Path) -> None:
    ratings = load(WRITERS[suffix](tmp_path / f"jester{suffix}", TABLE))
    assert ratings.user_ids.tolist() == [1, 2, 3]
    assert ratings.item_ids.tolist() == [1, 2, 3]
    assert ratings.counts.tolist() == [2, 0, 1]
    assert ratings.values.tolist() == [-7.82, 10, 0.004]
    assert ratings.scale.continuous
    assert ratings.scale.levels == 41


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize(
    ("cell", "found"), [(11, "rating 11 of joke 2"), ("bad", "'bad'"), ("", "column"), (-99, "rating -99")]
)
def test_a_bad_cell_in_a_row_per_user(suffix: str, cell: Any, found: str, tmp_path: Path) -> None:
    table = [TABLE[0], [1, 99, cell, 99], TABLE[2]]
    path = WRITERS[suffix](tmp_path / f"jester{suffix}", table)
    with pytest.raises(InputError, match=rf"jester{suffix}, line 2: ") as caught:
        load(path)
    assert found in str(caught.value) or suffix != ".csv"


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_row_that_is_too_short(suffix: str, tmp_path: Path) -> None:
    path = WRITERS[suffix](tmp_path / f"jester{suffix}", [TABLE[0], [1, 99], TABLE[2]])
    with pytest.raises(InputError, match=rf"jester{suffix}, line 2: .*accepted: 4 "):
        load(path)


@pytest.mark.parametrize("separator", ["\t", "\t\t", ",", ";", "  "])
def test_one_line_per_rating(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "jester_ratings.dat"
    path.write_text(
        "".join(separator.join(row) + "\n" for row in (["1", "5", "0.219"], ["2", "7", "-9.281"]))
    )
    ratings = load(path)
    assert ratings.user_ids.tolist() == [1, 2]
    assert ratings.item_ids.tolist() == [5, 7]
    assert ratings.values.tolist() == [0.219, -9.281]


def test_the_folder_and_the_ladder(tmp_path: Path) -> None:
    write_csv(tmp_path / "jester-data-1.csv", TABLE)
    assert load(tmp_path, step=2.0).scale.levels == 11
    with pytest.raises(InputError, match=r"scale: -10 to 10 by 0\.3"):
        load(tmp_path, step=0.3)


@pytest.mark.parametrize("suffix", [".xlsx", ".xls"])
def test_a_spreadsheet_that_is_none(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip({".xlsx": "openpyxl", ".xls": "xlrd"}[suffix])
    path = tmp_path / f"jester{suffix}"
    for content in (b"", b"1,2,3\n", b"PK\x03\x04 torn", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"jester{suffix}: not a spreadsheet"):
            load(path)
    with pytest.raises(InputError, match="empty sheet"):
        load(WRITERS[suffix](path, []))


@pytest.mark.parametrize(("suffix", "package"), [(".xlsx", "openpyxl"), (".xls", "xlrd")])
def test_the_error_names_the_package_of_a_missing_reader(
    suffix: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    path = tmp_path / f"jester{suffix}"
    path.write_bytes(b"whatever")
    with pytest.raises(InputError, match=f"jester{suffix}: .*accepted: pip install {package}"):
        load(path)
