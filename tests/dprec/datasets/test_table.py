"""Ratings in any delimited file: columns and the inferred scale.

A user's file with data about items: what is read, and what is refused in one line.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable, RatingColumns, Synthetic
from dprec.datasets.table import ItemColumns
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale
from tests.refusals import refused_at


def load(folder: Path, values: list[str], **settings: Any) -> Ratings:
    path = folder / "mine.csv"
    path.write_text(
        "user,item,rating\n" + "".join(f"1,{item},{value}\n" for item, value in enumerate(values))
    )
    return DelimitedTable(path=str(path), **settings).load()


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        (["1", "2", "5"], {}, [1, 2, 3, 4, 5]),
        (["0.5", "5", "1"], {}, np.arange(0.5, 5.1, 0.5)),
        (["2", "4"], {"low": 1.0, "high": 5.0}, [1, 2, 3, 4, 5]),
        (["2", "4"], {}, [2, 4]),
        (["2", "4"], {"step": 1.0}, [2, 3, 4]),
        (["3"], {"low": 1, "high": 5, "step": 2}, [1, 3, 5]),
        (["0.1", "0.2", "0.3", "0.7"], {}, np.arange(1, 8) / 10),
        (["0", "1", "1.0", "+1", "1e0"], {}, [0, 1]),
    ],
)
def test_scale(values: list[str], settings: dict[str, Any], expected: list[float], tmp_path: Path) -> None:
    if len(set(map(float, values))) < len(values):
        assert load(tmp_path, values, **settings).count == len(values)
    np.testing.assert_allclose(load(tmp_path, values, **settings).scale.values, expected)


def test_continuous_scale(tmp_path: Path) -> None:
    ratings = load(tmp_path, ["-3.21", "7.9", "0.004"], continuous=True, low=-10.0, high=10.0)
    assert ratings.scale.levels == 41
    assert sorted(ratings.values) == [-3.21, 0.004, 7.9]
    assert load(tmp_path, ["0", "0.3", "1"], continuous=True, step=0.25).scale.levels == 5


def test_positions_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("4 x ann\n5 y bob\n")
    columns: dict[str, Any] = {"user_column": 3, "item_column": 2, "rating_column": 1}
    table = DelimitedTable(path=str(path), has_header=False, separator="whitespace", **columns)
    ratings = table.load()
    assert ratings.user_ids.tolist() == ["ann", "bob"]
    assert ratings.item_ids.tolist() == ["x", "y"]
    assert ratings.values.tolist() == [4, 5]


def test_reads_what_ratings_write(tmp_path: Path) -> None:
    made = Synthetic(users=50, items=80, ratings=1500).load()
    made.to_csv(tmp_path / "made.csv")
    read = DelimitedTable(path=str(tmp_path / "made.csv")).load()
    assert read.user_ids.tolist() == made.user_ids.tolist()
    np.testing.assert_array_equal(read.values, made.values)
    np.testing.assert_array_equal(read.item_ids[read.items], made.item_ids[made.items])


def test_the_error_lists_the_first_names_of_a_long_header(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(",".join(f"name{column}" for column in range(1000)) + "\n")
    with pytest.raises(InputError, match=r"no column 'who'; accepted: .* one of name0, .* \.\.\.$") as caught:
        DelimitedTable(path=str(path), user_column="who", item_column=2, rating_column=3).load()
    assert len(caught.value.accepted) <= 240


@pytest.mark.parametrize(
    "header", ["userId,movieId,rating", "User-ID,ISBN,Book-Rating", "u,i,score", "reviewerID,asin,overall"]
)
def test_usual_names_of_columns_are_found(header: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"when,{header}\n17,1,2,3\n18,1,3,4\n")
    ratings = DelimitedTable(path=str(path)).load()
    assert (ratings.user_ids.tolist(), ratings.item_ids.tolist(), ratings.values.tolist()) == (
        [1],
        [2, 3],
        [3, 4],
    )


@pytest.mark.parametrize(
    ("mark", "seems"),
    [(";", "';'"), ("\t", "'tab'"), ("::", "'::'"), ("|", "'|'"), (" ", "'whitespace'"), ("~", None)],
)
@pytest.mark.parametrize("columns", [{}, {"user_column": 1, "item_column": 2, "rating_column": 3}])
def test_the_error_suggests_a_separator(mark: str, seems: str | None, columns: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("user,item,rating\n1,2,3\n1,3,4\n".replace(",", mark))
    with refused_at(f"{path}, line 1") as caught:
        DelimitedTable(path=str(path), separator=",", **columns).load()
    hint = f"; here the separator seems to be {seems}" if seems else ""
    assert caught.value.accepted == f"columns separated by ','{hint}"
    if seems:
        separator = seems.strip("'")
        assert DelimitedTable(path=str(path), separator=separator, **columns).load().count == 2


ROWS = ["7,a,4", "7,b,5", "8,a,1"]


@pytest.mark.parametrize("mark", [",", ";", "\t", "::", "|", " ", "   ", "\t\t", ", "])
@pytest.mark.parametrize("header", ["", "userId,itemId,rating", '"User-ID","ISBN","Book-Rating"'])
@pytest.mark.parametrize("more", ["", ",978300760"])
def test_the_layout_is_found(mark: str, header: str, more: str, tmp_path: Path) -> None:
    if len(mark) > 1 and '"' in header:
        header = header.replace('"', "")
    lines = ([f"{header},timestamp"] if more and header else [header] if header else []) + [
        row + more for row in ROWS
    ]
    path = tmp_path / "mine"
    path.write_text("".join(line.replace(",", mark) + "\n" for line in lines))
    ratings = DelimitedTable(path=str(path)).load()
    assert (ratings.user_ids.tolist(), ratings.item_ids.tolist()) == ([7, 8], ["a", "b"])
    assert ratings.values.tolist() == [4, 5, 1]


@pytest.mark.parametrize(
    ("text", "settings", "values"),
    [
        ("1,2,3\n1,3,4\n", {"user_column": 2, "item_column": 1}, [3, 4]),
        ("1,2,3\n1,3,4\n", {"has_header": False}, [3, 4]),
        ("user,item,rating\n1,2,3\n1,3,4\n", {"has_header": True, "separator": ","}, [3, 4]),
        ("when,1,2,3\nnow,1,3,4\n", {"user_column": 2, "item_column": 3, "rating_column": 4}, [3, 4]),
        ("2007,x,1,3\n2008,y,1,4\n", {"user_column": 3, "item_column": 2, "rating_column": 4}, [3, 4]),
        ('"a;b";"c,d";4\n"e";"f,g";5\n', {}, [4, 5]),
    ],
)
def test_settings_win_over_what_is_found(text: str, settings: Any, values: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text(text)
    table = DelimitedTable(path=str(path), **settings)
    assert sorted(table.load().values) == values


HEADER = "item,title,year,genres"
ITEM_ROWS = ["8,First,1990,Drama|War", "50,Second,,", '900,"Third, a sequel",2000, War |War']


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
    rows = columns(write(path, HEADER, *ITEM_ROWS)).read()
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
    items = columns(write(path, HEADER, *ITEM_ROWS))
    dataset = DelimitedTable(path=str(ratings), items=items)
    catalogue = dataset.catalogue(dataset.load().item_ids)
    assert catalogue is not None
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [0, -1, 1])
    assert catalogue.categories.tolist() == [[False, False], [True, True], [False, True]]
    assert DelimitedTable(path=str(ratings)).catalogue(np.array([8])) is None
    with refused_at("items.numbers"):
        DelimitedTable(path="x", items=ItemColumns(path="y")).catalogue(np.array([8]))


@pytest.mark.parametrize("wrong", ["nan", "inf", "1990s", "1_990"])
def test_what_is_no_number_is_found_on_its_line(path: Path, wrong: str) -> None:
    write(path, HEADER, ITEM_ROWS[0], f"9,Other,{wrong},War")
    assert f"items.csv, line 3: '{wrong}' in year; accepted: a finite number" in refused(path)


def test_an_item_needs_an_identifier(path: Path) -> None:
    assert "line 3: nothing in item" in refused(write(path, HEADER, ITEM_ROWS[0], ",Other,1990,War"))
    assert "no column 'item'; accepted: one of em, genres" in refused(write(path, HEADER[2:], ITEM_ROWS[0]))


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


STARS = np.repeat([1.0, 2, 3, 4, 5], 2000)


def scale(values: Any, **settings: Any) -> RatingScale:
    return RatingColumns(**settings).scale(np.asarray(values, dtype=float), "mine.csv")


@pytest.mark.parametrize(
    ("odd", "found"),
    [
        ([99], "1 of 10,001 ratings (99) widen the scale from 1 to 5 to 1 to 99"),
        ([99] * 9, "9 of 10,009 ratings (99)"),
        ([99] * 5000, "5,000 of 15,000 ratings (99)"),
        ([-1], "1 of 10,001 ratings (-1) widen the scale from 1 to 5 to -1 to 5"),
        ([-1] * 5000, "5,000 of 15,000 ratings (-1)"),
        ([77, 99, 10000], "3 of 10,003 ratings (77, 99, 10000) widen"),
        ([-50, 50], "2 of 10,002 ratings (-50, 50) widen the scale from 1 to 5 to -50 to 50"),
        (np.arange(10, 19), "9 of 10,009 ratings (10, 11, 12, 13, 14 ...)"),
    ],
)
def test_few_ratings_do_not_widen_the_scale(odd: Any, found: str) -> None:
    with refused_at("missing") as caught:
        scale([*STARS, *odd])
    assert caught.value.found.startswith(f"mine.csv: {found}")


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ([*STARS, 99], {"high": 99}),
        ([*STARS, -1, -1], {"low": -1}),
        ([*STARS, *[6] * 3], {}),
        ([*STARS, *[20, 21] * 6], {}),  # 12 of 10,012
        ([-1, 1, 1, -1], {}),
        ([-2, -1, 1, 2], {}),
        ([1, 2, 9], {}),
        ([5] * 9999 + [1], {}),
    ],
)
def test_what_may_be_a_scale_is_one(values: Any, settings: Any) -> None:
    found = scale(values, **settings)
    assert (found.low, found.high) == (min(values), max(values))


@pytest.mark.parametrize(
    ("odd", "fixes"),
    [
        ("99", [{"missing": [99]}, {"missing": 99}, {"high": 99}]),
        ("-1", [{"missing": (-1,)}, {"low": -1}]),
    ],
)
def test_the_fix_that_is_named_works(odd: str, fixes: list[Any], tmp_path: Any) -> None:
    path = tmp_path / "mine.csv"
    lines = [f"{user},{item},{1 + (user + item) % 5}" for user in range(10) for item in range(10)]
    path.write_text("\n".join([*lines[:50], f"99,99,{odd}", *lines[50:], "100,100,3"]) + "\n")
    with pytest.raises(
        InputError, match=rf"accepted: --set 'dataset.missing=\[{odd}\]' if that means not rated, or"
    ) as caught:
        DelimitedTable(path=str(path)).load()
    for fix in fixes:
        assert DelimitedTable(path=str(path), **fix).load().count == 101 + ("missing" not in fix)
    end = "high" if odd == "99" else "low"
    assert f"or --set dataset.{end}={odd} if it is a rating" in caught.value.accepted
    # A rating behind one that is missing is still reported on its own line.
    path.write_text(path.read_text().replace("100,100,3", "100,100,7"))
    with refused_at("mine.csv, line 102"):
        DelimitedTable(path=str(path), missing=[float(odd)], low=1, high=5).load()


SLIDER = np.round(np.linspace(-9.95, 9.9, 398), 2)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({}, "the ends of the scale, such as low=-10, high=10; ratings between"),
        ({"step": 1}, "the ends of the scale, such as low=-10, high=10"),
        ({"continuous": False}, "the ends of the scale, such as continuous=True, low=-10, high=10"),
        ({"low": -10}, "the ends of the scale, such as low=-10, high=10"),
    ],
)
def test_the_hint_for_a_slider_works(settings: Any, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        scale(SLIDER, **settings)
    assert caught.value.accepted.startswith(hint)
    found = scale(
        SLIDER,
        **{**settings, "low": -10, "high": 10, "continuous": None if settings != {"step": 1} else True},
    )
    assert (found.low, found.high, found.continuous) == (-10, 10, True)
    assert found.levels == (21 if "step" in settings else 41)


def test_given_ends_with_even_levels_are_no_slider() -> None:
    assert not scale([2, 4.5], low=1, high=5).continuous
    assert scale([2, 4.5], low=1, high=5).levels == 9
