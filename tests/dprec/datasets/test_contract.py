"""The contract of data sets, on every registered one, with a small file in each one's layout."""

import math
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.completion import link_of
from dprec.components import kind_of
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
from dprec.datasets.files import FileDataset
from dprec.datasets.published import SetsDataset
from dprec.datasets.synthetic import _apportioned
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
    def dataset(self, request: pytest.FixtureRequest) -> type[Dataset]:
        return DATASETS[request.param]

    def settings(self, dataset: type[Dataset]) -> dict[str, Any]:
        path = {"path": "here"} if issubclass(dataset, FileDataset | SetsDataset) else {}
        return {**path, **REQUIRED.get(kind_of(dataset), {})}


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
    "files",
    [{"base": TRAIN[:-1]}, {"test": TEST[:-1]}, {"base": [*TRAIN[:-1], "3\t2\t1\t0"]}, {"data": TRAIN}],
)
def test_files_cut_between_lines_are_refused(tmp_path: Path, files: dict[str, list[str]]) -> None:
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


@pytest.mark.parametrize("separator", ["\t", "\t\t", ",", ";", "  "])
def test_one_line_per_rating(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "jester_ratings.dat"
    path.write_text("1,5,0.219\n2,7,-9.281\n".replace(",", separator))
    ratings = load(path)
    assert ratings.user_ids.tolist() == [1, 2]
    assert ratings.item_ids.tolist() == [5, 7]
    assert ratings.values.tolist() == [0.219, -9.281]


def test_the_folder_and_the_ladder(tmp_path: Path) -> None:
    write_csv(tmp_path / "jester-data-1.csv", TABLE)
    assert load(tmp_path, step=2.0).scale.levels == 11
    with refused_at("scale"):
        load(tmp_path, step=0.3)


@pytest.mark.parametrize(("suffix", "package"), [(".xlsx", "openpyxl"), (".xls", "xlrd")])
def test_a_spreadsheet_that_is_none_or_cannot_be_read(
    suffix: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"jester{suffix}"
    for content in (b"", b"1,2,3\n", b"PK\x03\x04 torn", b"\xd0\xcf\x11\xe0" + b"\0" * 600):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"jester{suffix}: not a spreadsheet"):
            load(path)
    with pytest.raises(InputError, match="empty sheet"):
        load(WRITERS[suffix](path, []))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"no {package}; accepted: pip install dprec\[spreadsheets\]"):
        load(path)


@pytest.fixture(scope="module")
def default() -> Ratings:
    return Synthetic().load()


def biased_means(train: Ratings, test: Ratings) -> np.ndarray:
    """Predict from damped user and item biases."""
    user, item = np.zeros(train.n_users), np.zeros(train.n_items)
    users_seen = np.bincount(train.users, minlength=train.n_users) + 5
    items_seen = np.bincount(train.items, minlength=train.n_items) + 3
    centred = train.values - train.mean
    for _ in range(10):
        item = np.bincount(train.items, centred - user[train.users], train.n_items) / items_seen
        user = np.bincount(train.users, centred - item[train.items], train.n_users) / users_seen
    return train.mean + user[test.users] + item[test.items]


def rmse(predictions: np.ndarray, test: Ratings) -> float:
    return float(np.sqrt(np.mean((np.clip(predictions, 1, 5) - test.values) ** 2)))


def test_is_valid_and_a_function_of_its_seed(default: Ratings) -> None:
    again = Synthetic().load()
    np.testing.assert_array_equal(again.levels, default.levels)
    np.testing.assert_array_equal(again.items, default.items)
    other = Synthetic(seed=1).load()
    assert not np.array_equal(other.counts, default.counts)
    cells = default.users.astype(np.int64) * default.n_items + default.items
    assert np.all(np.diff(cells) > 0)


def test_activity_and_popularity_are_skewed_as_in_movielens(default: Ratings) -> None:
    assert default.counts.min() == 20
    assert 50 < np.median(default.counts) < 85
    assert 450 < default.counts.max() < 1000
    popularity = np.sort(np.bincount(default.items, minlength=default.n_items))
    assert 18 < np.median(popularity) < 45
    assert 350 < popularity[-1] < 700


def test_biases_and_factors_matter_as_in_movielens(default: Ratings) -> None:
    held_out = np.random.default_rng(0).random(default.count) < 0.2
    train, test = default.select(~held_out), default.select(held_out)
    assert 1.09 < rmse(np.full(test.count, train.mean), test) < 1.15
    assert 0.92 < rmse(biased_means(train, test), test) < 0.965


def test_noise_and_rank_are_felt() -> None:
    def explained(**settings: float) -> float:
        ratings = Synthetic(**settings).load()  # type: ignore[arg-type]
        return rmse(biased_means(ratings, ratings), ratings)

    assert explained(noise=0.0) < explained() < explained(noise=3.0)
    assert explained(rank=50) == pytest.approx(explained(), abs=0.03)


def test_light_and_heavy_users_choose_alike() -> None:
    # 62 of 1,000 items is the last profile that is drawn by repetition, 63 the first by keys.
    light, heavy = (
        np.bincount(Synthetic(users=3000, items=1000, ratings=3000 * size).load().items, minlength=1000)
        / size
        for size in (62, 63)
    )
    assert np.corrcoef(light, heavy)[0, 1] > 0.99
    assert abs(np.sort(light)[-50:].mean() / np.sort(heavy)[-50:].mean() - 1) < 0.02


def test_more_ratings_than_cells() -> None:
    with refused_at("ratings"):
        Synthetic(users=2, items=3, ratings=7).load()
    with refused_at("users"):
        Synthetic(users=0)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30).flatmap(
        lambda weights: st.tuples(st.just(weights), st.integers(1, 50), st.floats(0, 1))
    )
)
def test_apportioned(case: tuple[list[float], int, float]) -> None:
    weights, most, filled = case
    total = int(filled * most * len(weights))
    shares = _apportioned(total, np.array(weights), np.full(len(weights), most))
    assert shares.sum() == total
    assert shares.min() >= 0
    assert shares.max() <= most
    by_weight = shares[np.argsort(weights, kind="stable")]
    assert np.all(np.diff(by_weight) >= -1)


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


def test_the_seed_decides_both() -> None:
    one, same, other = (OneBitSynthetic(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.load().levels, same.load().levels)
    np.testing.assert_array_equal(one.hidden(), same.hidden())
    assert not np.array_equal(one.load().levels, other.load().levels)


def test_what_does_not_fit_is_refused() -> None:
    with refused_at("users"):
        OneBitSynthetic(users=100_000, items=100_000).load()
    with refused_at("alpha"):
        OneBitSynthetic(alpha=0.0)
