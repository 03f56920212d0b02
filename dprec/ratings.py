"""The rating matrix: who rated what, as integer levels of a rating scale, stored by user.

Implicit data are on a scale of one level without a number, `POSITIVE`: who has what, and no rating.

Users and items are contiguous integers inside dprec; the data set's own identifiers are kept with
them and used in every file that is written. Memory is proportional to the number of ratings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import (
    AnyArray,
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    Uint8s,
    Uint64s,
    blocks,
    masked,
    offsets,
    rows_of,
    segments,
    sum_of_parts,
    true_of_rows,
)
from dprec.data_frames import data_frame
from dprec.errors import InputError
from dprec.rating_rows import Duplicates, Identifiers, RatingRows, Reading

if TYPE_CHECKING:
    import pandas as pd
    import scipy.sparse as sp

MAX_LEVELS = 255
"""Levels are stored in one byte, and 0 means "not rated"."""

_CELLS_AT_ONCE = 1 << 18
"""Ratings that are expanded together: bounds the temporary memory for any number of users."""


@dataclass(frozen=True, eq=False)
class RatingScale:
    """The levels a rating can take."""

    values: Floats
    """The numbers the levels stand for, ascending; level ``k`` (from 1) is ``values[k - 1]``;
    shape (levels,). Empty for implicit data, whose one level stands for no number.
    """
    continuous: bool = False
    """Whether ratings may lie between the levels; a device then rounds to the nearest level before it sends
    anything, and accuracy is measured against the unrounded rating.
    """
    cut: float | None = None
    """For signs made from ratings: the rating above which a rating became +1."""

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if not (values.ndim == 1 and values.size != 1 and values.size <= MAX_LEVELS):
            raise InputError("scale", f"{values.size} levels", f"2 to {MAX_LEVELS} levels")
        if not (np.all(np.isfinite(values)) and np.all(np.diff(values) > 0)):
            raise InputError("scale", str(values.tolist()), "finite, ascending values")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @classmethod
    def evenly(cls, low: float, high: float, step: float, *, continuous: bool = False) -> RatingScale:
        """Build the scale low, low + step, ..., high.

        Raises InputError when the step does not divide the range, or the scale would have too many levels.
        """
        if not (step > 0 and high > low):
            raise InputError("scale", f"{low} to {high} by {step}", "low < high and a step above 0")
        steps = (high - low) / step
        if not (steps < MAX_LEVELS and abs(steps - round(steps)) < 1e-9):
            accepted = f"a step that divides the range into fewer than {MAX_LEVELS} parts"
            raise InputError("scale", f"{low} to {high} by {step}", accepted)
        return cls(np.linspace(low, high, round(steps) + 1), continuous)

    @property
    def implicit(self) -> bool:
        """Whether there is no rating, only users who have items."""
        return not self.values.size

    @property
    def levels(self) -> int:
        """Number of levels."""
        return max(1, self.values.size)

    @property
    def low(self) -> float:
        """Smallest rating; raises InputError for implicit data."""
        return self._end(0)

    @property
    def high(self) -> float:
        """Largest rating; raises InputError for implicit data."""
        return self._end(-1)

    def _end(self, place: int) -> float:
        if self.implicit:
            raise InputError("scale", "lists have no scale", "what needs neither low nor high")
        return float(self.values[place])

    def level_of(self, values: ArrayLike) -> Uint8s:
        """Return the nearest level, 1 to `levels`, of each value."""
        midpoints = (self.values[1:] + self.values[:-1]) / 2
        return (np.searchsorted(midpoints, np.asarray(values, dtype=np.float64)) + 1).astype(np.uint8)

    def matched(self, values: Floats) -> tuple[Uint8s, Bools]:
        """Return the nearest level of each value, and whether it can be a rating on this scale.

        Of implicit data, NaN stands for a pair.
        """
        levels = self.level_of(values)
        if self.implicit:
            return levels, np.isnan(values)
        if self.continuous:
            return levels, (values >= self.low) & (values <= self.high)
        apart = self.values[levels - 1]
        apart -= values
        return levels, np.abs(apart, out=apart) < 1e-9

    def accepts(self, values: Floats) -> Bools:
        """Return which values can be ratings on this scale; see `matched`."""
        return self.matched(values)[1]

    def describe(self) -> str:
        """Return the scale in words, for error messages."""
        if self.implicit:
            return "pairs of a user and an item, without a rating"
        if self.continuous:
            return f"a number from {self.low:g} to {self.high:g}"
        if self.levels <= 12:
            return "one of " + ", ".join(f"{value:g}" for value in self.values)
        return f"{self.low:g} to {self.high:g} in {self.levels} levels"


POSITIVE = RatingScale(np.empty(0))
"""The scale of implicit data: a user has an item, or nothing is known of the two."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """A sparse matrix of ratings, by user, items ascending within a user.

    On the scale `POSITIVE` it is the sets of items that users have, and no rating can be read.
    """

    indptr: Ints
    """The ratings of user ``u`` are at ``indptr[u]:indptr[u + 1]``; shape (users + 1,)."""
    items: Int32s
    """Shape (ratings,)."""
    levels: Uint8s
    """Levels of the scale, from 1; shape (ratings,)."""
    scale: RatingScale
    user_ids: AnyArray
    item_ids: AnyArray
    """The data set's own identifiers; shapes (users,) and (items,)."""
    exact: Floats | None = field(default=None)
    times: Floats | None = field(default=None)
    """The unrounded ratings of a continuous scale; when ratings were made, kept only for a split by time;
    shape (ratings,).
    """
    lines: Ints | None = field(default=None)
    """Where each stood in its file, kept with times alone; shape (ratings,)."""
    reading: Reading | None = field(default=None)
    """Where they were read, if that was a table."""

    @classmethod
    def from_rows(
        cls,
        rows: RatingRows,
        scale: RatingScale,
        *,
        duplicates: Duplicates = "error",
        user_ids: AnyArray | None = None,
        item_ids: AnyArray | None = None,
    ) -> Ratings:
        """Build from one row per rating; see `from_triples` for the arguments and errors."""
        rows = replace(rows, users=rows.users.like(user_ids), items=rows.items.like(item_ids))
        rows = rows.collapsed(duplicates)
        levels, on_scale = scale.matched(rows.values)
        off_scale = np.flatnonzero(~on_scale)
        if off_scale.size:
            row = int(off_scale[0 if rows.places is None else np.argmin(rows.places[off_scale])])
            raise rows.error(row, f"rating {rows.values[row]:g}", scale.describe())
        user_ids = rows.users.distinct if user_ids is None else user_ids
        item_ids = rows.items.distinct if item_ids is None else item_ids
        users = rows.users.within(user_ids, f"{rows.source}: user")
        return cls(
            indptr=offsets(np.bincount(users, minlength=user_ids.size)),
            items=rows.items.within(item_ids, f"{rows.source}: item"),
            levels=levels,
            scale=scale,
            user_ids=user_ids,
            item_ids=item_ids,
            exact=rows.values if scale.continuous else None,
            times=rows.times,
            lines=None if rows.times is None else rows.order,
            reading=rows.reading,
        )

    @classmethod
    def from_triples(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        values: ArrayLike,
        scale: RatingScale,
        *,
        duplicates: Duplicates = "error",
        user_ids: AnyArray | None = None,
        item_ids: AnyArray | None = None,
        source: str = "ratings",
    ) -> Ratings:
        """Build from columns with one (user, item, rating) per rating, in any order.

        Parameters
        ----------
        users, items : array_like, shape (ratings,)
            The data set's identifiers, numbers or strings.
        values : array_like of float, shape (ratings,)
        duplicates : {"error", "first", "last", "sum", "mean", "max"}
            What to do if a user rated an item twice: refuse, or keep one row or a figure of all.
        user_ids, item_ids : ndarray, optional
            The identifier spaces, ascending; by default, the identifiers that occur in the rows.
        source : str
            Name of the rows in error messages.

        Raises
        ------
        InputError
            On ratings off the scale, duplicates, or identifiers outside the given spaces.
        """
        rows = RatingRows.of(users, items, values, source)
        return cls.from_rows(rows, scale, duplicates=duplicates, user_ids=user_ids, item_ids=item_ids)

    @classmethod
    def from_pairs(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        *,
        user_ids: AnyArray | None = None,
        item_ids: AnyArray | None = None,
        source: str = "pairs",
    ) -> Ratings:
        """Build implicit data from columns with one (user, item) per row; repeated pairs count once.

        See `from_triples` for the arguments.
        """
        rows = RatingRows.of(users, items, np.full(np.asarray(users).size, np.nan), source)
        return cls.from_rows(rows, POSITIVE, duplicates="last", user_ids=user_ids, item_ids=item_ids)

    def to_sets(self) -> sp.csr_array:
        """Return which items each user has, as a users x items CSR array of ones, whatever the scale."""
        import scipy.sparse as sp

        shape = self.n_users, self.n_items
        return sp.csr_array((np.ones(self.count), self.items, self.indptr), shape=shape)

    def to_sparse(self) -> sp.csr_array:
        """Return the true ratings as a users x items CSR array."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.items, self.indptr), shape=(self.n_users, self.n_items))

    def to_pandas(self) -> pd.DataFrame:
        """Return one row (user, item, rating) per rating, with the data set's identifiers.

        Implicit data have no column of ratings. Raises ModuleNotFoundError when pandas is not installed;
        nothing else in dprec needs it.
        """
        return data_frame(self._columns(), "to_csv or to_sparse")

    def to_csv(self, path: str | Path) -> None:
        """Write one row (user, item, rating) per rating, with a header; implicit data have no rating."""
        import polars as pl

        pl.DataFrame(self._columns()).write_csv(path)

    def to_rows(self, source: str = "ratings") -> RatingRows:
        """Return one row per rating, with the data set's identifiers; of implicit data with NaN."""
        values = np.full(self.count, np.nan) if self.scale.implicit else self.values
        users, items = Identifiers(self.user_ids, self.users), Identifiers(self.item_ids, self.items)
        return RatingRows(users.occurring(), items.occurring(), values, source, unit="row")

    def _columns(self) -> dict[str, AnyArray]:
        pairs = {"user": self.user_ids[self.users], "item": self.item_ids[self.items]}
        return pairs if self.scale.implicit else {**pairs, "rating": self.values}

    @property
    def n_users(self) -> int:
        """Number of users, with or without ratings."""
        return self.user_ids.size

    @property
    def n_items(self) -> int:
        """Number of items, with or without ratings."""
        return self.item_ids.size

    @property
    def count(self) -> int:
        """Number of ratings."""
        return self.items.size

    @property
    def counts(self) -> Ints:
        """Ratings per user, shape (users,)."""
        return np.diff(self.indptr)

    @cached_property
    def users(self) -> Int32s:
        """The user of each rating, shape (ratings,)."""
        return rows_of(self.counts, np.int32)

    @property
    def cells(self) -> Ints:
        """The row-major position of each rating in the matrix, ascending, shape (ratings,)."""
        return self.users.astype(np.int64) * self.n_items + self.items

    @property
    def values(self) -> Floats:
        """The true ratings, shape (ratings,)."""
        return self.values_at(slice(None))

    def values_at(self, cells: slice | AnyInts) -> Floats:
        """Return some of the true ratings, by their places in `items`.

        Raises TypeError for implicit data, which have none.
        """
        if self.scale.implicit:
            raise TypeError("pairs of users and items have no ratings")
        return self.exact[cells] if self.exact is not None else self.scale.values[self.levels[cells] - 1]

    @property
    def mean(self) -> float:
        """Mean rating; the middle of the scale if there are no ratings."""
        if not self.count:
            return (self.scale.low + self.scale.high) / 2
        starts = range(0, self.count, _CELLS_AT_ONCE)
        parts = (self.values_at(slice(start, start + _CELLS_AT_ONCE)) for start in starts)
        return sum_of_parts(parts, self.count) / self.count

    def histogram(self) -> Floats:
        """Return the share of each level, shape (levels,)."""
        return np.bincount(self.levels, minlength=self.scale.levels + 1)[1:] / max(1, self.count)

    def user_sums(self) -> Floats:
        """Return the sum of each user's ratings, shape (users,)."""
        counts, sums = self.counts, np.empty(self.n_users)
        for users in blocks(counts, _CELLS_AT_ONCE):
            values = self.values_at(slice(self.indptr[users.start], self.indptr[users.stop]))
            sums[users] = np.bincount(rows_of(counts[users]), weights=values, minlength=counts[users].size)
        return sums

    def user_means(self, users: AnyInts | None = None) -> Floats:
        """Return the mean rating of some users, by default all; the overall mean for one without ratings."""
        rows = slice(None) if users is None else users
        counts = self.counts[rows]
        means = self.user_sums()[rows] / np.maximum(1, counts)
        return means if counts.all() else np.where(counts > 0, means, self.mean)

    def at_levels(self, levels: Uint8s) -> Self:
        """Return the ratings at other levels, shape (ratings,); at 0, one stays as it is."""
        changed = (levels > 0) & (levels != self.levels)
        levels = np.where(changed, levels, self.levels)
        exact = None if self.exact is None else np.where(changed, self.scale.values[levels - 1], self.exact)
        return replace(self, levels=levels, exact=exact)

    def without(self, reason: str, ratings: int) -> Self:
        """Return the same, of whose reading so many ratings are left out for a reason."""
        return self if self.reading is None else replace(self, reading=self.reading.without(reason, ratings))

    def without_levels(self, where: Bools) -> Self:
        """Return the ratings at level 0, which says nothing of one but that it is rated, in some places."""
        return replace(self, levels=np.where(where, 0, self.levels).astype(np.uint8))

    def beside(self, others: Ratings) -> Self:
        """Return the ratings with those of other cells at level 0; see `without_levels`."""
        cells = np.concatenate([self.cells, others.cells])
        order, absent = np.argsort(cells), np.full(others.count, np.nan)
        return replace(
            self,
            indptr=self.indptr + others.indptr,
            items=np.concatenate([self.items, others.items])[order],
            levels=np.append(self.levels, np.zeros(others.count, dtype=np.uint8))[order],
            exact=None if self.exact is None else np.append(self.exact, absent)[order],
            times=None,
            lines=None,
        )

    def of_users(self, users: AnyInts, user_ids: AnyArray) -> Self:
        """Return the profiles of some users, who may be repeated, under the given identifiers."""
        counts = self.counts[users]
        cells = segments(self.indptr[users], counts)
        return replace(
            self, indptr=offsets(counts), user_ids=user_ids, **self._of_cells(lambda column: column[cells])
        )

    def select(self, keep: Bools) -> Self:
        """Return the ratings where ``keep`` is true, in the same identifier spaces."""
        counts = true_of_rows(keep, self.indptr)
        return replace(self, indptr=offsets(counts), **self._of_cells(lambda column: masked(column, keep)))

    def _of_cells(self, select: Callable[[AnyArray], AnyArray]) -> dict[str, Any]:
        """Return what is known of some cells, by the names of its columns."""
        columns = {name: getattr(self, name) for name in ("items", "levels", "exact", "times", "lines")}
        return {name: None if column is None else select(column) for name, column in columns.items()}


@dataclass(frozen=True, eq=False)
class ColdRatings(Ratings):
    """Test ratings of cold users: they take no part, and what was learned of others meets their profiles."""

    given: Ratings = field(kw_only=True)
    """What their devices hold and predict from, of the same users and items."""


def held_by_tested(train: Ratings, test: Ratings) -> Ratings:
    """Return what the users of test ratings hold: the train ratings, or what is given to cold users."""
    return test.given if isinstance(test, ColdRatings) else train


def least_of_rows(read: Callable[[slice], Uint64s], indptr: Ints, n_chosen: Ints) -> Bools:
    """Return which cells have the least numbers of their row, so many of each, of equal ones the first.

    ``read``: returns the numbers of some cells, which are not held all at once.
    """
    from dprec.kernels.rows import choose_least

    chosen, counts = np.zeros(indptr[-1], dtype=np.bool_), np.diff(indptr)
    line = np.empty(counts.max(initial=0), dtype=np.uint64)
    for rows in blocks(counts, _CELLS_AT_ONCE):
        bounds = indptr[rows.start : rows.stop + 1]
        cells = slice(bounds[0], bounds[-1])
        choose_least(chosen[cells], bounds - bounds[0], read(cells), n_chosen[rows], line)
    return chosen
