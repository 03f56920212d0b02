"""Division of a data set into ratings to learn from and ratings to predict."""

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import Floats, Ints, Uint64s, sortable
from dprec.components import Options, Registry, option
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets import GIVEN, VALIDATION, Dataset, without_times
from dprec.errors import SettingError, within
from dprec.layout import DIVISION, ROWS, check_returned, division_defect, rows_defect
from dprec.moments import Moment, in_unit_of, is_date, reach_of, seconds_of
from dprec.randomness import generator, permutation, words
from dprec.ratings import ColdRatings, Ratings, least_of_rows


@dataclass(frozen=True, kw_only=True)
class Split(Options):
    """Base of the splits."""

    kind: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have what a user-defined class returns checked, and the class named if it is no division."""
        super().__init_subclass__(**options)
        check_returned(cls, "split", lambda parts, *_, **__: division_defect(parts), DIVISION)

    @abstractmethod
    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Divide the ratings of a data set into train and test.

        Parameters
        ----------
        seed : int
            The seed of the run; the same seed gives the same split.

        Returns
        -------
        tuple of Ratings
            In one space of users and items; no rating is in both of them. Where the test users are cold, the
            test part is `ColdRatings`, whose users are not among those of the train part.

        Raises
        ------
        InputError
            Under "split" when either part would be empty, under "dataset" as for `Dataset.load`.
        """


@dataclass(frozen=True, kw_only=True)
class RandomSplit(Split):
    """Base of the splits that choose the test ratings among all ratings of a data set."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have the rows that a user-defined class chooses checked too."""
        super().__init_subclass__(**options)
        check_returned(
            cls, "test_rows", lambda rows, ratings, *_, **__: rows_defect(rows, ratings.count), ROWS
        )

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the ratings that are not chosen for testing, and those that are; see `Split.split`."""
        with within("dataset"):
            ratings = dataset.load()
        with within("split"):
            return _parted(ratings, self.test_rows(ratings, seed), self.kind)

    @abstractmethod
    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return the positions of the test ratings among all ratings, in any order.

        Parameters
        ----------
        seed : int
            The seed of the run.

        Raises
        ------
        InputError
            When there would be none.
        """


@dataclass(frozen=True, kw_only=True)
class Predefined(Split):
    """The split that is distributed with the data set."""

    kind: Literal["predefined"] = "predefined"
    # Which names there are is told of a number, too.
    fold: Annotated[str, BeforeValidator(lambda name: str(name) if type(name) is int else name)] = option(
        "Its name, such as u1 of MovieLens 100K."
    )

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the fold, for any seed."""
        with within("split"):
            dataset.check_fold(self.fold)
        with within("dataset"):
            return dataset.load_fold(self.fold)


@dataclass(frozen=True, kw_only=True)
class KFold(RandomSplit):
    """One of k parts, equal in size up to one rating, is the test set."""

    kind: Literal["k-fold"] = "k-fold"
    folds: int = option("Number of parts.", 5, ge=2)
    fold: int = option("The part to test on, from 0 to folds - 1.", 0, ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fold >= self.folds:
            raise SettingError("fold", str(self.fold), f"0 to {self.folds - 1}, with folds: {self.folds}")

    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return part `fold`."""
        return permutation(seed, "split", ratings.count)[self.fold :: self.folds].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Holdout(RandomSplit):
    """A random share of all ratings is the test set."""

    kind: Literal["holdout"] = "holdout"
    test_fraction: float = option("Share of the ratings to test on.", 0.2, gt=0, lt=1)

    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return round(test_fraction * count) of all ratings."""
        tested = round(self.test_fraction * ratings.count)
        return permutation(seed, "split", ratings.count)[:tested].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(RandomSplit):
    """The test set is one rating, or a few, of each user who has more."""

    kind: Literal["leave-one-out"] = "leave-one-out"
    by: Literal["time", "random"] = option(
        "Which rating: the last, of data with times; or a random one.", "time"
    )
    ties: Literal["last", "first"] = option(
        "By time, which of those with equal times counts as the latest: the one on the last line of the "
        "file, or on the first, as in code of published systems.",
        "last",
    )
    count: int = option("Ratings of each user to test on.", 1, ge=1)

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the parts, by time the same for any seed; see `Split.split`."""
        if self.by == "random":
            return super().split(dataset, seed)
        timed, ratings = _timed(dataset)
        with within("split"):
            order = self._order(timed)
            return _parted(ratings, _latest(order, ratings, self._wanted(ratings)), self.kind)

    def _order(self, timed: Ratings) -> Floats:
        """Return times, or ranks by which no two ratings of a file are at the same one, shape (ratings,)."""
        times = _times_of(timed)
        if timed.lines is None:
            return times
        lines = timed.lines if self.ties == "last" else -timed.lines
        ranks = np.empty(times.size)
        ranks[np.lexsort((lines, times))] = np.arange(times.size)
        return ranks

    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return `count` random ratings of each user who has more."""
        return _drawn_of_each(ratings, self._wanted(ratings), seed)

    def _wanted(self, ratings: Ratings) -> Ints:
        return np.where(ratings.counts > self.count, self.count, 0)


@dataclass(frozen=True, kw_only=True)
class UserHoldout(RandomSplit):
    """The test set is a share of each user's items, at least one, of users with two or more."""

    kind: Literal["user-holdout"] = "user-holdout"
    test_fraction: float = option("Share of a user's items to test on, rounded.", 0.2, gt=0, lt=1)

    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return a random share of each user's items, and leave one of them at least."""
        counts = ratings.counts
        share = np.rint(self.test_fraction * counts).astype(np.int64)
        return _drawn_of_each(ratings, np.clip(share, 1, np.maximum(counts - 1, 0)), seed)


@dataclass(frozen=True, kw_only=True)
class ColdUsers(Split):
    """The test set is a share of the items of users who take no part (as in Steck [steck2019], section 4).

    Their devices receive what the others taught and predict from the rest of their items.
    """

    kind: Literal["cold-users"] = "cold-users"
    test_users: float = option(
        "Share of the users who take no part, rounded; each has two items or more.", 0.2, gt=0, lt=1
    )
    test_fraction: float = option(
        "Share of such a user's items to test on, rounded, at least one; the others are given to its device.",
        0.2,
        gt=0,
        lt=1,
    )

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return what those who take part have, and the test ratings of the others; see `Split.split`."""
        with within("dataset"):
            ratings = dataset.load()
        able, n_cold = np.flatnonzero(ratings.counts > 1), round(self.test_users * ratings.n_users)
        if not 1 <= n_cold <= min(able.size, int((ratings.counts > 0).sum()) - 1):
            users = f"{ratings.n_users} users, of whom {able.size} have two items or more"
            accepted = "a share that is one of them at least, and leaves others to learn from"
            raise SettingError("split.test_users", f"{self.test_users:g} of {users}", accepted)
        cold = np.zeros(ratings.n_users, dtype=np.bool_)
        cold[generator(seed, "cold users").permutation(able)[:n_cold]] = True
        taking_part, cold_ratings = (
            ratings.of_users(users, ratings.user_ids[users]) for users in map(np.flatnonzero, (~cold, cold))
        )
        with within("split"):
            rows = UserHoldout(test_fraction=self.test_fraction).test_rows(cold_ratings, seed)
            given, test = _parted(cold_ratings, rows, self.kind)
        parts = {column.name: getattr(test, column.name) for column in fields(Ratings)}
        return taking_part, ColdRatings(**parts, given=given)


_SHARE = 0.2
"""Of the ratings that is tested on, where no date divides them."""


@dataclass(frozen=True, kw_only=True)
class Temporal(Split):
    """The test set is the latest share of all ratings, or of each user's; or what was rated from a date on.

    Equal times are in stored order. What was rated between two dates is in neither part. The data need
    times, and the parts are the same for any seed.
    """

    kind: Literal["temporal"] = "temporal"
    test_fraction: float | None = option(
        f"Share of the ratings to test on, rounded; {_SHARE} without a date.", None, gt=0, lt=1
    )
    of: Literal["all", "user"] | None = option(
        "Whose latest ratings: 'all' together, as by default without a date, or each 'user' apart.", None
    )
    before: Moment | None = option(
        "Learn from what was rated before that date, in UTC, or that number in the unit of the data; by "
        "default the same as after.",
        None,
    )
    after: Moment | None = option(
        "Test on what was rated at that time or later; by default the same as before.", None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, default in (("test_fraction", _SHARE), ("of", "all")):
            value = getattr(self, name)
            if self.ends is None and value is None:
                object.__setattr__(self, name, default)
            elif self.ends is not None and value is not None:
                accepted = f"null beside before and after: --set split.{name}=null"
                raise SettingError(name, str(value), accepted)
        for name in ("before", "after"):
            if (moment := getattr(self, name)) is not None:
                with within(name):
                    seconds_of(moment)
        first, last = self.ends or (0.0, 0.0)
        if is_date(first) != is_date(last) or seconds_of(first) > seconds_of(last):
            raise SettingError("after", str(last), f"the same as before, {first}, or later")

    @property
    def ends(self) -> tuple[Moment, Moment] | None:
        """Until when is learned, and from when is tested; None where a share divides the ratings."""
        dates = [moment for moment in (self.before, self.after) if moment is not None]
        return (dates[0], dates[-1]) if dates else None

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the earlier ratings and the latest; see `Split.split`."""
        timed, ratings = _timed(dataset)
        times = _times_of(timed)
        with within("split"):
            if self.ends is None:
                return _parted(ratings, self._latest(times, ratings), self.kind)
            return self._by_date(times, ratings, *self.ends)

    def _by_date(
        self, times: Floats, ratings: Ratings, first: Moment, last: Moment
    ) -> tuple[Ratings, Ratings]:
        learned, tested = times < in_unit_of(times, first), times >= in_unit_of(times, last)
        for name, rows, when in (("train", learned, f"before {first}"), ("test", tested, f"from {last} on")):
            if not rows.any():
                found = f"{self.kind} leaves no {name} ratings: none of {ratings.count} is {when}"
                raise SettingError("", found, f"times within {reach_of(times, first)}")
        divided = ratings.without("between before and after", int((~(learned | tested)).sum()))
        return divided.select(learned), divided.select(tested)

    def _latest(self, times: Floats, ratings: Ratings) -> Ints:
        """Return the positions of the latest share of all ratings, or of each user's."""
        assert self.test_fraction is not None, "a share of what a date divides"
        if self.of == "all":
            order = np.argsort(times, kind="stable")
            return order[ratings.count - round(self.test_fraction * ratings.count) :]
        sizes = np.rint(self.test_fraction * ratings.counts).astype(np.int64)
        return _latest(times, ratings, sizes)


@dataclass(frozen=True, kw_only=True)
class ColdStart(RandomSplit):
    """The test set is all target ratings of a share of the users who rated in both domains."""

    kind: Literal["cold-start"] = "cold-start"
    test_fraction: float = option("Share of the users with ratings in both domains.", 0.2, gt=0, lt=1)

    def test_rows(self, ratings: Ratings, seed: int) -> Ints:
        """Return all target ratings of the chosen users."""
        if not isinstance(ratings, CrossDomainRatings):
            raise SettingError("", "cold-start, but the data set has one domain", "two domains")
        straddlers = np.flatnonzero(ratings.straddlers())
        if not straddlers.size:
            defect = f"cold-start, but no user rates both in {ratings.source} and in {ratings.target}"
            raise SettingError("", defect, "domains with users in common")
        cold = generator(seed, "split").permutation(straddlers)
        chosen = cold[: round(self.test_fraction * straddlers.size)]
        if not chosen.size:
            users = f"{straddlers.size} users who rated in both domains, which is none"
            found = f"{self.test_fraction:g} of {users}"
            raise SettingError("test_fraction", found, "a share that is at least one of them")
        tested = np.isin(ratings.users, chosen) & ratings.in_target[ratings.items]
        return np.flatnonzero(tested)


def fitting_split(dataset: Dataset, split: Split) -> Split:
    """Return a split that was made for another data set, or what takes its place for this one.

    Ratings that come as a train and a test part stay as they are; where the predefined split of other data
    cannot be had, a random share is for testing.
    """
    names = dataset.fold_names()
    if GIVEN in names:
        return Predefined(fold=GIVEN)
    return Holdout() if isinstance(split, Predefined) and split.fold not in names else split


def validation_split(dataset: Dataset, split: Split) -> Predefined | None:
    """Return what tests on the validation part that comes with a train and a test part; None without one."""
    if split != Predefined(fold=GIVEN) or VALIDATION not in dataset.fold_names():
        return None
    return Predefined(fold=VALIDATION)


def _timed(dataset: Dataset) -> tuple[Ratings, Ratings]:
    """Return a data set's ratings with and without times; InputError under "dataset" where it has none."""
    with within("dataset"):
        timed = dataset.load_timed()
    if timed.times is None:
        raise TypeError(f"{type(dataset).__name__}.load_timed returns ratings without times")
    return timed, without_times(timed)


def _times_of(timed: Ratings) -> Floats:
    assert timed.times is not None, "ratings without times"
    return timed.times


def _latest(times: Floats, ratings: Ratings, sizes: Ints) -> Ints:
    """Return the positions of so many of the latest ratings of each user."""
    earlier = least_of_rows(lambda cells: sortable(times[cells]), ratings.indptr, ratings.counts - sizes)
    return np.flatnonzero(~earlier)


def _drawn_of_each(ratings: Ratings, sizes: Ints, seed: int) -> Ints:
    """Return the positions of so many random ratings of each user."""

    def read(cells: slice) -> Uint64s:
        return words(seed, "split", cells.start, cells.stop - cells.start)

    return np.flatnonzero(least_of_rows(read, ratings.indptr, sizes))


def _parted(ratings: Ratings, test_rows: Ints, kind: str) -> tuple[Ratings, Ratings]:
    tested = np.zeros(ratings.count, dtype=np.bool_)
    tested[test_rows] = True
    for name, size in (("test", test_rows.size), ("train", ratings.count - test_rows.size)):
        if not size:
            found = f"{kind} leaves no {name} ratings out of {ratings.count}"
            raise SettingError("", found, "at least one rating to learn from and one to test on")
    return ratings.select(~tested), ratings.select(tested)


_OF_USERS = (LeaveOneOut, UserHoldout, ColdUsers)
SPLITS: Registry[Split] = Registry(
    "split", Split, [Predefined, KFold, Holdout, *_OF_USERS, Temporal, ColdStart]
)
