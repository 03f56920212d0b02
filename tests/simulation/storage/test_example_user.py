"""The user whose predictions a page shows, and what the items are called there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dprec.datasets import MovieLens100K
from dprec.datasets.movielens import film_titles
from dprec.ratings import Ratings, RatingScale
from simulation.storage.run_files import ExampleUser, read_example, shown_names

HEADER = "user,item,rating,prediction\n"
TITLE = "Fran\u00e7ois (1994)"


def test_the_first_user_with_enough_test_ratings_is_the_example(tmp_path: Path) -> None:
    file = tmp_path / "predictions.csv"
    few = "".join(f"one,{item},3,2.5\n" for item in range(4))
    many = "".join(f"two,i{item},4,3.5\n" for item in range(12))
    file.write_text(HEADER + few + many)
    assert read_example(file) == ExampleUser("two", tuple((f"i{item}", 4.0, 3.5) for item in range(10)))
    file.write_text(HEADER + few)
    assert read_example(file) is None


def test_names_are_kept_of_the_items_that_are_shown() -> None:
    users, items = np.repeat([0, 1], [2, 12]), np.concatenate([np.arange(2), np.arange(12)])
    scale = RatingScale.evenly(1.0, 5.0, 1.0)
    test = Ratings.from_triples(users, items + 100, np.full(14, 3.0), scale, item_ids=np.arange(100, 112))
    names = {str(item): f"Film {item}" for item in range(100, 112) if item != 103}
    ego = {"alter_ego": {"before": [["111", 4.0]], "after": [["unknown", 2.0]]}}
    shown = {*map(str, range(100, 110)), "111"} - {"103"}
    assert shown_names(names, test, ego) == {item: f"Film {item}" for item in shown}
    assert shown_names({}, test, {"alter_ego": None}) == {}


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_titles_are_read_in_either_encoding(tmp_path: Path, encoding: str) -> None:
    flags = "|".join("0" * 19)
    (tmp_path / "u.item").write_bytes(f"7|{TITLE}|01-Jan-1994|||{flags}\n".encode(encoding))
    (tmp_path / "movies.dat").write_bytes(f"7::{TITLE}::Drama\n".encode(encoding))
    assert film_titles(tmp_path / "u.item") == film_titles(tmp_path / "movies.dat") == {7: TITLE}


def test_a_damaged_file_of_films_leaves_items_without_names(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("1\t7\t3\t0\n")
    data = MovieLens100K(path=str(tmp_path))
    assert data.item_names() == {}
    (tmp_path / "u.item").write_text(f"7|{TITLE}|01-Jan-1994|||{'|'.join('0' * 19)}\n")
    assert data.item_names() == {"7": TITLE}
    (tmp_path / "u.item").write_text("not a film\n")
    assert data.item_names() == {}
