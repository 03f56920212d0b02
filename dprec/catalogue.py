"""Public data about the items, such as their years and genres, and about the users, such as their age."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Self

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats, Ints, find
from dprec.errors import InputError, SettingError, listed


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What everybody may know of the items, in the order of a rating matrix's columns.

    Raises ValueError when the shapes do not agree, or a number is not finite.
    """

    numbers: Floats
    """Every column has mean 0 and standard deviation 1 over the items whose number is known, and 0 for the
    others; shape (items, numbers).
    """
    categories: Bools
    """An item may be in several, or in none; shape (items, categories)."""
    number_names: tuple[str, ...]
    category_names: tuple[str, ...]
    """The names of the columns."""

    def __post_init__(self) -> None:
        shapes = self.numbers.shape, self.categories.shape
        names = len(self.number_names), len(self.category_names)
        if shapes != tuple((len(self.numbers), columns) for columns in names):
            raise ValueError(f"a catalogue of shapes {shapes} with {names} names")
        if not np.isfinite(self.numbers).all():
            raise ValueError("a catalogue with a number that is not finite")

    @classmethod
    def of_rows(
        cls,
        wanted: AnyArray,
        item_ids: AnyArray,
        columns: tuple[Floats, Bools],
        names: tuple[Sequence[str], Sequence[str]],
        source: str,
        first_line: int = 1,
    ) -> Self:
        """Return the data of wanted items, in their order, from rows in any order.

        An item without a row has no known number and no category; rows of other items are ignored. Columns
        that say the same of all items carry nothing and are dropped: numbers with one known value, and
        categories of all items or of none.

        ``wanted``, shape (items,), ``item_ids``, shape (rows,): identifiers of the ratings' items, and of the
        rows; ``columns``: numbers, NaN where unknown, shape (rows, numbers), and categories, shape (rows,
        categories); ``names``: of the columns of either; ``source``, ``first_line``: for errors. Raises
        InputError when an item has two rows, or no wanted item has one.
        """
        rows, present = _rows_of(wanted, item_ids, "item", source, first_line)
        numbers, varying = _standardised(np.where(present[:, None], columns[0][rows], np.nan))
        categories = columns[1][rows] & present[:, None]
        differing: Bools = np.any(categories, axis=0) & ~np.all(categories, axis=0)
        kept_names = compress(names[0], varying), compress(names[1], differing)
        return cls(numbers, categories[:, differing], *map(tuple, kept_names))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class UsersTable:
    """What everybody may know of the users, in the order of a rating matrix's rows."""

    columns: Mapping[str, AnyArray]
    """By name, shape (users,) each: numbers as float64, NaN where unknown; or texts, empty where unknown."""
    n_users: int

    @classmethod
    def of_rows(
        cls,
        wanted: AnyArray,
        user_ids: AnyArray,
        columns: Mapping[str, AnyArray],
        source: str,
        first_line: int = 1,
    ) -> Self:
        """Return the data of wanted users, in their order, from rows in any order.

        Of a user without a row nothing is known; rows of other users are ignored. ``columns``, shape (rows,)
        each; the other parameters, and errors, are as for `Catalogue.of_rows`.
        """
        rows, present = _rows_of(wanted, user_ids, "user", source, first_line)
        values = {
            name: np.where(present, column[rows], np.nan if column.dtype.kind == "f" else "")
            for name, column in columns.items()
        }
        return cls(values, wanted.size)

    def column(self, name: str) -> AnyArray:
        """Return a column; raises SettingError, under no key, that says which there are."""
        if name not in self.columns:
            names = listed(list(self.columns), name)
            accepted = f"one of {names}" if self.columns else "data with a users' table"
            raise SettingError("", f"no column {name!r} about users", accepted)
        return self.columns[name]


def _rows_of(ids: AnyArray, row_ids: AnyArray, what: str, source: str, first_line: int) -> tuple[Ints, Bools]:
    """Return the row of each wanted identifier among a file's own (any if it has none), and which have one.

    Raises InputError when an identifier has two rows, or no wanted one has any.
    """
    if ids.dtype.kind != row_ids.dtype.kind:
        ids, row_ids = ids.astype(np.str_), row_ids.astype(np.str_)
    order = np.argsort(row_ids, kind="stable")
    repeated = np.flatnonzero(row_ids[order][1:] == row_ids[order][:-1])
    if repeated.size:
        row = int(np.min(order[repeated + 1]))
        where = f"{source}, line {row + first_line}"
        raise InputError(where, f"{what} {row_ids[row]} a second time", f"each {what} once")
    places, present = find(row_ids[order], ids)
    if not present.any():
        raise InputError(source, f"none of the {what}s of the ratings", f"a line for each {what}")
    return order[places], present


def _standardised(numbers: Floats) -> tuple[Floats, Bools]:
    """Return the columns that vary, standardised over what is known, and which of all columns they are."""
    finite = np.isfinite(numbers)
    # By a power of two, which rounds nothing, so that no square overflows.
    exponents = np.frexp(np.where(finite, np.abs(numbers), 0.0).max(axis=0, initial=0.0))[1]
    numbers = np.ldexp(numbers, -exponents)
    counts = np.maximum(1, finite.sum(axis=0))
    means = np.where(finite, numbers, 0.0).sum(axis=0) / counts
    deviations = np.where(finite, numbers - means, 0.0)
    spreads = np.sqrt((deviations**2).sum(axis=0) / counts)
    # Numbers that differ by rounding alone do not vary.
    varying = spreads > 1e-9 * np.maximum(np.abs(means), np.finfo(float).tiny)
    return deviations[:, varying] / spreads[varying], varying
