"""MovieLens 100K: the folds divide the ratings, and a file that is cut short is found out.

The files of films that come with the MovieLens data sets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dprec.datasets import Dataset, MovieLens1M, MovieLens20M, MovieLens100K
from dprec.errors import InputError
from tests.paths import DATA

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


def flagged(film: int, title: str, date: str, *genres: int) -> str:
    flags = "|".join(str(int(genre in genres)) for genre in range(19))
    return f"{film}|{title}|{date}||http://example.org|{flags}"


FILMS = {
    # Drama is 8, War 17, "unknown" 0.
    MovieLens100K: (
        "u.item",
        [
            flagged(3, "Caf\xe9 2000 (Il) (1990)", "14-Feb-1997", 8, 17),
            flagged(1, "Untitled", "01-Jan-2000", 17),
            flagged(2, "unknown", "", 0),
        ],
    ),
    MovieLens1M: (
        "movies.dat",
        ["3::Caf\xe9 2000 (Il) (1990)::Drama|War", "1::Other (2000)::War", "2::Untitled::(no genres listed)"],
    ),
    MovieLens20M: (
        "movies.csv",
        [
            "movieId,title,genres",
            '3,"Caf\xe9, 2000 (Il) (1990)",Drama|War',
            "1,Other (2000),War",
            "2,Untitled,(no genres listed)",
        ],
    ),
}


def write_films(folder: Path, kind: type[Dataset]) -> Dataset:
    name, lines = FILMS[kind]  # type: ignore[index]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    (folder / kind.file).touch()  # type: ignore[attr-defined]
    return kind(path=str(folder), items=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", FILMS)
def test_years_and_genres(kind: type[Dataset], tmp_path: Path) -> None:
    catalogue = write_films(tmp_path, kind).catalogue(np.array([1, 2, 3, 4]))
    assert catalogue is not None
    assert (catalogue.number_names, catalogue.category_names) == (("year",), ("genre: Drama", "genre: War"))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [1, 0, -1, 0])
    assert catalogue.categories.tolist() == [[False, True], [False, False], [True, True], [False, False]]


@pytest.mark.parametrize("kind", FILMS)
def test_a_line_that_is_no_film(kind: type[Dataset], tmp_path: Path) -> None:
    dataset = write_films(tmp_path, kind)
    name, lines = FILMS[kind]  # type: ignore[index]
    (tmp_path / name).write_text("\n".join([*lines, "7", ""]), encoding="latin-1")
    with pytest.raises(InputError, match=rf"{name}, line {len(lines) + 1}: '7'; accepted: "):
        dataset.catalogue(np.array([1]))
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"without {name}"):
        dataset.catalogue(np.array([1]))


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    assert MovieLens100K(path=str(tmp_path)).catalogue(np.array([1])) is None


def test_the_distributed_films() -> None:
    if not (DATA / "ml-100k").is_dir():
        pytest.skip(f"{DATA} lacks ml-100k; set DPREC_DATA to the folder that holds it")
    dataset = MovieLens100K(path=str(DATA / "ml-100k"), items=True)
    catalogue = dataset.catalogue(np.arange(1, 1683))
    assert catalogue is not None
    assert catalogue.categories.shape == (1682, 18)
    assert catalogue.categories[:, catalogue.category_names.index("genre: Drama")].sum() == 725
    # One film has neither a date nor a year.
    assert np.flatnonzero(catalogue.numbers[:, 0] == 0).tolist() == [266]
