"""The data set that is made from a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.completion import link_of
from dprec.datasets import OneBitSynthetic, Synthetic
from dprec.datasets.synthetic import _apportioned
from dprec.errors import InputError
from dprec.ratings import Ratings


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


@settings(max_examples=40)
@given(st.data())
def test_any_size(data: st.DataObject) -> None:
    users, items = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 300))
    count = data.draw(st.integers(1, users * items))
    ratings = Synthetic(users=users, items=items, ratings=count, seed=data.draw(st.integers(0, 9))).load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (users, items, count)
    assert ratings.counts.min() >= min(20, count // users)
    cells = ratings.users.astype(np.int64) * items + ratings.items
    assert np.all(np.diff(cells) > 0)
    assert ratings.levels.min() >= 1
    assert ratings.levels.max() <= 5


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
    with pytest.raises(InputError, match="ratings: 7; accepted: at most users x items = 6"):
        Synthetic(users=2, items=3, ratings=7).load()
    with pytest.raises(InputError, match="users: 0"):
        Synthetic(users=0)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30).flatmap(
        lambda weights: st.tuples(st.just(weights), st.integers(1, 50), st.floats(0, 1))
    )
)
def test_apportioned(case: tuple[list[float], int, float]) -> None:
    weights, most, filled = case
    total = int(filled * most * len(weights))
    shares = _apportioned(total, np.array(weights), most)
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
    with pytest.raises(InputError, match="users: 100000 x 100000 items"):
        OneBitSynthetic(users=100_000, items=100_000).load()
    with pytest.raises(InputError, match="alpha: 0"):
        OneBitSynthetic(alpha=0.0)
