"""Times of ratings: where they stand, how they are written, and the splits by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import DelimitedTable, InMemory, MovieLens100K, Synthetic
from dprec.errors import InputError
from dprec.ratings import Ratings
from dprec.splits import Temporal

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
    with pytest.raises(
        InputError, match="dataset: in-memory, which comes without times; accepted: data with"
    ):
        Temporal().split(InMemory.of(vague), seed=1)
    with pytest.raises(InputError, match="values such as 'yesterday'; accepted: a number, or a date such as"):
        InMemory.of(vague, timestamp_column="timestamp")


def test_movielens_has_times(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("".join("\t".join(map(str, row)) + "\n" for row in ROWS))
    _, test = Temporal(test_fraction=0.5).split(MovieLens100K(path=str(tmp_path)), seed=1)
    assert cells(test) == {(2, 10), (2, 11), (2, 13)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "user,item,rating\n1,2,3\n1,3,4\n",
            r"mine.csv, line 1: .* holds the timestamps .*--set dataset.timestamp_column=",
        ),
        ("1,2,3\n1,3,4\n", r"mine.csv, line 1: no column 4 among 3"),
        (
            "1,2,3,soon\n1,3,4,later\n",
            r"mine.csv, column 4: values such as 'soon'; accepted: a number, or a date",
        ),
    ],
)
def test_a_file_without_times(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Temporal().split(DelimitedTable(path=str(tmp_path / "mine.csv")), seed=1)


def test_data_without_times() -> None:
    with pytest.raises(InputError, match="dataset: synthetic, which comes without times"):
        Temporal().split(Synthetic(), seed=1)
    with pytest.raises(InputError, match="split: temporal leaves no test ratings out of 2"):
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_path": "a"}, "test_path: missing; accepted: train_path and test_path"),
        ({"test_path": "a"}, "train_path: missing"),
        ({"path": "a", "test_path": "b"}, "path: a path beside train_path or test_path"),
    ],
)
def test_paths_that_do_not_go_together(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DelimitedTable(**settings).load()


def test_no_path_at_all() -> None:
    with pytest.raises(InputError, match="path: missing; accepted: the file of ratings, or train_path and"):
        DelimitedTable().load()


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(InputError, match=r"^a{80}\.\.\.: file name too long; accepted: a path"):
        DelimitedTable(path="a" * 5000).load()


def test_a_relative_path_that_is_not_there_is_looked_for_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=rf"absent.csv: no such file or folder, from {tmp_path}; accepted: a file"
    ):
        DelimitedTable(path="absent.csv").load()
