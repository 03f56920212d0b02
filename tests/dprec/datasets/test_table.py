"""Ratings in any table: where they stand, on which scale, and when they were made."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import DelimitedTable, InMemory, MovieLens100K, RatingColumns, Synthetic
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale
from dprec.splits import Temporal
from tests.refusals import refused_at


def scale(values: Any, **settings: Any) -> RatingScale:
    return RatingColumns(**settings).scale(np.asarray(values, dtype=float), "mine.csv")


STARS = np.repeat([1.0, 2, 3, 4, 5], 2000)


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        ([0.5, 5, 1], {}, np.arange(0.5, 5.1, 0.5)),
        ([2, 4], {"low": 1.0, "high": 5.0}, [1, 2, 3, 4, 5]),
        ([2, 4], {}, [2, 4]),
        ([2, 4], {"step": 1.0}, [2, 3, 4]),
        ([3], {"low": 1, "high": 5, "step": 2}, [1, 3, 5]),
        ([0.1, 0.2, 0.3, 0.7], {}, np.arange(1, 8) / 10),
        # What may be a scale is one.
        ([*STARS, 99], {"high": 99}, np.arange(1, 100)),
        ([*STARS, -1, -1], {"low": -1}, np.arange(-1, 6)),
        ([*STARS, *[6] * 3], {}, np.arange(1, 7)),
        ([*STARS, *[0] * 2000], {}, np.arange(6)),
        ([*STARS, *[0] * 20], {"low": 0}, np.arange(6)),
        (np.repeat(np.arange(51), 20), {}, np.arange(51)),
        ([*STARS, *[20, 21] * 6], {}, np.arange(1, 22)),  # 12 of 10,012
        ([-1, 1, 1, -1], {}, [-1, 1]),
        ([-2, -1, 1, 2], {}, [-2, -1, 0, 1, 2]),
        ([5] * 9999 + [1], {}, [1, 5]),
        ([-3.21, 7.9, 0.004], {"continuous": True, "low": -10, "high": 10}, np.arange(-10, 10.1, 0.5)),
        ([0, 0.3, 1], {"continuous": True, "step": 0.25}, np.arange(0, 1.1, 0.25)),
    ],
)
def test_scale(values: Any, settings: dict[str, Any], expected: Any) -> None:
    found = scale(values, **settings)
    np.testing.assert_allclose(found.values, expected)
    assert found.continuous == ("continuous" in settings)


@pytest.mark.parametrize(
    ("odd", "found"),
    [
        ([99] * 5000, "5,000 of 15,000 ratings (99)"),
        ([-1], "1 of 10,001 ratings (-1) widen the scale from 1 to 5 to -1 to 5"),
        ([0] * 100, "100 of 10,100 ratings (0) widen the scale from 1 to 5 to 0 to 5"),
        ([-50, 50], "2 of 10,002 ratings (-50, 50) widen the scale from 1 to 5 to -50 to 50"),
        (np.arange(10, 19), "9 of 10,009 ratings (10, 11, 12, 13, 14 ...)"),
    ],
)
def test_few_ratings_do_not_widen_the_scale(odd: Any, found: str) -> None:
    with refused_at("missing") as caught:
        scale([*STARS, *odd])
    assert caught.value.found.startswith(f"mine.csv: {found}")


def test_the_fix_that_is_named_works(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    lines = [f"{user},{item},{1 + (user + item) % 5}" for user in range(10) for item in range(10)]
    path.write_text("\n".join([*lines[:50], "99,99,99", *lines[50:], "100,100,3"]) + "\n")
    with refused_at("mine.csv") as caught:
        DelimitedTable(path=str(path)).load()
    assert "dataset.missing=[99]' if that means not rated, or" in caught.value.accepted
    assert "or --set dataset.high=99 if it is a rating" in caught.value.accepted
    for fix in ({"missing": [99]}, {"missing": 99}, {"high": 99}):
        assert DelimitedTable(path=str(path), **fix).load().count == 101 + ("missing" not in fix)
    # A rating behind one that is missing is still reported on its own line.
    path.write_text(path.read_text().replace("100,100,3", "100,100,7"))
    with refused_at("mine.csv, line 102"):
        DelimitedTable(path=str(path), missing=[99.0], low=1, high=5).load()


def loaded(path: Path, text: str, **settings: Any) -> Ratings:
    path.write_text(text)
    return DelimitedTable(path=str(path), **settings).load()


@pytest.mark.parametrize("mark", [",", ";", "\t", "::", "|", " ", "   ", "\t\t", ", "])
@pytest.mark.parametrize("header", ["", "userId,itemId,rating", '"User-ID","ISBN","Book-Rating"'])
@pytest.mark.parametrize("more", ["", ",978300760"])
def test_the_layout_is_found(mark: str, header: str, more: str, tmp_path: Path) -> None:
    header = header.replace('"', "") if len(mark) > 1 else header
    names = [header + (",timestamp" if more else "")] if header else []
    lines = [*names, *(row + more for row in ("7,a,4", "7,b,5", "8,a,1"))]
    ratings = loaded(tmp_path / "mine", "".join(line.replace(",", mark) + "\n" for line in lines))
    assert ratings.user_ids.tolist() == [7, 8]
    assert ratings.item_ids.tolist() == ["a", "b"]
    assert ratings.values.tolist() == [4, 5, 1]


@pytest.mark.parametrize(
    ("text", "settings", "values"),
    [
        *(
            (f"when,{header}\n17,1,2,3\n18,1,3,4\n", {}, [3, 4])
            for header in ("userId,movieId,rating", "User-ID,ISBN,Book-Rating", "u,i,score")
        ),
        ("reviewerID,asin,overall\n1,2,3\n1,3,4\n", {}, [3, 4]),
        ("1,2,3\n1,3,4\n", {"user_column": 2, "item_column": 1}, [3, 4]),
        ("1,2,3\n1,3,4\n", {"has_header": False}, [3, 4]),
        ("user,item,rating\n1,2,3\n1,3,4\n", {"has_header": True, "separator": ","}, [3, 4]),
        ("when,1,2,3\nnow,1,3,4\n", {"user_column": 2, "item_column": 3, "rating_column": 4}, [3, 4]),
        ("2007,x,1,3\n2008,y,1,4\n", {"user_column": 3, "item_column": 2, "rating_column": 4}, [3, 4]),
        ("4 x ann\n5 y bob\n", {"user_column": 3, "item_column": 2, "rating_column": 1}, [4, 5]),
        ('"a;b";"c,d";4\n"e";"f,g";5\n', {}, [4, 5]),
        ("1,1,200000000\n1,2,400000000\n", {"low": 1e8, "high": 5e8, "step": 1e8}, [2e8, 4e8]),
        (" 1,2,+3 \n1,3,4e0\n1,4,3.0\n", {}, [3, 3, 4]),
    ],
)
def test_settings_win_over_what_is_found(text: str, settings: Any, values: Any, tmp_path: Path) -> None:
    assert sorted(loaded(tmp_path / "mine", text, **settings).values) == values


def test_reads_what_ratings_write(tmp_path: Path) -> None:
    made = Synthetic(users=50, items=80, ratings=1500).load()
    made.to_csv(tmp_path / "made.csv")
    read = DelimitedTable(path=str(tmp_path / "made.csv")).load()
    assert read.user_ids.tolist() == made.user_ids.tolist()
    np.testing.assert_array_equal(read.values, made.values)
    np.testing.assert_array_equal(read.item_ids[read.items], made.item_ids[made.items])


RANDOM = np.random.default_rng(0)
CELLS = RANDOM.choice(30 * 15, 200, replace=False)
FRAME = pd.DataFrame(
    {"user": CELLS // 15 + 100, "item": CELLS % 15 + 1, "rating": RANDOM.integers(1, 6, CELLS.size)}
)


def same(ratings: Ratings) -> bool:
    columns = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items], ratings.values
    return {*zip(*columns, strict=True)} == {*FRAME.itertuples(index=False, name=None)}


TIMES = 1_300_000_000 + np.arange(len(FRAME)) * 86_400


@pytest.mark.parametrize("times", [TIMES, TIMES * 1000, pd.to_datetime(TIMES, unit="s")])
def test_times_in_the_third_column_are_told_from_ratings(times: Any, tmp_path: Path) -> None:
    path = tmp_path / "timed.csv"
    frame = FRAME.assign(time=times)[["user", "item", "time", "rating"]]
    frame.to_csv(path, index=False, header=False)
    with refused_at("timed.csv") as caught:
        DelimitedTable(path=str(path)).load()
    assert caught.value.accepted == "--set dataset.rating_column=4 --set dataset.timestamp_column=3"
    read = DelimitedTable(path=str(path), rating_column=4, timestamp_column=3)
    assert same(read.load())
    timed = read.load_timed().times
    assert timed is not None
    assert np.unique(timed).size == len(FRAME)


ROWS = [(1, 10, 5, 3), (1, 11, 4, 1), (1, 12, 3, 2), (2, 10, 2, 9), (2, 11, 1, 8), (2, 13, 5, 7)]
"""User, item, rating and day."""

LATER_HALF = {(2, 10), (2, 11), (2, 13)}


def cells(ratings: Ratings) -> set[tuple[int, int]]:
    users, items = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    return set(zip(users.tolist(), items.tolist(), strict=True))


@pytest.mark.parametrize("header", ["", "u,i,r,Date\n"])
@pytest.mark.parametrize(
    "day",
    ["{}", "88125094{}", "1970-01-0{}", "2005-09-0{} 17:30:00", '"2005-09-0{}"'],
)
def test_temporal_splits_of_a_file(day: str, header: str, tmp_path: Path) -> None:
    lines = [f"{user},{item},{rating},{day.format(when)}\n" for user, item, rating, when in ROWS]
    (tmp_path / "mine.csv").write_text(header + "".join(lines))
    table = DelimitedTable(path=str(tmp_path / "mine.csv"))
    assert cells(Temporal(test_fraction=0.5).split(table, seed=1)[1]) == LATER_HALF
    train, test = Temporal(test_fraction=0.3, of="user").split(table, seed=1)
    assert cells(test) == {(1, 10), (2, 10)}
    assert cells(train) | cells(test) == cells(table.load())
    assert train.times is test.times is table.load().times is None
    if "1970" in day:
        timed = table.load_timed().times
        assert timed is not None
        assert (timed / 86400).tolist() == [2, 0, 1, 8, 7, 6]


@pytest.mark.parametrize(
    "make", [list, lambda days: pd.to_datetime("2005-09-01") + pd.to_timedelta(days, unit="D")]
)
def test_times_in_memory(make: Any) -> None:
    users, items, ratings, days = map(list, zip(*ROWS, strict=True))
    frame = pd.DataFrame({"user": users, "item": items, "rating": ratings, "timestamp": make(days)})
    dataset = InMemory.of(frame)
    assert cells(Temporal(test_fraction=0.5).split(dataset, seed=1)[1]) == LATER_HALF
    assert dataset.load().times is None
    assert dataset != InMemory.of(frame.assign(timestamp=make(days[::-1])))
    # A column that merely has the name of one with times does no harm until it is asked for.
    vague = frame.assign(timestamp="yesterday")
    with refused_at("dataset"):
        Temporal().split(InMemory.of(vague), seed=1)
    with pytest.raises(InputError, match="values such as 'yesterday'; accepted: numbers, or dates such as"):
        InMemory.of(vague, timestamp_column="timestamp")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_the_only_column_of_dates_holds_times_whatever_its_name(suffix: str, tmp_path: Path) -> None:
    path, days = tmp_path / f"shop.{suffix}", pd.to_datetime(TIMES, unit="s")
    pairs = FRAME.assign(purchased_at=days)[["purchased_at", "user", "item"]]
    write = {
        "csv": lambda frame: frame.to_csv(path, index=False),
        "parquet": lambda frame: frame.to_parquet(path),
        "jsonl": lambda frame: frame.astype(str).to_json(path, orient="records", lines=True),
    }[suffix]
    write(pairs)
    read = DelimitedTable(path=str(path))
    assert read.holds_sets
    timed = read.load_timed()
    assert timed.times is not None
    assert sorted(timed.times) == TIMES.tolist()
    assert timed.reading is not None
    assert timed.reading.times == "purchased_at"
    write(FRAME.assign(purchased_at=days))
    assert same(DelimitedTable(path=str(path)).load_timed())
    # Of two, neither is chosen, nor is one that holds something else.
    write(FRAME.assign(purchased_at=days, returned_at=days))
    with pytest.raises(InputError, match="no column of times"):
        DelimitedTable(path=str(path)).load_timed()
    write(FRAME.assign(item=days.astype(str)))
    episodes = DelimitedTable(path=str(path)).load()
    assert episodes.item_ids[0] == str(days[0])
    assert sorted(episodes.values) == sorted(FRAME["rating"])


def test_data_with_and_without_times(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("".join("\t".join(map(str, row)) + "\n" for row in ROWS))
    own = MovieLens100K(path=str(tmp_path))
    assert cells(Temporal(test_fraction=0.5).split(own, seed=1)[1]) == LATER_HALF
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


TRAIN, TEST, JUDGING = (
    "user,item,rating\na,x,5\na,y,1\nb,x,3\n",
    "user,item,rating\nb,z,4\n",
    "b;w;2\na;z;3\n",
)


def written(folder: Path, **parts: str) -> Path:
    """Write the parts of a folder, under their names."""
    folder.mkdir(exist_ok=True)
    for name, text in parts.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_parts_are_named_or_found_in_a_folder(tmp_path: Path) -> None:
    folder = written(tmp_path / "parts", train=TRAIN, test=TEST, validation=JUDGING)
    paths = {f"{part}_path": str(folder / f"{part}.csv") for part in ("train", "test", "validation")}
    for table in (DelimitedTable(path=str(folder)), DelimitedTable(**paths)):
        assert table.fold_names() == ("given", "validation")
        train, test = table.load_fold("given")
        again, judging = table.load_fold("validation")
        assert cells(train) == cells(again) == {("a", "x"), ("a", "y"), ("b", "x")}
        assert (cells(test), cells(judging)) == ({("b", "z")}, {("b", "w"), ("a", "z")})
        for part in (train, test, judging):
            assert part.user_ids.tolist() == ["a", "b"]
            assert part.item_ids.tolist() == ["w", "x", "y", "z"]
        assert cells(table.load()) == cells(train) | cells(test) | cells(judging)
    assert DelimitedTable(train_path="t", test_path="s").fold_names() == ("given",)


def test_a_folder_needs_both_parts(tmp_path: Path) -> None:
    table = DelimitedTable(path=str(written(tmp_path / "parts", train=TRAIN, validation=JUDGING)))
    assert table.fold_names() == ()
    with refused_at("parts"):
        table.load()
    written(tmp_path / "parts", test=TEST)
    assert table.fold_names() == ("given", "validation")


@pytest.mark.parametrize(
    ("validation", "where"),
    [
        ("a,x,5\nb,w,1\n", "validation.csv, line 1"),
        ("user,item,rating\nb,w,5\nb,z,4\n", "validation.csv, line 3"),
        ("c,w,5\nd,w,1\n", "validation.csv"),
    ],
)
def test_a_validation_part_shares_users_and_no_rating(validation: str, where: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "parts", train=TRAIN, test=TEST, validation=validation)
    with refused_at(where):
        DelimitedTable(path=str(folder)).load_fold("given")


def test_a_folder_names_users_and_items_without_ratings(tmp_path: Path) -> None:
    folder = written(tmp_path / "parts", train=TRAIN, test=TEST, unrated="user,item\nc,q\nc,r\n")
    train, test = DelimitedTable(path=str(folder)).load_fold("given")
    assert train.user_ids.tolist() == test.user_ids.tolist() == ["a", "b", "c"]
    assert train.item_ids.tolist() == ["q", "r", "x", "y", "z"]
    assert (train.count, test.count) == (3, 1)
