"""The distributed files themselves, where this machine has them."""

from typing import Any

import numpy as np
import pytest

from dprec.datasets import (
    DATASETS,
    DelimitedTable,
    Douban,
    MovieLens100K,
    MovieLensGenres,
    MsWeb,
    RestaurantConsumer,
    selected,
)
from tests.paths import DATA


def folder(name: str) -> str:
    if not (DATA / name).is_dir():
        pytest.skip(f"{DATA / name} is absent; set DPREC_DATA to the folder that holds {name}")
    return str(DATA / name)


@pytest.mark.parametrize(
    ("kind", "place", "settings", "sizes"),
    [
        ("movielens-100k", "ml-100k", {}, (943, 1682, 100_000)),
        ("rc", "rc", {}, (138, 130, 1161)),
        ("douban", "douban", {"domain": "book"}, (2110, 6777, 96_041)),
        ("douban", "douban", {"domain": "music"}, (1672, 5567, 69_709)),
        ("msweb", "msweb", {}, (32_711, 285, 98_654)),
    ],
)
def test_sizes(kind: str, place: str, settings: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    ratings = DATASETS[kind](path=folder(place), **settings).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == sizes


def test_movielens_100k() -> None:
    dataset = MovieLens100K(path=folder("ml-100k"), items=True)
    ratings = dataset.load()
    assert np.bincount(ratings.levels)[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
    assert ratings.counts.min() == 20
    users, catalogue = dataset.users_table(ratings.user_ids), dataset.catalogue(ratings.item_ids)
    assert users is not None
    assert catalogue is not None
    assert (users.column("gender") == "F").sum() == 273
    assert users.column("age")[0] == 24
    assert np.unique(users.column("occupation")).size == 21
    assert catalogue.categories.shape == (1682, 18)
    assert catalogue.categories[:, catalogue.category_names.index("genre: Drama")].sum() == 725
    # One film has neither a date nor a year.
    assert np.flatnonzero(catalogue.numbers[:, 0] == 0).tolist() == [266]
    assert dataset.item_names()["1"] == "Toy Story (1995)"


@pytest.mark.parametrize(("fold", "tested"), [("u1", 20_000), ("u5", 20_000), ("ua", 9_430)])
def test_movielens_100k_folds(fold: str, tested: int) -> None:
    train, test = MovieLens100K(path=folder("ml-100k")).load_fold(fold)
    assert (train.count, test.count) == (100_000 - tested, tested)
    assert train.n_users == test.n_users == 943
    assert train.n_items == test.n_items == 1682
    np.testing.assert_array_equal(train.item_ids, test.item_ids)
    unseen = (np.bincount(train.items, minlength=1682) == 0).sum()
    assert fold != "u1" or unseen == 32


def test_identifiers_and_selections() -> None:
    restaurants = RestaurantConsumer(path=folder("rc")).load()
    assert (restaurants.user_ids[0], restaurants.item_ids.dtype) == ("U1001", np.int64)
    active = selected(MsWeb(path=folder("msweb"), min_items=3)).load()
    assert (active.n_users, active.n_items) == (14_283, 285)


def test_two_domains() -> None:
    douban = Douban(path=folder("douban"), source="book", target="music").load()
    assert (douban.n_users, douban.straddlers().sum()) == (2216, 1566)
    assert (douban.count, douban.in_target.sum()) == (96_041 + 69_709, 5567)
    genres = MovieLensGenres(path=folder("ml-100k")).load()
    assert (genres.count, genres.n_items, genres.straddlers().sum()) == (100_000, 1682, 943)


@pytest.mark.parametrize(
    ("kind", "place", "file"),
    [
        ("movielens-100k", "ml-100k", "u.data"),
        ("rc", "rc", "rating_final.csv"),
        ("douban", "douban", "book.dat"),
    ],
)
def test_a_real_file_reads_as_its_own_kind_does(kind: str, place: str, file: str) -> None:
    path = f"{folder(place)}/{file}"
    own, found = DATASETS[kind](path=path).load(), DelimitedTable(path=path).load()
    np.testing.assert_array_equal(found.scale.values, own.scale.values)
    np.testing.assert_array_equal(found.user_ids, own.user_ids)
    np.testing.assert_array_equal(found.items, own.items)
    np.testing.assert_array_equal(found.levels, own.levels)
