"""Rows of ratings as they come from a file or a caller, before they become levels in a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprec.arrays import find
from dprec.errors import InputError

Duplicates = Literal["error", "last"]


@dataclass(frozen=True, eq=False)
class RatingRows:
    """One (user, item, rating) row per rating, in any order."""

    users: NDArray[Any]
    items: NDArray[Any]
    """The data set's identifiers, numbers or strings; shape (rows,)."""
    values: NDArray[np.float64]
    """Shape (rows,)."""
    source: str = "ratings"
    """Name of the rows in error messages, usually the file."""
    first_line: int = 1
    """Line number of the first row, for error messages."""
    unit: str = "line"
    """What a row is called in error messages."""
    places: NDArray[np.int64] | None = None
    """Place of each row among all that were read, from 0; by default all of them are here; shape (rows,)."""
    times: NDArray[np.float64] | None = None
    """When the ratings were made; shape (rows,)."""

    @classmethod
    def of(cls, users: ArrayLike, items: ArrayLike, values: ArrayLike, source: str) -> RatingRows:
        """Check columns and put them side by side.

        Raises
        ------
        InputError
            When ratings are not numbers, or the columns have different lengths.
        """
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(source, str(error), "ratings that are numbers") from error
        rows = cls(np.asarray(users), np.asarray(items), numbers, source)
        if not rows.users.shape == rows.items.shape == numbers.shape or numbers.ndim != 1:
            raise InputError(source, "columns of different lengths", "one user, item and rating per row")
        return rows

    def error(self, row: int, found: str, accepted: str) -> InputError:
        """Return the error for a row, with its line in the file."""
        place = row if self.places is None else int(self.places[row])
        return InputError(f"{self.source}, {self.unit} {place + self.first_line}", found, accepted)

    def without(self, missing: Sequence[float]) -> RatingRows:
        """Return the rows whose rating is none of some values, which mean that there is none.

        Raises
        ------
        InputError
            When nothing remains.
        """
        kept = np.flatnonzero(~np.isin(self.values, missing))
        if not kept.size:
            raise InputError(
                self.source, f"no rating but {', '.join(f'{each:g}' for each in missing)}", "others"
            )
        if kept.size == self.values.size:
            return self
        columns = self.users[kept], self.items[kept], self.values[kept]
        times = None if self.times is None else self.times[kept]
        return RatingRows(*columns, self.source, self.first_line, self.unit, places=kept, times=times)

    def placed(
        self, user_ids: NDArray[Any] | None, item_ids: NDArray[Any] | None
    ) -> tuple[tuple[NDArray[Any], NDArray[np.int64]], tuple[NDArray[Any], NDArray[np.int64]]]:
        """Return the identifiers of users and of items, ascending, each with the place of every row in them.

        Parameters
        ----------
        user_ids, item_ids : ndarray or None
            The identifier spaces, ascending; None for the identifiers that occur in the rows.

        Raises
        ------
        InputError
            When identifiers cannot be sorted, or one is not in the given space.
        """
        return (
            _placed(self.users, user_ids, f"{self.source}: user"),
            _placed(self.items, item_ids, f"{self.source}: item"),
        )

    def ordered(self, cells: NDArray[np.int64], duplicates: Duplicates) -> NDArray[np.int64]:
        """Return the positions of the rows in the order of the cells that they rate, one row per cell.

        Parameters
        ----------
        cells : ndarray of int64, shape (rows,)
            Row-major position of each rating in the matrix.
        duplicates : {"error", "last"}
            What to do if a user rated an item twice: refuse, or keep the last row.

        Raises
        ------
        InputError
            When there is a duplicate and duplicates are refused.
        """
        order = np.argsort(cells, kind="stable")
        repeated = np.flatnonzero(np.diff(cells[order]) == 0)
        if not repeated.size:
            return order
        if duplicates == "error":
            row = int(np.min(order[repeated + 1]))
            raise self.error(
                row,
                f"user {self.users[row]} rates item {self.items[row]} a second time",
                "each pair once, or duplicates: last",
            )
        return np.delete(order, repeated)


def _placed(
    identifiers: NDArray[Any], space: NDArray[Any] | None, where: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if space is None:
        try:
            distinct, places = np.unique(identifiers, return_inverse=True)
        except TypeError as error:
            raise InputError(where, "identifiers of different types", "all numbers or all strings") from error
        return distinct, places.astype(np.int64)
    places, known = find(space, identifiers)
    if not known.all():
        stranger = identifiers[int(np.argmin(known))]
        raise InputError(where, f"unknown identifier {stranger}", f"the {space.size} known ones")
    return space, places
