"""Ratings as rows, before they are a matrix: identifiers by code, what was read where, and repeated pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Int32s, Ints, find
from dprec.errors import InputError

if TYPE_CHECKING:
    import polars as pl

Duplicates = Literal["error", "first", "last", "sum", "mean", "max"]
"""What becomes of the ratings of a user who rates an item more than once."""


def _as_texts(texts: pl.Series) -> AnyArray:
    return np.asarray(texts.to_list(), dtype=np.str_)


_MANY = 100_000
"""Texts from which on Polars finds those that differ sooner than NumPy sorts them."""


@dataclass(frozen=True)
class Reading:
    """What was read as ratings: the columns of a source, and how many rows of it were left out, and why."""

    source: str
    users: str
    items: str
    ratings: str | None = None
    """None where there are pairs without ratings."""
    times: str | None = None
    """None where no column of times was found."""
    left_out: tuple[tuple[str, int], ...] = ()
    """Reasons, and how many rows or pairs each has cost."""

    def without(self, reason: str, rows: int) -> Reading:
        """Return the same with so many rows left out for a reason."""
        return replace(self, left_out=(*self.left_out, (reason, rows))) if rows else self

    @classmethod
    def joined(cls, readings: Iterable[Reading | None]) -> Reading | None:
        """Return what was read in several tables, with the columns of the first; None where nothing was.

        The parts of one table share one reading, which counts once.
        """
        distinct = list({id(reading): reading for reading in readings if reading is not None}.values())
        if not distinct:
            return None
        left_out = Counter[str]()
        for reason, number in (reason_count for reading in distinct for reason_count in reading.left_out):
            left_out[reason] += number
        sources = dict.fromkeys(reading.source for reading in distinct)
        return replace(distinct[0], source=", ".join(sources), left_out=tuple(left_out.items()))


@dataclass(frozen=True, eq=False)
class Identifiers:
    """A column of identifiers: those that occur, and which of them each row has."""

    distinct: AnyArray
    """Integers or texts, ascending, each once; shape (identifiers,)."""
    places: Int32s
    """The place of each row's identifier among them; shape (rows,)."""

    @classmethod
    def of(cls, values: ArrayLike | Identifiers, where: str = "identifiers") -> Identifiers:
        """Return a column of identifiers, each by its place among all that occur; one that is so as it is.

        Raises InputError when they are neither all numbers nor all texts.
        """
        if isinstance(values, Identifiers):
            return values
        identifiers = np.asarray(values)
        if identifiers.dtype == np.int64 and identifiers.size:
            least = identifiers.min()
            if int(identifiers.max()) - int(least) < 4 * identifiers.size:
                # Integers that are near each other are counted rather than sorted.
                numbers = identifiers - least
                present = np.bincount(numbers) > 0
                return cls(np.flatnonzero(present) + least, (np.cumsum(present, dtype=np.int32) - 1)[numbers])
        if identifiers.dtype.kind == "U" and identifiers.size > _MANY:
            import polars as pl

            return cls.of_texts(pl.Series(identifiers.tolist(), dtype=pl.String))
        try:
            distinct, places = np.unique(identifiers, return_inverse=True)
        except TypeError as error:
            found = "identifiers of different types"
            raise InputError(where, found, "all numbers or all strings") from error
        return cls(distinct, places.astype(np.int32))

    @classmethod
    def of_texts(cls, texts: pl.Series, meaning: Callable[[pl.Series], AnyArray] = _as_texts) -> Identifiers:
        """Return a column of texts of polars, none missing; only those that differ are looked at.

        ``meaning``: returns what different texts stand for, integers or texts; several may be the same.
        """
        import polars as pl

        column = texts.cast(pl.Categorical)
        codes, categories = column.to_physical().to_numpy(), column.unique()
        numbers = categories.to_physical().to_numpy()
        # The codes are those of all columns in this process.
        place = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.int32)
        place[numbers] = np.arange(numbers.size)
        return cls.of_codes(meaning(categories.cast(pl.String)), place[codes])

    @classmethod
    def of_codes(cls, names: AnyArray, codes: AnyInts) -> Identifiers:
        """Return a column of which each row has a code, given what every code stands for; all occur."""
        distinct, places = np.unique(names, return_inverse=True)
        return cls(distinct, places.astype(np.int32)[codes])

    @property
    def values(self) -> AnyArray:
        """The identifier of every row, shape (rows,)."""
        return self.distinct[self.places]

    def __getitem__(self, row: int) -> Any:
        return self.distinct[self.places[row]]

    def select(self, rows: AnyArray) -> Identifiers:
        """Return the identifiers of some rows, each at most once."""
        chosen = Identifiers(self.distinct, self.places[rows])
        return chosen if chosen.places.size == self.places.size else chosen.occurring()

    def occurring(self) -> Identifiers:
        """Return the same without identifiers that no row has."""
        present = np.bincount(self.places, minlength=self.distinct.size) > 0
        if present.all():
            return self
        ranks = np.cumsum(present, dtype=np.int32) - 1
        return Identifiers(self.distinct[present], ranks[self.places])

    def like(self, space: AnyArray | None) -> Identifiers:
        """Return the same identifiers, as texts where those of a larger space, if there is one, are texts."""
        if space is None or space.dtype.kind != "U" or self.distinct.dtype.kind == "U":
            return self
        return Identifiers.of_codes(self.distinct.astype(np.str_), self.places)

    def within(self, space: AnyArray, where: str) -> Int32s:
        """Return each row's place in a larger space, ascending; raises InputError for a stranger."""
        converted = self.like(space)
        places, present = find(space, converted.distinct)
        if not present.all():
            stranger = converted.distinct[int(np.argmin(present))]
            raise InputError(where, f"unknown identifier {stranger}", f"the {space.size} known ones")
        return places.astype(np.int32)[converted.places]


def in_one_space(columns: Sequence[Identifiers], arrays: Sequence[AnyArray] = ()) -> AnyArray:
    """Return all identifiers of some columns and arrays, ascending; as texts unless all are numbers."""
    spaces = [*(column.distinct for column in columns), *arrays]
    if len({space.dtype.kind for space in spaces}) > 1:
        spaces = [space.astype(np.str_) for space in spaces]
    return np.unique(np.concatenate(spaces))


@dataclass(frozen=True, eq=False)
class RatingRows:
    """One (user, item, rating) row per rating, in any order."""

    users: Identifiers
    items: Identifiers
    """The data set's identifiers, one for each row."""
    values: Floats
    """Shape (rows,); NaN for pairs without ratings."""
    source: str = "ratings"
    """Name of the rows in error messages, usually the file."""
    first_line: int = 1
    """Line number of the first row, for error messages."""
    unit: str = "line"
    """What a row is called in error messages."""
    remedy: str = "--set dataset.duplicates=last"
    """What is typed where a pair may be repeated."""
    places: Ints | None = None
    """Place of each row among all that were read, from 0; by default all of them are here; shape (rows,)."""
    times: Floats | None = None
    """When the ratings were made; shape (rows,)."""
    reading: Reading | None = None
    """Where the columns stood."""

    @classmethod
    def of(
        cls, users: ArrayLike | Identifiers, items: ArrayLike | Identifiers, values: ArrayLike, source: str
    ) -> RatingRows:
        """Check columns and put them side by side.

        Raises InputError when ratings are not numbers, or the columns have different lengths.
        """
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(source, str(error), "ratings that are numbers") from error
        columns = Identifiers.of(users, f"{source}: user"), Identifiers.of(items, f"{source}: item")
        if not columns[0].places.shape == columns[1].places.shape == numbers.shape or numbers.ndim != 1:
            raise InputError(source, "columns of different lengths", "one user, item and rating per row")
        return cls(*columns, numbers, source)

    @property
    def order(self) -> Ints:
        """Place of each row among all that were read, shape (rows,)."""
        return np.arange(self.values.size) if self.places is None else self.places

    def error(self, row: int, found: str, accepted: str) -> InputError:
        """Return the error for a row, with its line in the file."""
        place = row if self.places is None else int(self.places[row])
        return InputError(f"{self.source}, {self.unit} {place + self.first_line}", found, accepted)

    def select(self, rows: AnyArray, reason: str = "") -> RatingRows:
        """Return some rows, whose positions or mask are given; for a reason, the others are left out."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        places = rows if self.places is None else self.places[rows]
        reading = self.reading and self.reading.without(reason, self.values.size - places.size)
        return replace(
            self,
            users=self.users.select(rows),
            items=self.items.select(rows),
            values=self.values[rows],
            places=places,
            times=None if self.times is None else self.times[rows],
            reading=reading if reason else self.reading,
        )

    def without(self, missing: Sequence[float]) -> RatingRows:
        """Return the rows whose rating is none of some values, which mean that there is none.

        Raises InputError when nothing remains.
        """
        absent = np.isin(self.values, missing)
        if not absent.any():
            return self
        excluded = ", ".join(f"{number:g}" for number in missing)
        if absent.all():
            raise InputError(self.source, f"no rating but {excluded}", "others")
        return self.select(~absent, f"not rated ({excluded})")

    def collapsed(self, duplicates: Duplicates, preferred: Bools | None = None) -> RatingRows:
        """Return one row for each pair of a user and an item, by user and item.

        The first or the last of several is that by time, where there are times, and else by line;
        ``preferred`` rows, shape (rows,), come before others. Their sum, mean or maximum is that of all of
        them, and stands where the last stood. Raises InputError for a repeated pair where ``duplicates`` is
        "error".
        """
        if duplicates not in get_args(Duplicates):
            raise InputError("duplicates", repr(duplicates), ", ".join(get_args(Duplicates)))
        cells = self.users.places.astype(np.int64) * self.items.distinct.size + self.items.places
        if np.all(cells[1:] > cells[:-1]):
            return self
        order = _stable_order(cells)
        cells = cells[order]
        first = np.append(True, cells[1:] != cells[:-1])
        if first.all():
            return self.select(order)
        if duplicates == "error":
            raise self._repeated(int(order[~first].min()), int((~first).sum()))
        starts = np.flatnonzero(first)
        sizes = np.diff(starts, append=cells.size)
        several = np.flatnonzero(np.repeat(sizes > 1, sizes))
        rows = order[several]
        late = None if preferred is None else preferred == (duplicates != "first")
        keys = [key[rows] for key in (self.times, late) if key is not None]
        # By pair, then what is preferred, then time; equal ones stay as they come.
        order[several] = rows[np.lexsort([*keys, cells[several]])]
        distinct = self.select(
            order[starts if duplicates == "first" else starts + sizes - 1], f"repeated pairs ({duplicates})"
        )
        if duplicates in ("first", "last"):
            return distinct
        combine = np.maximum if duplicates == "max" else np.add
        values = combine.reduceat(self.values[order], starts)
        return replace(distinct, values=values / sizes if duplicates == "mean" else values)

    def agreeing(
        self, duplicates: Duplicates, passing: Callable[[Floats], Bools] | None = None
    ) -> RatingRows:
        """Return one row for each pair, where repeated ones may contradict each other or not.

        Pairs without ratings never do. Where a rule says which ratings are positive, ``passing``, a row that
        passes is enough, and comes before one that does not, unless sums or means are to pass.
        """
        implicit = bool(np.isnan(self.values).all())
        if not implicit and (passing is None or duplicates in ("sum", "mean", "max")):
            return self.collapsed(duplicates)
        preferred = None if implicit or passing is None else passing(self.values)
        return self.collapsed("first" if duplicates == "first" else "last", preferred)

    def _repeated(self, row: int, repeats: int) -> InputError:
        found = f"user {self.users[row]} rates item {self.items[row]} a second time"
        others = f", and {repeats - 1:,} rows more repeat a pair" if repeats > 1 else ""
        accepted = f"each pair once; or {self.remedy} (first, sum, mean or max)"
        return self.error(row, found + others, accepted)


def _stable_order(numbers: Ints) -> Ints:
    """Return the positions of numbers from 0 on in ascending order, those of equal ones as they come."""
    bits = numbers.size.bit_length()
    if numbers.size and int(numbers.max()) >= 1 << (62 - bits):
        return np.argsort(numbers, kind="stable")
    # Sorting numbers with their positions behind them takes a quarter of the time.
    order = numbers << bits
    order |= np.arange(numbers.size)
    order.sort()
    order &= (1 << bits) - 1
    return order
