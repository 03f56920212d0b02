"""The distributed files themselves, where this machine has them."""

import numpy as np
import pytest

from dprec.datasets import Douban, MovieLens100K, RestaurantConsumer
from tests.paths import DATA


def folder(name: str) -> str:
    if not (DATA / name).is_dir():
        pytest.skip(f"{DATA / name} is absent; set DPREC_DATA to the folder that holds {name}")
    return str(DATA / name)


def test_movielens_100k() -> None:
    ratings = MovieLens100K(path=folder("ml-100k")).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (943, 1682, 100_000)
    assert np.bincount(ratings.levels)[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
    assert ratings.mean == pytest.approx(3.52986)
    assert ratings.counts.min() == 20


@pytest.mark.parametrize(("fold", "tested"), [("u1", 20_000), ("u5", 20_000), ("ua", 9_430)])
def test_movielens_100k_folds(fold: str, tested: int) -> None:
    train, test = MovieLens100K(path=folder("ml-100k")).load_fold(fold)
    assert (train.count, test.count) == (100_000 - tested, tested)
    assert train.n_users == test.n_users == 943
    assert train.n_items == test.n_items == 1682
    np.testing.assert_array_equal(train.item_ids, test.item_ids)
    unseen = (np.bincount(train.items, minlength=1682) == 0).sum()
    assert fold != "u1" or unseen == 32


def test_restaurant_and_consumer() -> None:
    ratings = RestaurantConsumer(path=folder("rc")).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (138, 130, 1161)
    assert ratings.user_ids[0] == "U1001"
    assert ratings.item_ids.dtype == np.int64


def test_douban() -> None:
    book, music = (Douban(path=folder("douban"), domain=domain).load() for domain in ("book", "music"))
    assert (book.n_users, book.n_items, book.count) == (2110, 6777, 96_041)
    assert (music.n_users, music.n_items, music.count) == (1672, 5567, 69_709)
    assert np.isin(music.user_ids, book.user_ids).any()
