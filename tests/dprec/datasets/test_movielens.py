"""MovieLens 100K: the folds divide the ratings, and a file that is cut short is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dprec.datasets import MovieLens100K
from dprec.errors import InputError

TRAIN = ["1\t1\t3\t0", "1\t2\t4\t0", "2\t1\t5\t0", "2\t3\t1\t0", "3\t2\t2\t0"]
TEST = ["1\t3\t3\t0", "2\t2\t4\t0"]


def write(folder: Path, **files: list[str]) -> MovieLens100K:
    whole = {"data": [*TEST, *TRAIN], "base": TRAIN, "test": TEST}
    for name, lines in {**whole, **files}.items():
        file = "u.data" if name == "data" else f"u1.{name}"
        (folder / file).write_text("\n".join(lines) + "\n")
    return MovieLens100K(path=str(folder))


def test_a_fold_divides_the_ratings(tmp_path: Path) -> None:
    train, test = write(tmp_path).load_fold("u1")
    assert (train.count, test.count) == (5, 2)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"base": TRAIN[:-1]}, "ratings in u.data alone: 1, such as user 3, item 2: 2"),
        ({"test": TEST[:-1]}, "ratings in u.data alone: 1, such as user 2, item 2: 4"),
        ({"base": [*TRAIN[:-1], "3\t2\t1\t0"]}, "ratings in u.data alone: 1, such as user 3, item 2: 2"),
        ({"data": TRAIN}, "ratings not in u.data: 2, such as user 1, item 3: 3"),
    ],
)
def test_files_cut_between_lines_are_refused(tmp_path: Path, files: dict[str, list[str]], found: str) -> None:
    with pytest.raises(InputError) as caught:
        write(tmp_path, **files).load_fold("u1")
    assert caught.value.where == f"{tmp_path / 'u1'}.base and .test"
    assert caught.value.found == found


def test_the_ratings_are_as_many_as_the_distributor_counts(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    (tmp_path / "u.info").write_text("3 users\n3 items\n7 ratings\n")
    assert dataset.load().count == 7
    write(tmp_path, data=TRAIN)
    with pytest.raises(InputError, match=r"u\.data: 5 ratings; accepted: the 7 that u.info counts"):
        dataset.load()
    # A file of another name is somebody's own selection.
    assert MovieLens100K(path=str(tmp_path / "u1.base")).load().count == 5
