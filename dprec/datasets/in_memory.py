"""Ratings that a caller holds in memory, as a data set that a configuration can name.

A configuration names them by their digest, as it names others by their file. While anybody in this process
holds them, every `InMemory` with that digest has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self
from weakref import WeakValueDictionary

import numpy as np

from dprec.components import option
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets.base import GIVEN, Dataset, united, without_times
from dprec.datasets.columns import RatingColumns
from dprec.datasets.held import HeldRatings, ratings_from
from dprec.errors import InputError
from dprec.ratings import Duplicates, Ratings, RatingScale


@dataclass(frozen=True, eq=False)
class _Held:
    """All ratings alone, or the train and the test part."""

    parts: tuple[Ratings, ...]


_PRESENT: WeakValueDictionary[str, _Held] = WeakValueDictionary()
"""The ratings in this process by their digest, as long as a data set holds them."""


@dataclass(frozen=True, kw_only=True)
class InMemory(Dataset):
    """Ratings handed over from Python, of which a file holds only the sizes and a digest.

    Made by `of`. One that is read from a file has ratings to load only where the same ones are in memory.
    """

    kind: Literal["in-memory"] = "in-memory"
    users: int = option("Number of users.", ge=0)
    items: int = option("Number of items.", ge=0)
    ratings: int = option("Number of ratings, those of a test part included.", ge=0)
    test_ratings: int = option("Number of ratings of the test part; 0 without one.", 0, ge=0)
    sha256: str = option("SHA-256 of the ratings.")
    scale_given: bool = option("Whether the scale was given, rather than read off the ratings.", False)
    own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_held", _PRESENT.get(self.sha256))

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings and the ratings, for another process."""
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the ratings present in this process."""
        held = state["_held"]
        self.__dict__.update(state, _held=held and _PRESENT.setdefault(state["sha256"], held))

    @classmethod
    def of(
        cls,
        ratings: HeldRatings,
        test: HeldRatings | None = None,
        *,
        duplicates: Duplicates = "error",
        **settings: Any,
    ) -> Self:
        """Return the data set of ratings that are in memory.

        Parameters
        ----------
        ratings : Ratings, DataFrame, sparse matrix or arrays
            As for `dprec.datasets.held.ratings_from`; all ratings, or the train part.
        test : likewise, optional
            The test part.
        duplicates : {"error", "last"}
            What to do if a user rated an item twice: refuse, or keep the last row.
        **settings
            Those of `RatingColumns`: the columns of a frame, and the scale.

        Raises
        ------
        InputError
            When they cannot be used as ratings, or the parts have no user, or a rating, in common.
        """
        columns = RatingColumns(**settings)
        parts = ratings_from(ratings, test, columns, duplicates)
        sha256 = _digest(parts)
        held = _PRESENT.setdefault(sha256, _Held(parts))
        return cls(
            users=parts[0].n_users,
            items=parts[0].n_items,
            ratings=sum(part.count for part in held.parts),
            test_ratings=parts[1].count if len(parts) > 1 else 0,
            sha256=sha256,
            # Ratings come with a scale, which counts for both parts.
            scale_given=not columns.read_off() or any(isinstance(part, Ratings) for part in (ratings, test)),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same object: neither its settings nor its ratings change."""
        return self

    def fold_names(self) -> tuple[str, ...]:
        """Return the one division that is given, if there is a test part."""
        return (GIVEN,) if self.test_ratings else ()

    def read_off(self) -> tuple[str, ...]:
        """Return the settings of the scale that the ratings decided; see `Dataset.read_off`."""
        return () if self.scale_given else ("low", "high", "step")

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings as they are given in Python."""
        return f"dataset=InMemory.of(..., {RatingColumns().written(settings)})"

    def known_scale(self) -> RatingScale | None:
        """Return the ratings' scale, if they are here."""
        return None if self._present is None else self._present.parts[0].scale

    def load(self) -> Ratings:
        """Return all ratings, of both parts."""
        parts = self._parts()
        return without_times(parts[0]) if len(parts) == 1 else united(*parts)

    def load_timed(self) -> Ratings:
        """Return all ratings with their times; see `Dataset.load_timed`."""
        ratings, *test = self._parts()
        return super().load_timed() if test or ratings.times is None else ratings

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the train and the test part."""
        self.check_fold(fold)
        train, test = map(without_times, self._parts())
        return train, test

    @property
    def _present(self) -> _Held | None:
        held: _Held | None = self.__dict__["_held"]
        return held

    def _parts(self) -> tuple[Ratings, ...]:
        if self._present is None:
            raise InputError(
                "dataset",
                f"{self.ratings} ratings of {self.items} items by {self.users} users that were in memory",
                "the same ratings, from Python: run(..., dataset=...)",
            )
        return self._present.parts


def _digest(parts: Sequence[Ratings]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        for held in _contents(part):
            digest.update(held)
    return digest.hexdigest()


def _contents(part: Ratings) -> Iterator[bytes]:
    """Yield everything that ratings hold, each array behind its type and shape."""
    exact = np.zeros(0) if part.exact is None else part.exact
    ends = (part.target_start, part.target_stop) if isinstance(part, CrossDomainRatings) else ()
    times = np.zeros(0) if part.times is None else part.times
    rows = part.indptr, part.items, part.levels, exact, times
    for column in (part.scale.values, part.user_ids, part.item_ids, *rows, np.array(ends)):
        yield f"{column.dtype}{column.shape}".encode()
        yield np.ascontiguousarray(column).tobytes()
