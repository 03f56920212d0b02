"""The reader of delimited text, beyond what every data set's layout asks of it.

Times of ratings: where they stand, how they are written, and the splits by them.
"""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st

from dprec.datasets import DelimitedTable, InMemory, MovieLens100K, Synthetic
from dprec.datasets import delimited as text_blocks
from dprec.datasets.base import Layout, read_fold
from dprec.datasets.delimited import first_cells, read_rows
from dprec.errors import InputError
from dprec.ratings import RatingRows, Ratings, RatingScale
from dprec.splits import Temporal
from tests.refusals import refused_at

STARS = RatingScale.evenly(1, 5, 1)


def read(path: Path, text: str | bytes, layout: Layout = Layout()) -> RatingRows:  # noqa: B008 - frozen
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_rows(path, layout)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.csv"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 64)


def test_identifiers_are_numbers_only_if_nothing_is_lost(path: Path) -> None:
    rows = read(path, "7,007,1\n-3,8,2\n9223372036854775807,9,3\n")
    assert rows.users.dtype == np.int64
    assert rows.users.tolist() == [7, -3, 2**63 - 1]
    assert rows.items.tolist() == ["007", "8", "9"]
    assert read(path, "1,9223372036854775808,1\n").items.tolist() == ["9223372036854775808"]
    assert read(path, "1,1.5,1\n").items.tolist() == ["1.5"]
    assert read(path, "1,1.0,1\n").items.tolist() == [1]  # as pandas writes identifiers beside a missing one


@pytest.mark.usefixtures("small_blocks")
def test_one_word_makes_a_column_of_words_across_blocks(path: Path) -> None:
    rows = read(path, "".join(f"{n},5,1\n" for n in range(100)) + "zoë,5,1\n")
    assert rows.users.tolist() == [*map(str, range(100)), "zoë"]
    assert rows.items.dtype == np.int64


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bad", [1, 2, 50, 100])
def test_lines_are_counted_across_blocks(bad: int, path: Path) -> None:
    lines = [f"{n},5,1" for n in range(1, 101)]
    for wrong, found in {"1,2,x": "'x'", "1,2": "column", "": "empty line", "1,,3": "nothing in"}.items():
        text = "\n".join([*lines[: bad - 1], wrong, *lines[bad - 1 :]])
        with pytest.raises(InputError, match=rf"some.csv, line {bad}: .*{found}"):
            read(path, text)


@pytest.mark.usefixtures("small_blocks")
def test_empty_lines_matter_only_between_ratings(path: Path) -> None:
    lines = "1,1,1\n" + "\n" * 200
    assert read(path, lines).users.size == 1
    with refused_at("some.csv, line 2"):
        read(path, lines[:100] + "2,2,2\n")


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_is_one_endless_line(path: Path) -> None:
    with refused_at("some.csv, line 1"):
        read(path, "1," * 1000)


def test_blanks_around_cells_are_not_part_of_them(path: Path) -> None:
    rows = read(path, 'u , i,r\n a b ,\t7 , 4.5\n"c", 8 ,3\n', Layout(header=True, rating="r"))
    assert rows.users.tolist() == ["a b", "c"]
    assert rows.items.tolist() == [7, 8]
    assert rows.values.tolist() == [4.5, 3]


def test_quoted_cells(path: Path) -> None:
    text = '"user","title","item","rating"\n"1","a, ""b""","x,1","4"\n2,plain,"é",5\n'
    rows = read(path, text, Layout(header=True, user="user", item="item", rating="rating"))
    assert rows.users.tolist() == [1, 2]
    assert rows.items.tolist() == ["x,1", "é"]
    assert rows.values.tolist() == [4, 5]
    assert rows.first_line == 2


@pytest.mark.parametrize("separator", [";", "|", "\t", "::", "<>", "¦"])
def test_separators(separator: str, path: Path) -> None:
    text = "".join(separator.join(row) + "\n" for row in (["1", "2", "3.5"], ["4", "5", "1"]))
    rows = read(path, text, Layout(separator=separator))
    assert rows.users.tolist() == [1, 4]
    assert rows.values.tolist() == [3.5, 1]


def test_whitespace_in_any_amount(path: Path) -> None:
    rows = read(path, "1 2\t3\n  4\t\t5   1  \r\n", Layout(separator="whitespace"))
    assert rows.items.tolist() == [2, 5]
    assert first_cells(path, "whitespace") == ["1", "2", "3"]


@pytest.mark.parametrize("separator", ["", '"', "a", "1", ".", "-", "\n"])
def test_separators_that_occur_in_cells_are_refused(separator: str) -> None:
    with refused_at("separator"):
        Layout(separator=separator)


def test_columns_that_are_not_there(path: Path) -> None:
    with pytest.raises(InputError, match="'user'; accepted: a position"):
        read(path, "1,2,3\n", Layout(user="user"))
    with refused_at("some.csv, line 1"):
        read(path, "a,a,b\n1,2,3\n", Layout(header=True, user="a"))
    with refused_at("some.csv, line 1"):
        read(path, "1,2,3\n", Layout(width=4))


@given(
    rows=st.lists(
        st.tuples(
            st.text(
                st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8
            ).filter(lambda name: name not in ("nan", "NaN")),  # see the test of missing identifiers
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=30,
    )
)
@example(rows=[(",\\", 0, 0.0)])
def test_whatever_csv_writes_is_read_back(
    rows: list[tuple[str, int, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    found = read(tmp_path_factory.mktemp("written") / "rows.csv", file.getvalue())
    assert [str(user) for user in found.users] == [user for user, _, _ in rows]
    assert found.items.tolist() == [item for _, item, _ in rows]
    assert found.values.tolist() == [value for _, _, value in rows]


@given(
    lines=st.lists(st.text('0123456789,,,,"\r\t .-e\0é', max_size=14), max_size=30),
    separator=st.sampled_from([",", ",,", "whitespace"]),
    header=st.booleans(),
    bad_byte=st.booleans(),
)
def test_any_text_is_read_or_refused_alike_in_blocks_of_any_size(
    lines: list[str],
    separator: str,
    header: bool,
    bad_byte: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("any") / "rows.csv"
    path.write_bytes("\n".join(["1,2,3", "4,5,6", *lines]).encode() + b"\xff" * bad_byte)
    outcomes = []
    for block_bytes in (40, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_blocks, "_BLOCK_BYTES", block_bytes)
            try:
                rows = read_rows(path, Layout(separator=separator, header=header))
                outcomes.append([rows.users.tolist(), rows.items.tolist(), rows.values.tolist()])
            except InputError as error:
                outcomes.append(["rows.csv" in error.where])
    assert outcomes[0] == outcomes[1]


def fold(tmp_path: Path, train: str, test: str) -> tuple[RatingRows, RatingRows]:
    return read(tmp_path / "x.base", train), read(tmp_path / "x.test", test)


def test_a_fold_has_one_space_of_identifiers(tmp_path: Path) -> None:
    train, test = read_fold(*fold(tmp_path, "1,10,3\n2,11,4\n", "1,12,5\n3,10,1\n"), STARS, "error")
    for part in (train, test):
        assert part.user_ids.tolist() == [1, 2, 3]
        assert part.item_ids.tolist() == [10, 11, 12]
    assert (train.count, test.count) == (2, 2)


def test_a_fold_with_words_in_one_file_only(tmp_path: Path) -> None:
    train, test = read_fold(*fold(tmp_path, "1,10,3\n", "1,11,5\nx,11,1\n"), STARS, "error")
    assert train.user_ids.tolist() == test.user_ids.tolist() == ["1", "x"]


def test_files_of_different_people_are_no_fold(tmp_path: Path) -> None:
    with refused_at("x.test"):
        read_fold(*fold(tmp_path, "1,10,3\n", "2,10,5\n"), STARS, "error")


def test_a_test_rating_that_was_learnt(tmp_path: Path) -> None:
    with refused_at("x.test, line 2"):
        read_fold(*fold(tmp_path, "1,10,3\n", "1,11,5\n1,10,5\n"), STARS, "error")


@pytest.mark.parametrize("quote", ['""', '\\"'])
def test_quotes_inside_quotes(quote: str, path: Path) -> None:
    rows = read(path, f'"7";"{quote}038{quote}";"4"\n"8";"a";"5"\n', Layout(separator=";"))
    assert rows.items.tolist() == ['"038"', "a"]
    assert rows.values.tolist() == [4, 5]


ROWS = [(1, 10, 5, 3), (1, 11, 4, 1), (1, 12, 3, 2), (2, 10, 2, 9), (2, 11, 1, 8), (2, 13, 5, 7)]
"""User, item, rating and day."""


def written(path: Path, day: str, header: str) -> DelimitedTable:
    lines = [f"{user},{item},{rating},{day.format(when)}" for user, item, rating, when in ROWS]
    path.write_text("\n".join([header, *lines] if header else lines) + "\n")
    return DelimitedTable(path=str(path))


def cells(ratings: Ratings) -> set[tuple[int, int]]:
    return set(
        zip(ratings.user_ids[ratings.users].tolist(), ratings.item_ids[ratings.items].tolist(), strict=True)
    )


@pytest.mark.parametrize(
    "day",
    [
        "{}",
        "{}.5",
        "88125094{}",
        "2005-09-0{}",
        "2005-09-0{} 17:30:00",
        "2005-09-0{}T17:30:00Z",
        '"2005-09-0{}"',
    ],
)
@pytest.mark.parametrize("header", ["", "user,item,rating,timestamp", "u,i,r,Date"])
def test_temporal_splits_of_a_file(day: str, header: str, tmp_path: Path) -> None:
    table = written(tmp_path / "mine.csv", day, header)
    train, test = Temporal(test_fraction=0.5).split(table, seed=1)
    assert cells(test) == {(2, 10), (2, 11), (2, 13)}
    train, test = Temporal(test_fraction=0.3, of="user").split(table, seed=1)
    assert cells(test) == {(1, 10), (2, 10)}
    assert train.times is None
    assert test.times is None
    assert cells(train) | cells(test) == cells(table.load())
    assert table.load().times is None


def test_seconds_since_1970(tmp_path: Path) -> None:
    timed = written(tmp_path / "mine.csv", "1970-01-0{}", "").load_timed()
    assert timed.times is not None
    assert (timed.times / 86400).tolist() == [2, 0, 1, 8, 7, 6]


@pytest.mark.parametrize("of", ["all", "user"])
def test_equal_times_are_in_stored_order(of: Any) -> None:
    held = ([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 3, 4], [7, 7, 7, 7])
    _, test = Temporal(test_fraction=0.5, of=of).split(InMemory.of(held), seed=0)
    assert cells(test) == ({(2, 1), (2, 2)} if of == "all" else {(1, 2), (2, 2)})


@pytest.mark.parametrize(
    "make", [list, lambda days: pd.to_datetime("2005-09-01") + pd.to_timedelta(days, unit="D")]
)
def test_times_in_memory(make: Any) -> None:
    users, items, ratings, days = map(list, zip(*ROWS, strict=True))
    frame = pd.DataFrame({"user": users, "item": items, "rating": ratings, "timestamp": make(days)})
    dataset = InMemory.of(frame)
    _, test = Temporal(test_fraction=0.5).split(dataset, seed=1)
    assert cells(test) == {(2, 10), (2, 11), (2, 13)}
    assert dataset.load().times is None
    assert dataset != InMemory.of(frame.assign(timestamp=make(days[::-1])))
    # A column that merely has the name of one with times does no harm until it is asked for.
    vague = frame.assign(timestamp="yesterday")
    with refused_at("dataset"):
        Temporal().split(InMemory.of(vague), seed=1)
    with pytest.raises(InputError, match="values such as 'yesterday'; accepted: a number, or a date such as"):
        InMemory.of(vague, timestamp_column="timestamp")


def test_movielens_has_times(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("".join("\t".join(map(str, row)) + "\n" for row in ROWS))
    _, test = Temporal(test_fraction=0.5).split(MovieLens100K(path=str(tmp_path)), seed=1)
    assert cells(test) == {(2, 10), (2, 11), (2, 13)}


def test_data_without_times() -> None:
    with refused_at("dataset.arrivals"):
        Temporal().split(Synthetic(), seed=1)
    with refused_at("split"):
        Temporal(test_fraction=0.1).split(InMemory.of(([1, 1], [1, 2], [1, 2], [1, 2])), seed=1)


def test_a_train_and_a_test_file(tmp_path: Path) -> None:
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("1,10,5\n1,11,1\n2,10,3\n")
    test.write_text("user;item;rating\n2;12;4\n")
    table = DelimitedTable(train_path=str(train), test_path=str(test))
    assert table.fold_names() == ("given",)
    parts = table.load_fold("given")
    assert [part.count for part in parts] == [3, 1]
    assert parts[0].scale is parts[1].scale
    assert parts[0].n_items == 3
    np.testing.assert_array_equal(table.load().to_sparse().toarray(), [[5, 1, 0], [3, 0, 4]])
    with pytest.raises(InputError, match="csv, which comes without times"):
        table.load_timed()


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
    with refused_at("wide.csv") as caught:
        DelimitedTable(path="wide.csv").load()
    hint = caught.value.accepted.partition("column per item: ")[2].partition("; ")[0]
    assert ("header=None" in hint) is not header
    separator = written.get("sep", ",")
    exec(hint.replace("FILE", f"'wide.csv', sep={separator!r}"), {"pandas": pd})
    missing = (0,) if written.get("na_rep") == "0" else ()
    ratings = DelimitedTable(path="ratings.csv", missing=missing).load()
    assert ratings.count == len(FRAME)
    assert same(ratings) or not header


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
    with refused_at("reviews.csv, line 2") as caught:
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
    with pytest.raises(InputError, match=r"times in the third column, .*timestamp_column=3, if there are no"):
        DelimitedTable(path=str(path)).load()
    assert DelimitedTable(path=str(path), timestamp_column=3).load().scale.implicit


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
    monkeypatch.setattr("dprec.datasets.delimited._BLOCK_BYTES", 32)
    path = tmp_path / "mine.csv"
    lines = [
        f"{user}{'.0' if item > 4 else ''},{item},{item % 5 + 1}" for item in range(10) for user in (1, 2)
    ]
    path.write_text("\n".join(lines) + "\n")
    assert DelimitedTable(path=str(path)).load().user_ids.tolist() == [1, 2]
    path.write_text("\n".join([*lines, "ann,3,3"]) + "\n")
    assert DelimitedTable(path=str(path)).load().user_ids.tolist() == ["1", "1.0", "2", "2.0", "ann"]
