"""Ratings by the period in which they were made, and what is learned from and judged in each."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Ints, Uint8s, places_of
from dprec.components import option
from dprec.datasets import Dataset
from dprec.datasets.base import OR_WITHOUT_TIMES
from dprec.errors import InputError, SettingError, within
from dprec.ratings import Ratings
from dprec.splits import Split

DAY = 86_400.0
"""Seconds."""

MOST_PERIODS = 10_000
"""Periods beyond which times are not taken to be in seconds."""


@dataclass(frozen=True, eq=False)
class Changes:
    """Ratings that users give once more."""

    places: Ints
    """Of the first ratings, in `Periods.ratings`; shape (changes,)."""
    number: Ints
    """The periods in which they are changed; shape (changes,)."""
    levels: Uint8s
    """What they become; shape (changes,)."""


@dataclass(frozen=True, eq=False)
class Periods:
    """Ratings with their periods, from 0; a collection after period t holds those of periods up to t.

    After period t, what is judged are the ratings of period t + 1, from t = 0 to `count` - 2.
    """

    ratings: Ratings
    """Of all periods, with times; later ratings are left out."""
    number: Ints
    """The period of each rating; shape (ratings,)."""
    count: int
    """Periods, at least 2."""
    changes: Changes | None = None
    """What is rated once more; None if nothing."""

    @classmethod
    def of(cls, ratings: Ratings, days: float, most: int | None = None, later: Ratings | None = None) -> Self:
        """Divide ratings into periods of so many days, from the first rating on.

        Parameters
        ----------
        ratings : Ratings
            With times, in seconds.
        most : int, optional
            Periods after which nothing counts.
        later : Ratings, optional
            What is rated once more, with times; see `Dataset.load_changes`.

        Raises
        ------
        SettingError
            Under "days" when there are fewer than two periods, or more than `MOST_PERIODS`.
        """
        assert ratings.times is not None, "ratings without times"
        first = ratings.times.min(initial=np.inf)
        elapsed = (ratings.times - first) / (days * DAY)
        count = int(elapsed.max(initial=-1.0)) + 1 if np.isfinite(elapsed).all() else 0
        if not 2 <= count <= MOST_PERIODS:
            found = f"{days:g}, which divides the times of {ratings.count:,} ratings into {count:.6g} periods"
            raise SettingError("days", found, f"2 to {MOST_PERIODS:,} periods, of times in seconds")
        number = elapsed.astype(np.int64)
        if most is not None and count > most:
            ratings, number, count = ratings.select(number < most), number[number < most], most
        if later is None:
            return cls(ratings, number, count)
        assert later.times is not None, "changes without times"
        changed = np.floor((later.times - first) / (days * DAY)).astype(np.int64)
        counted = (changed < count) & np.isin(later.cells, ratings.cells)
        places = np.searchsorted(ratings.cells, later.cells[counted])
        return cls(ratings, number, count, Changes(places, changed[counted], later.levels[counted]))

    @cached_property
    def joined(self) -> Ints:
        """The period of each user's first rating, `count` without any; shape (users,)."""
        return _first_of(self.ratings.users, self.number, self.ratings.n_users, self.count)

    @cached_property
    def appeared(self) -> Ints:
        """The period of each item's first rating, `count` without any; shape (items,)."""
        return _first_of(self.ratings.items, self.number, self.ratings.n_items, self.count)

    @cached_property
    def order(self) -> Ints:
        """Places of the ratings by user and time, ties in stored order; shape (ratings,)."""
        assert self.ratings.times is not None
        return np.lexsort((self.ratings.times, self.ratings.users))

    def held(self, period: int) -> Bools:
        """Return which ratings devices hold after a period, shape (ratings,)."""
        return self.number <= period

    def known(self, period: int) -> Ratings:
        """Return all ratings, those that were changed by the end of a period as they are then."""
        if self.changes is None:
            return self.ratings
        now = self.changes.number <= period
        levels = np.zeros(self.ratings.count, dtype=np.uint8)
        levels[self.changes.places[now]] = self.changes.levels[now]
        return self.ratings.at_levels(levels)

    def present(self, period: int, within: int | None = None) -> Bools:
        """Return which users have rated anything by the end of a period, or in its last few."""
        if within is None:
            return self.joined <= period
        recent = (self.number <= period) & (self.number > period - within)
        return np.bincount(self.ratings.users[recent], minlength=self.ratings.n_users) > 0

    def judged(self, period: int) -> Bools:
        """Return which ratings are judged after a period: those that users present make in the next."""
        return (self.number == period + 1) & self.present(period)[self.ratings.users]

    @property
    def all_judged(self) -> Bools:
        """Which ratings are judged at all, shape (ratings,)."""
        return self.number > self.joined[self.ratings.users]

    def of_new_items(self, period: int) -> Bools:
        """Return which ratings are of items that nobody has rated by the end of a period."""
        return (self.appeared > period)[self.ratings.items]

    def newcomers(self, period: int, given: int) -> tuple[Bools, Bools]:
        """Return what newcomers of the next period rate first, and then: ``given`` each, and all others.

        A newcomer with no more ratings in that period is left out of both.
        """
        ratings = self.ratings
        of_newcomers = (self.number == period + 1) & (self.joined == period + 1)[ratings.users]
        counts = np.bincount(ratings.users[of_newcomers], minlength=ratings.n_users)
        of_newcomers &= (counts > given)[ratings.users]
        first = np.zeros(ratings.count, dtype=np.bool_)
        in_order = self.order[of_newcomers[self.order]]
        places = places_of(np.bincount(ratings.users[in_order], minlength=ratings.n_users))
        first[in_order[places < given]] = True
        return first, of_newcomers & ~first


def _first_of(owners: AnyInts, periods: Ints, size: int, never: int) -> Ints:
    """Return the first period of each of so many owners."""
    first = np.full(size, never, dtype=np.int64)
    np.minimum.at(first, owners, periods)
    return first


@dataclass(frozen=True, kw_only=True)
class ByPeriod(Split):
    """How a schedule divides ratings: all with their times, and those of users present that are judged."""

    kind: str = "by-period"
    days: float = option("Days of a period.", gt=0)
    most: int | None = option("Periods after which nothing counts; none if all do.", ge=2)

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the ratings of all periods, and those that are judged; see `Periods`."""
        with within("dataset"):
            try:
                timed = dataset.load_timed()
            except InputError as error:
                where = error.key if isinstance(error, SettingError) else error.where
                accepted = error.accepted.removesuffix(OR_WITHOUT_TIMES)
                raise type(error)(where, error.found, accepted) from None
        with within("schedule"):
            periods = Periods.of(timed, self.days, self.most)
            judged = periods.all_judged
            if not judged.any():
                found = f"{self.days:g}, after which nobody rates again"
                raise SettingError("days", found, "periods in which users present rate")
        return periods.ratings, periods.ratings.select(judged)
