"""A file of one's own with data about items: what is read, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable
from dprec.datasets.table import ItemColumns
from dprec.errors import InputError

HEADER = "item,title,year,genres"
ROWS = ["8,First,1990,Drama|War", "50,Second,,", '900,"Third, a sequel",2000, War |War']


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "items.csv"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def columns(path: Path, **settings: Any) -> ItemColumns:
    return ItemColumns(path=str(path), **{"numbers": ["year"], "categories": ["genres"], **settings})


def refused(path: Path, **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        columns(path, **settings).read()
    return str(caught.value)


def test_numbers_and_categories_are_read(path: Path) -> None:
    rows = columns(write(path, HEADER, *ROWS)).read()
    assert rows.item_ids.tolist() == [8, 50, 900]
    np.testing.assert_array_equal(rows.numbers, [[1990], [np.nan], [2000]])
    assert rows.category_names == ("genres: Drama", "genres: War")
    assert rows.categories.tolist() == [[True, True], [False, False], [False, True]]


def test_columns_by_position_in_any_layout(path: Path) -> None:
    write(path, "a;1.5;x", "b;2.5;y")
    settings = {"item_column": 1, "numbers": [2], "categories": [3], "has_header": False, "separator": ";"}
    rows = columns(path, **settings).read()
    assert rows.item_ids.tolist() == ["a", "b"]
    assert rows.numbers[:, 0].tolist() == [1.5, 2.5]
    assert (rows.number_names, rows.category_names) == (("2",), ("3: x", "3: y"))


def test_a_data_set_with_items(path: Path, tmp_path: Path) -> None:
    ratings = write(tmp_path / "ratings.csv", "user,item,rating", "1,900,5", "1,8,1", "2,7,3")
    items = columns(write(path, HEADER, *ROWS))
    dataset = DelimitedTable(path=str(ratings), items=items)
    catalogue = dataset.catalogue(dataset.load().item_ids)
    assert catalogue is not None
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [0, -1, 1])
    assert catalogue.categories.tolist() == [[False, False], [True, True], [False, True]]
    assert DelimitedTable(path=str(ratings)).catalogue(np.array([8])) is None
    with pytest.raises(InputError, match=r"^items\.numbers: no columns"):
        DelimitedTable(path="x", items=ItemColumns(path="y")).catalogue(np.array([8]))


@pytest.mark.parametrize("wrong", ["nan", "inf", "1990s", "1_990"])
def test_what_is_no_number_is_found_on_its_line(path: Path, wrong: str) -> None:
    write(path, HEADER, ROWS[0], f"9,Other,{wrong},War")
    assert f"items.csv, line 3: '{wrong}' in year; accepted: a finite number" in refused(path)


def test_an_item_needs_an_identifier(path: Path) -> None:
    assert "line 3: nothing in item" in refused(write(path, HEADER, ROWS[0], ",Other,1990,War"))
    assert "no column 'item'; accepted: one of em, genres" in refused(write(path, HEADER[2:], ROWS[0]))


def test_categories_are_not_identifiers(path: Path) -> None:
    write(path, HEADER, *(f"{item},x,1990,{item}" for item in range(501)))
    assert "501 categories in genres; accepted: at most 500" in refused(path)
    write(path, HEADER, *(f"{item},x{item},1990,{item}" for item in range(251)))
    several = refused(path, categories=["title", "genres"])
    assert "502 categories in all columns; accepted: at most 500" in several


def test_an_empty_file(path: Path) -> None:
    assert "nothing below it; accepted: one row per line" in refused(write(path, HEADER))
    assert "no such file" in refused(path.with_name("absent.csv"))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"numbers": ["year", "genres"]}, "numbers: column 'genres' twice"),
        ({"numbers": ["item"]}, "numbers: column 'item' twice"),
        ({"numbers": list(range(1, 256)), "categories": []}, "numbers: 255 columns; accepted: at most 200"),
        ({"has_header": False}, "has_header: false, with column 'item'"),
    ],
)
def test_settings_that_do_not_fit_together(path: Path, settings: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=found):
        columns(path, **settings)
