"""Users who leave, and ratings that are changed, in the course of time."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import Bools, Uint8s
from dprec.datasets import Synthetic
from dprec.datasets.synthetic import Arrivals
from dprec.mechanisms import ThresholdBit
from dprec.schedules import Collection, Held, Increments, Periods, Schedule
from dprec.schedules.periods import DAY
from tests import make

MADE = Synthetic(users=30, items=40, ratings=600, arrivals=Arrivals(days=70, returning=0.8, rated_again=0.4))
RATINGS, AGAIN = MADE.load_timed(), MADE.load_changes()
PERIODS = Periods.of(RATINGS, 7.0, later=AGAIN)
NOTHING = make.nothing_observed(30, 40, RATINGS.scale)
FAMILY = ThresholdBit().family(PrivacyBudget(epsilon=1.0), RATINGS.scale, RATINGS.n_items)


def small(days: list[float], later: list[float]) -> Periods:
    """Return the periods of a user's ratings of items 0, 1, ..., and of the first of them again."""
    first, again = (
        replace(make.rated([np.arange(9) < len(at)], level), times=DAY * np.array(at))
        for at, level in ((days, 2.0), (later, 4.0))
    )
    return Periods.of(first, 7.0, later=again)


def test_ratings_are_known_as_they_were_changed_by_then() -> None:
    periods = small([0, 1, 29], [3, 15])
    levels = [periods.known(period).levels.tolist() for period in range(periods.count)]
    assert levels == [[4, 2, 2], [4, 2, 2], [4, 4, 2], [4, 4, 2], [4, 4, 2]]
    assert PERIODS.known(PERIODS.count - 1).levels.tolist() != RATINGS.levels.tolist()


def test_users_are_there_until_they_have_not_rated_for_some_periods() -> None:
    periods = small([0, 1, 29], [])
    assert [bool(periods.present(period).all()) for period in range(5)] == [True] * 5
    assert [bool(periods.present(period, 2).all()) for period in range(5)] == [True, True, False, False, True]


def went(schedule: Schedule, *, lost: int = 0) -> list[tuple[Bools, Uint8s]]:
    """Return about what devices answer in each collection, and at which levels; the first ones are lost."""
    shown, said = np.zeros(RATINGS.count, dtype=np.bool_), np.zeros(RATINGS.count, dtype=np.uint8)
    asked = []
    for number in range(PERIODS.count - 1):
        held = Held(PERIODS, number, number, shown, said, public_seed=3)
        reported, levels = schedule.reported(held), schedule.as_reported(held).levels
        answered = reported & schedule.answering(held)
        asked.append((answered, np.where(answered, levels, 0)))
        shown = shown | (reported & (number >= lost))
        said = np.where(answered, levels, said)
    return asked


def test_a_changed_rating_is_reported_as_it_was_first() -> None:
    first = np.zeros(RATINGS.count, dtype=np.uint8)
    for number, (reported, levels) in enumerate(went(Increments())):
        assert not (first[reported] > 0).any()
        assert (levels[reported] == PERIODS.known(number).levels[reported]).all()
        first = np.where(reported, levels, first)
    # A report that was lost is repeated, whatever the rating is by then.
    (reported, levels), (_, repeated) = went(Increments(), lost=7)[3:8:4]
    assert (PERIODS.known(7).levels != PERIODS.known(3).levels)[reported].any()
    assert (repeated == levels)[reported].all()


@pytest.mark.parametrize("cap", [None, 8])
def test_a_changed_rating_is_reported_once_more_where_changes_are_told(cap: int | None) -> None:
    schedule = Increments(on_change="update", answers_per_user=cap)
    asked = went(schedule)
    times = np.sum([reported for reported, _ in asked], axis=0)
    assert times.max() == 2
    last = np.zeros(RATINGS.count, dtype=np.uint8)
    for number, (reported, levels) in enumerate(asked):
        again = reported & (last > 0)
        assert (levels[again] != last[again]).all()
        assert (levels[reported] == PERIODS.known(number).levels[reported]).all()
        last = np.where(reported, levels, last)
    told = last > 0
    assert (last == PERIODS.known(PERIODS.count - 2).levels)[told].all()
    if cap is not None:
        assert np.bincount(RATINGS.users[told]).max() == cap


def test_a_rating_that_is_told_twice_loses_twice_epsilon_and_the_others_once() -> None:
    schedule, last, made = Increments(on_change="update"), np.zeros(RATINGS.count, dtype=np.uint8), []
    for number, (reported, levels) in enumerate(went(schedule)):
        again = RATINGS.select(reported & (last > 0)).counts
        last = np.where(reported, levels, last)
        counts = RATINGS.select(reported).counts
        made.append(Collection(number, FAMILY, counts, again, PERIODS.present(number), NOTHING))
    accountant, twice = schedule.accountant(made), np.sum([each.again for each in made], axis=0)
    answers = np.sum([each.counts for each in made], axis=0)
    assert 0 < (twice > 0).sum() < (answers > 0).sum()
    np.testing.assert_allclose(
        accountant.get_epsilon(per="rating")[answers > 0], 1 + (twice > 0)[answers > 0]
    )
    np.testing.assert_allclose(accountant.get_epsilon()[answers > 0], answers[answers > 0])
