"""Generated users who join and leave, items that appear, and ratings that are given once more."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.datasets import Synthetic
from dprec.datasets.synthetic import Arrivals, Presence

DAY = 86_400


def moving(**changed: Any) -> Synthetic:
    arrivals = Arrivals(**{"rated_again": 0.1, **changed})
    return Synthetic(users=2000, items=500, ratings=60_000, seed=3, arrivals=arrivals)


@pytest.fixture(scope="module")
def presence() -> Presence:
    return Arrivals().drawn(20_000, 1000, seed=0)


def test_users_join_at_a_constant_rate(presence: Presence) -> None:
    weekly = np.histogram(presence.joined, bins=30, range=(0, 215 * DAY))[0]
    # Each of 60 bounds fails with probability 2e-9 at most.
    assert np.abs(weekly - 20_000 / 30).max() < 6 * np.sqrt(20_000 / 30)


def test_some_users_stay_and_the_others_rate_within_a_day(presence: Presence) -> None:
    early = presence.joined < 15 * DAY
    stays = (presence.left - presence.joined)[early] / DAY
    assert np.mean(stays > 1 + 1e-6) == pytest.approx(0.32, abs=0.07)
    # An exponential stay of mean 72 that ends after 200 to 215 days at the latest.
    assert np.mean(stays[stays > 1 + 1e-6]) == pytest.approx(67, abs=12)
    assert presence.left.max() <= 215 * DAY


def test_a_share_of_the_items_appears_on_the_way(presence: Presence) -> None:
    assert np.count_nonzero(presence.appeared) == 200
    assert (np.diff(presence.appeared) >= 0).all()
    assert (presence.appeared[presence.available - 1] < presence.left).all()


def test_ratings_are_made_while_users_and_items_are_there() -> None:
    made = moving(new_items=0.6)
    assert made.arrivals is not None
    timed, there = made.load_timed(), made.arrivals.drawn(2000, 500, seed=3)
    assert timed.times is not None
    assert (timed.times >= np.floor(there.joined)[timed.users]).all()
    assert (timed.times >= np.floor(there.appeared)[timed.items]).all()
    assert (timed.times <= there.left[timed.users]).all()
    first = np.full(500, np.inf)
    np.minimum.at(first, timed.items, timed.times)
    popular = np.bincount(timed.items, minlength=500) > 50
    late = popular & (there.appeared > 0)
    assert late.sum() > 20
    assert np.corrcoef(first[late], there.appeared[late])[0, 1] > 0.95


def test_times_change_no_rating() -> None:
    made = moving()
    np.testing.assert_array_equal(made.load().levels, made.load_timed().levels)
    assert made.load().times is None


def test_what_is_rated_once_more_is_rated_later_and_alike() -> None:
    made = moving(rated_again=0.3)
    first, again = made.load_timed(), made.load_changes()
    assert again is not None
    assert first.times is not None
    assert again.times is not None
    before = np.flatnonzero(np.isin(first.cells, again.cells))
    assert again.count == before.size
    # 18,000 expected, and 5 standard deviations of a binomial number.
    assert abs(again.count - 0.3 * first.count) < 5 * np.sqrt(0.21 * first.count)
    assert (again.times >= first.times[before]).all()
    np.testing.assert_array_equal(again.user_ids, first.user_ids)
    np.testing.assert_array_equal(again.item_ids, first.item_ids)
    assert np.corrcoef(again.levels, first.levels[before])[0, 1] > 0.3
    np.testing.assert_allclose(again.histogram(), first.histogram(), atol=0.03)


def test_without_noise_nobody_changes_a_rating() -> None:
    made = Synthetic(noise=0.0, arrivals=Arrivals(rated_again=1.0))
    again = made.load_changes()
    assert again is not None
    np.testing.assert_array_equal(again.levels, made.load().levels)
    assert Synthetic().load_changes() is moving(rated_again=0.0).load_changes() is None


@settings(max_examples=60)
@given(st.data())
def test_any_size(data: st.DataObject) -> None:
    users, items = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 300))
    arrivals, seed, most = None, data.draw(st.integers(0, 9)), users * items
    if data.draw(st.booleans()):
        shares = st.floats(0, 1)
        arrivals = Arrivals(
            days=data.draw(st.floats(1e-3, 400)),
            returning=data.draw(shares),
            new_items=0.99 * data.draw(shares),
            rated_again=data.draw(shares),
        )
        most = int(arrivals.drawn(users, items, seed).available.sum())
    count = data.draw(st.integers(1, most))
    made = Synthetic(users=users, items=items, ratings=count, seed=seed, arrivals=arrivals)
    ratings, again = made.load() if arrivals is None else made.load_timed(), made.load_changes()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (users, items, count)
    assert arrivals is not None or ratings.counts.min() >= min(20, count // users)
    assert (np.diff(ratings.cells) > 0).all()
    assert 1 <= ratings.levels.min() <= ratings.levels.max() <= 5
    if arrivals is not None:
        assert ratings.times is not None
        assert (ratings.times >= 0).all()
        assert (ratings.times <= arrivals.days * DAY).all()
    if again is not None:
        assert np.isin(again.cells, ratings.cells).all()
        assert again.levels.size == 0 or 1 <= again.levels.min() <= again.levels.max() <= 5
