from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.datasets import Synthetic
from dprec.datasets.synthetic import Arrivals
from dprec.ratings import Ratings
from dprec.schedules import ByPeriod, Periods
from dprec.schedules.periods import DAY
from tests import make
from tests.refusals import refused_at

USERS, ITEMS = 6, 8


@st.composite
def timed_ratings(draw: st.DrawFn) -> Ratings:
    """Ratings of some users at some times, over at least two weeks."""
    cells = draw(st.sets(st.integers(0, USERS * ITEMS - 1), min_size=2))
    days = [draw(st.integers(0, 60)) for _ in cells]
    days[0], days[-1] = 0, 14
    ratings = make.rated(np.isin(np.arange(USERS * ITEMS), list(cells)).reshape(USERS, ITEMS))
    return replace(ratings, times=1e9 + DAY * np.array(days, dtype=np.float64))


@given(ratings=timed_ratings(), days=st.sampled_from([1.0, 7.0, 6.5]))
def test_every_rating_is_held_from_its_period_on_and_judged_once_at_most(
    ratings: Ratings, days: float
) -> None:
    periods = Periods.of(ratings, days)
    assert ratings.times is not None
    began = ratings.times.min() + periods.number * days * DAY
    assert (began <= ratings.times).all()
    assert (ratings.times < began + days * DAY).all()
    times_judged = np.zeros(ratings.count, dtype=np.int64)
    for period in range(periods.count - 1):
        held, judged = periods.held(period), periods.judged(period)
        assert not (held & judged).any()
        assert (periods.present(period) == (np.bincount(ratings.users[held], minlength=USERS) > 0)).all()
        assert periods.present(period)[ratings.users[judged]].all()
        new = periods.of_new_items(period)
        assert not np.isin(ratings.items[new], ratings.items[held]).any()
        assert np.isin(ratings.items[~new], ratings.items[held]).all()
        times_judged += judged
    assert (times_judged == periods.all_judged).all()
    assert periods.held(periods.count - 1).all()


@given(ratings=timed_ratings(), given_=st.integers(0, 3))
def test_newcomers_are_given_their_first_ratings_and_judged_on_the_others(
    ratings: Ratings, given_: int
) -> None:
    periods = Periods.of(ratings, 7.0)
    assert ratings.times is not None
    for period in range(periods.count - 1):
        first, rest = periods.newcomers(period, given_)
        assert not (first & rest).any()
        whole = first | rest
        new = np.flatnonzero(periods.joined == period + 1)
        for user in new.tolist():
            own = (ratings.users == user) & (periods.number == period + 1)
            if own.sum() <= given_:
                assert not whole[own].any()
                continue
            assert (whole[own]).all()
            assert first[own].sum() == given_
            assert ratings.times[own & first].max(initial=0.0) <= ratings.times[own & rest].min()
        assert np.isin(ratings.users[whole], new).all()


@pytest.mark.parametrize(("days", "times"), [(7.0, [0.0, DAY]), (1.0, [0.0, 1e12 * DAY]), (7.0, [])])
def test_times_that_are_no_seconds_of_several_periods_are_refused(days: float, times: list[float]) -> None:
    ratings = make.ratings(*((user, 0, 1) for user in range(len(times))), users=len(times), items=1)
    with refused_at("days"):
        Periods.of(replace(ratings, times=np.array(times)), days)


def test_the_division_returns_everything_and_what_is_judged() -> None:
    dataset = Synthetic(users=50, items=40, ratings=1_000, arrivals=Arrivals())
    everything, judged = ByPeriod(days=7.0, most=None).split(dataset, 1)
    periods = Periods.of(everything, 7.0)
    assert everything.count == 1_000
    assert (judged.cells == everything.cells[periods.all_judged]).all()
    with refused_at("dataset.arrivals"):
        ByPeriod(days=7.0, most=None).split(Synthetic(users=5, items=4, ratings=10), 1)
    with refused_at("schedule.days"):
        ByPeriod(days=7.0, most=None).split(Once(users=5, items=4, ratings=10), 1)


class Once(Synthetic):
    """Everybody rates in one week alone."""

    def load_timed(self) -> Ratings:
        ratings = self.load()
        return replace(ratings, times=7 * DAY * ratings.users.astype(np.float64))
