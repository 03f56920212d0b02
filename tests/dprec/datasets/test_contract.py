"""The contract of data sets, on every registered one, with a small file in each one's layout."""

import math
import struct
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from dprec.completion import link_of
from dprec.datasets import (
    DATASETS,
    Dataset,
    Jester,
    MovieLens1M,
    MovieLens20M,
    MovieLens100K,
    OneBitSynthetic,
    Synthetic,
)
from dprec.datasets.published import LightGCN, SetsDataset
from dprec.datasets.table import DelimitedTable, FileDataset
from dprec.errors import InputError
from dprec.ratings import Ratings
from dprec.testing import DatasetContract
from tests.refusals import refused_at

REQUIRED: dict[str, dict[str, Any]] = {
    "csv-domains": {"target_path": "there"},
    "in-memory": {"users": 3, "items": 3, "ratings": 5, "sha256": "0" * 64},
}


class TestEveryDataset(DatasetContract):
    @pytest.fixture(params=DATASETS.kinds)
    def dataset(self, request: pytest.FixtureRequest) -> Dataset:
        kind = DATASETS[request.param]
        path = {"path": "here"} if issubclass(kind, FileDataset | SetsDataset) else {}
        return kind(**path, **REQUIRED.get(request.param, {}))

    @pytest.fixture
    def loaded(self, dataset: Dataset) -> Ratings:
        if dataset.kind == "in-memory" or any(each.name.endswith("path") for each in fields(dataset)):
            pytest.skip("its data are not here; TestWithFiles has some")
        return dataset.load()


class TestWithFiles(DatasetContract):
    @pytest.fixture(params=["movielens-100k", "csv", "lightgcn"])
    def dataset(self, request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
        if request.param == "movielens-100k":
            return write(tmp_path)
        if request.param == "csv":
            write(tmp_path)
            return DelimitedTable(path=str(tmp_path / "u1.base"))
        (tmp_path / "train.txt").write_text("0 1 2\n1 0 2\n")
        (tmp_path / "test.txt").write_text("0 0\n1 1\n")
        return LightGCN(path=str(tmp_path))


TRAIN = ["1\t1\t3\t0", "1\t2\t4\t0", "2\t1\t5\t0", "2\t3\t1\t0", "3\t2\t2\t0"]
TEST = ["1\t3\t3\t0", "2\t2\t4\t0"]


def write(folder: Path, **files: list[str]) -> MovieLens100K:
    whole = {"data": [*TEST, *TRAIN], "base": TRAIN, "test": TEST}
    for name, lines in {**whole, **files}.items():
        file = "u.data" if name == "data" else f"u1.{name}"
        (folder / file).write_text("\n".join(lines) + "\n")
    return MovieLens100K(path=str(folder))


@pytest.mark.parametrize(
    "files",
    [{"base": TRAIN[:-1]}, {"test": TEST[:-1]}, {"base": [*TRAIN[:-1], "3\t2\t1\t0"]}, {"data": TRAIN}],
)
def test_a_fold_divides_the_ratings_and_files_cut_between_lines_are_refused(
    tmp_path: Path, files: dict[str, list[str]]
) -> None:
    train, test = write(tmp_path).load_fold("u1")
    assert (train.count, test.count) == (5, 2)
    with refused_at("u1.base and .test"):
        write(tmp_path, **files).load_fold("u1")


def test_the_ratings_are_as_many_as_the_distributor_counts(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    (tmp_path / "u.info").write_text("3 users\n3 items\n7 ratings\n")
    assert dataset.load().count == 7
    write(tmp_path, data=TRAIN)
    with refused_at("u.data"):
        dataset.load()
    # A file of another name is somebody's own selection.
    assert MovieLens100K(path=str(tmp_path / "u1.base")).load().count == 5


def flagged(film: str, *genres: int) -> str:
    return f"{film}||http://example.org|" + "|".join(str(int(genre in genres)) for genre in range(19))


FILMS: dict[type[Any], tuple[str, list[str]]] = {
    # Drama is 8, War 17, "unknown" 0.
    MovieLens100K: (
        "u.item",
        [
            flagged("3|Caf\xe9 2000 (Il) (1990)|14-Feb-1997", 8, 17),
            flagged("1|Untitled|01-Jan-2000", 17),
            flagged("2|unknown|", 0),
        ],
    ),
    MovieLens1M: (
        "movies.dat",
        ["3::Caf\xe9 2000 (Il) (1990)::Drama|War", "1::Other (2000)::War", "2::Untitled::(no genres listed)"],
    ),
    MovieLens20M: (
        "movies.csv",
        [
            *("movieId,title,genres", '3,"Caf\xe9, 2000 (Il) (1990)",Drama|War'),
            *("1,Other (2000),War", "2,Untitled,(no genres listed)"),
        ],
    ),
}


def write_films(folder: Path, kind: type[Any]) -> Dataset:
    name, lines = FILMS[kind]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    (folder / kind.file).touch()
    return kind(path=str(folder), items=True)  # type: ignore[no-any-return]


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
    name, lines = FILMS[kind]
    (tmp_path / name).write_text("\n".join([*lines, "7", ""]), encoding="latin-1")
    with pytest.raises(InputError, match=rf"{name}, line {len(lines) + 1}: '7'; accepted: "):
        dataset.catalogue(np.array([1]))
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"without {name}"):
        dataset.catalogue(np.array([1]))


TABLE = [[2, -7.82, 99, 10], [0, 99, 99, 99], [1, 99, 0.004, 99]]


def write_csv(path: Path, table: list[list[Any]]) -> Path:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in table))
    return path


def write_xlsx(path: Path, table: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in table:
        book.active.append(row)
    book.save(path)
    return path


def write_xls(path: Path, table: list[list[Any]]) -> Path:
    """Write a BIFF2 worksheet: a beginning, one record per cell, an end."""
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
    path = tmp_path / f"jester{suffix}"
    ratings = load(WRITERS[suffix](path, TABLE))
    assert ratings.user_ids.tolist() == ratings.item_ids.tolist() == [1, 2, 3]
    assert ratings.counts.tolist() == [2, 0, 1]
    assert ratings.values.tolist() == [-7.82, 10, 0.004]
    assert ratings.scale.continuous
    for row, found in (
        ([1, 99, 11, 99], "rating 11 of joke 2"),
        ([1, 99, "bad", 99], "'bad'"),
        ([1, 99], ""),
    ):
        with refused_at(f"jester{suffix}, line 2") as caught:
            load(WRITERS[suffix](path, [TABLE[0], row, TABLE[2]]))
        assert caught.value.found.startswith(found)


@pytest.mark.parametrize(("suffix", "package"), [(".xlsx", "openpyxl"), (".xls", "xlrd")])
def test_a_spreadsheet_that_is_none_or_cannot_be_read(
    suffix: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"jester{suffix}"
    for content in (b"1,2,3\n", b"PK\x03\x04 torn", b"\xd0\xcf\x11\xe0" + b"\0" * 600):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"jester{suffix}: not a spreadsheet"):
            load(path)
    with pytest.raises(InputError, match="empty sheet"):
        load(WRITERS[suffix](path, []))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"no {package}; accepted: pip install dprec\[spreadsheets\]"):
        load(path)


def test_ratings_are_a_function_of_the_seed_and_as_skewed_as_in_movielens() -> None:
    default, again, other = Synthetic().load(), Synthetic().load(), Synthetic(seed=1).load()
    np.testing.assert_array_equal(again.levels, default.levels)
    np.testing.assert_array_equal(again.items, default.items)
    assert not np.array_equal(other.counts, default.counts)
    assert default.counts.min() == 20
    assert 50 < np.median(default.counts) < 85
    assert 450 < default.counts.max() < 1000
    popularity = np.sort(np.bincount(default.items, minlength=default.n_items))
    assert 18 < np.median(popularity) < 45
    assert 350 < popularity[-1] < 700


@pytest.mark.parametrize("rank", [1, 3])
def test_the_hidden_matrix_is_the_papers(rank: int) -> None:
    matrix = OneBitSynthetic(users=50, items=40, rank=rank, alpha=2.5).hidden()
    assert matrix.shape == (50, 40)
    assert np.linalg.matrix_rank(matrix) == rank
    assert np.abs(matrix).max() == pytest.approx(2.5)


@pytest.mark.parametrize("link", ["logistic", "gaussian"])
def test_signs_follow_the_link(link: str) -> None:
    # The sum of n signs is off its mean by more than t with probability below 2 e^(-t^2 / (2 n)).
    dataset = OneBitSynthetic(users=300, items=300, alpha=3, link=link)  # type: ignore[arg-type]
    ratings, matrix = dataset.load(), dataset.hidden()
    signs = ratings.to_sparse().toarray()
    assert ratings.count == 90_000
    assert set(ratings.values.tolist()) == {-1.0, 1.0}
    expected = link_of(link, 1.0).expected_sign(matrix)  # type: ignore[arg-type]
    for low, high in ((-3, -1), (-1, -0.1), (-0.1, 0.1), (0.1, 1), (1, 3)):
        cells = (matrix >= low) & (matrix <= high)
        miss = math.sqrt(2 * cells.sum() * math.log(2 * 10 / 1e-6))
        assert abs((signs - expected)[cells].sum()) < miss
