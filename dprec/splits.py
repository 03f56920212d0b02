"""Division of a data set into the ratings that are learnt from and those that are predicted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.crossdomain.domains import CrossDomainRatings
from dprec.datasets.base import Dataset
from dprec.errors import InputError
from dprec.options import Options, option
from dprec.randomness import generator, words
from dprec.ratings import Ratings
from dprec.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Split(Options):
    """Base of the splits."""

    kind: str

    @abstractmethod
    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the train and test ratings of a data set.

        Parameters
        ----------
        dataset : Dataset
        seed : int
            The seed of the run; the same seed gives the same split.

        Returns
        -------
        tuple of Ratings
            In one space of users and items; every rating is in exactly one of them.

        Raises
        ------
        InputError
            When either would be empty, and as `Dataset.load`.
        """


@dataclass(frozen=True, kw_only=True)
class Predefined(Split):
    """The split that is distributed with the data set."""

    kind: Literal["predefined"] = "predefined"
    fold: str = option("Its name, such as u1 of MovieLens 100K.")

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the fold; the seed has no part in it."""
        return dataset.load_fold(self.fold)


@dataclass(frozen=True, kw_only=True)
class KFold(Split):
    """One of k parts, equal but for one rating, is the test set."""

    kind: Literal["k-fold"] = "k-fold"
    folds: int = option("Number of parts.", 5, ge=2)
    fold: int = option("The part to test on, from 0 to folds - 1.", 0, ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fold >= self.folds:
            raise InputError("fold", str(self.fold), f"0 to {self.folds - 1}, with folds: {self.folds}")

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the other parts and part `fold`; see `Split.split`."""
        ratings = dataset.load()
        order = generator(seed, "split").permutation(ratings.count)
        return _parted(ratings, order[self.fold :: self.folds], self)


@dataclass(frozen=True, kw_only=True)
class Holdout(Split):
    """A random share of all ratings is the test set."""

    kind: Literal["holdout"] = "holdout"
    test_fraction: float = option("Share of the ratings to test on.", 0.2, gt=0, lt=1)

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the other ratings and round(test_fraction * count) of them; see `Split.split`."""
        ratings = dataset.load()
        order = generator(seed, "split").permutation(ratings.count)
        return _parted(ratings, order[: round(self.test_fraction * ratings.count)], self)


@dataclass(frozen=True, kw_only=True)
class LeaveNPerUser(Split):
    """A number of random ratings of each user are the test set, of users who have more than that."""

    kind: Literal["leave-n-per-user"] = "leave-n-per-user"
    count: int = option("Ratings of each user to test on.", 1, ge=1)

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return the other ratings and `count` per user; see `Split.split`."""
        ratings = dataset.load()
        # Ratings are stored by user, so sorting by user and then at random shuffles each profile.
        order = np.lexsort((words(seed, "split", 0, ratings.count), ratings.users))
        place = np.arange(ratings.count) - ratings.indptr[ratings.users]
        chosen = (place < self.count) & (ratings.counts > self.count)[ratings.users]
        return _parted(ratings, order[chosen], self)


@dataclass(frozen=True, kw_only=True)
class ColdStart(Split):
    """A share of the users who rated in both domains lose all of their target ratings: the test set."""

    kind: Literal["cold-start"] = "cold-start"
    test_fraction: float = option("Share of the users with ratings in both domains.", 0.2, gt=0, lt=1)

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        """Return everything else and the target ratings of the chosen users; see `Split.split`."""
        ratings = dataset.load()
        if not isinstance(ratings, CrossDomainRatings):
            raise InputError("split", f"cold-start, and {dataset.kind} has one domain", "two domains")
        straddlers = np.flatnonzero(ratings.straddlers())
        if not straddlers.size:
            found = f"no user rates both in {ratings.source} and in {ratings.target}"
            raise InputError("dataset", found, "domains with users in common")
        cold = generator(seed, "split").permutation(straddlers)
        chosen = cold[: round(self.test_fraction * straddlers.size)]
        if not chosen.size:
            found = (
                f"{self.test_fraction:g} of {straddlers.size} users who rated in both domains, which is none"
            )
            raise InputError("split.test_fraction", found, "a share that is at least one of them")
        tested = np.isin(ratings.users, chosen) & ratings.in_target[ratings.items]
        return _parted(ratings, np.flatnonzero(tested), self)


def _parted(ratings: Ratings, test_rows: NDArray[np.int64], split: Split) -> tuple[Ratings, Ratings]:
    tested = np.zeros(ratings.count, dtype=np.bool_)
    tested[test_rows] = True
    for name, size in (("test", test_rows.size), ("train", ratings.count - test_rows.size)):
        if not size:
            raise InputError(
                "split",
                f"{split.kind} leaves no {name} ratings out of {ratings.count}",
                "at least one rating to learn from and one to test on",
            )
    return ratings.select(~tested), ratings.select(tested)


SPLITS: Registry[Split] = Registry(
    "split",
    [
        Predefined,
        KFold,
        Holdout,
        LeaveNPerUser,
        ColdStart,
    ],
)
