"""Ratings from what people hold in Python: data frames, sparse matrices, arrays, ratings.

A configuration names them by their digest, as it names others by their file. While anybody in this process
holds them, every `InMemory` with that digest has them.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyArray, Floats
from dprec.components import option
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets.base import GIVEN, Dataset, passing, read_fold, united, without_times
from dprec.datasets.columns import RatingColumns, find_column
from dprec.errors import InputError, shown
from dprec.rating_rows import Duplicates, Identifiers, RatingRows, Reading
from dprec.ratings import Ratings, RatingScale

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import scipy.sparse as sp


Frame: TypeAlias = "pd.DataFrame | pl.DataFrame | pl.LazyFrame"
HeldRatings: TypeAlias = (
    "Ratings | Frame | pd.Series[Any] | sp.sparray | sp.spmatrix | Sequence[Any] | AnyArray "
    "| Mapping[Any, Mapping[Any, float]]"
)
"""What people hold their ratings in."""

_Spaces = tuple[AnyArray, AnyArray] | None
"""Identifiers of all users and of all items, ascending, where their holder knows them."""

_LARGEST_SHAPE = 2**31 - 1
_LONGEST_IDENTIFIER = 255
"""Characters; as in files."""

_ACCEPTED = (
    "a data frame of pandas or polars, a list of tuples (user, item, rating), a SciPy sparse matrix, three "
    "arrays (users, items, ratings) or the first two, Ratings, a data set or a mapping"
)
_TIMES = "numbers, or dates such as 2005-09-06 or 2005-09-06 17:30:00"
_DATE = r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?$"


def ratings_from(
    ratings: HeldRatings,
    test: HeldRatings | None,
    columns: RatingColumns,
    duplicates: Duplicates,
    positive: str | None = None,
) -> tuple[Ratings, ...]:
    """Return ratings that are held in Python, or their train and test part in one space of users and items.

    Each is a data frame of pandas or polars with one row per rating; a list of tuples (user, item, rating); a
    SciPy matrix of shape (users, items), whose stored entries are the ratings; three arrays (users, items,
    ratings) of one length; a series of pandas that is indexed by user and item; or a mapping from users to
    their ratings by item. A fourth column has the times. Two columns, and a matrix of booleans, are pairs
    without ratings.

    ``positive``: the rule that is to cut the ratings, whose scale need not be found then. Raises InputError
    under "dataset" or "test", when they cannot be used as ratings.
    """
    sources = {"dataset": ratings} if test is None else {"dataset": ratings, "test": test}
    scales = []
    for source, part in sources.items():
        if isinstance(part, Ratings):
            if not part.count:
                raise InputError(source, "no ratings", "at least one")
            scales.append(part.scale)
    if test is None and isinstance(ratings, Ratings):
        return (ratings,)
    parts = [_rows(part, columns, source) for source, part in sources.items()]
    agreeing = [rows.agreeing(duplicates, passing(positive)) for rows, _ in parts]
    if scales:
        scale = scales[0]
        for other_scale in scales[1:]:
            if not (
                np.array_equal(other_scale.values, scale.values)
                and other_scale.continuous == scale.continuous
            ):
                accepted = f"that of dataset: {scale.describe()}"
                raise InputError("test", f"a scale of {other_scale.describe()}", accepted)
    else:
        values = np.concatenate([rows.values for rows in agreeing])
        scale = columns.scale(values, "dataset", counted=positive is not None)
    if len(parts) == 1:
        users, items = parts[0][1] or (None, None)
        return (Ratings.from_rows(agreeing[0], scale, user_ids=users, item_ids=items),)
    return read_fold(agreeing[0], agreeing[1], scale, [spaces for _, spaces in parts if spaces is not None])


def holds_profiles(held: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is one from users to their ratings by item, rather than that of a file."""
    return bool(held) and all(isinstance(profile, Mapping) for profile in held.values())


def _rows(ratings: HeldRatings, settings: RatingColumns, source: str) -> tuple[RatingRows, _Spaces]:
    """Return the rows of ratings that are held in Python, and all users and items if they are known."""
    import scipy.sparse as sp

    if isinstance(ratings, Ratings):
        return ratings.to_rows(source), (ratings.user_ids, ratings.item_ids)
    spaces: _Spaces = None
    columns: Sequence[Any]
    names: Sequence[str] = ()
    if sp.issparse(ratings):
        columns, spaces = _sparse(ratings, source)
    else:
        columns, names = _columns(ratings, settings, source)
    rows = table_rows([*columns, None] if len(columns) == 2 else columns, source, names)
    return settings.cleaned(rows), spaces


def _columns(ratings: Any, settings: RatingColumns, source: str) -> tuple[Sequence[Any], Sequence[str]]:
    """Return columns of users, items, and perhaps ratings and times, with their names if they have any."""
    if hasattr(ratings, "collect_schema") and hasattr(ratings, "collect"):
        try:
            ratings = ratings.collect()  # of polars
        except Exception as error:  # Its steps can raise anything of polars.
            raise InputError(source, f"a lazy frame that raised {error}", _ACCEPTED) from None
    if hasattr(ratings, "columns") and (hasattr(ratings, "iloc") or hasattr(ratings, "lazy")):
        if getattr(getattr(ratings, "index", None), "nlevels", 1) > 1:
            ratings = ratings.reset_index()
        return _of_frame(ratings, settings, source)
    if getattr(getattr(ratings, "index", None), "nlevels", 0) == 2:  # a series of pandas
        names = [str(name or f"level {level}") for level, name in enumerate(ratings.index.names, 1)]
        swapped = (find_column("item", names), find_column("user", names)) == (0, 1)
        levels = [ratings.index.get_level_values(level) for level in (0, 1)][:: -1 if swapped else 1]
        return (*levels, ratings.to_numpy()), (*names[:: -1 if swapped else 1], str(ratings.name or "values"))
    if isinstance(ratings, Mapping) and holds_profiles(ratings):
        rows = [(user, item, value) for user, profile in ratings.items() for item, value in profile.items()]
        return _transposed(rows, source), ()
    if isinstance(ratings, np.ndarray):
        if ratings.ndim == 2 and ratings.shape[1] in (2, 3, 4):
            return list(ratings.T), ()
        matrix = "scipy.sparse.coo_array(array) if it is users x items with 0 for no rating"
        raise InputError(source, f"an array of shape {ratings.shape}", f"{matrix}; or {_ACCEPTED}")
    if isinstance(ratings, Sequence) and ratings and not isinstance(ratings, str | bytes):
        return _of_sequence(ratings, source), ()
    raise InputError(source, f"a value of type {type(ratings).__name__}", _ACCEPTED)


def _of_sequence(rows: Sequence[Any], source: str) -> Sequence[Any]:
    """Return the columns of rows that are tuples, or lists where they cannot be columns; or columns."""
    several = len(rows) in (2, 3, 4)
    short = all(isinstance(row, list) and len(row) in (2, 3, 4) for row in rows)
    if several and short and isinstance(rows, list):
        found = f"{len(rows)} lists of {len(rows[0])}, which may be rows or columns"
        raise InputError(source, found, "rows as tuples, or columns as arrays of NumPy")
    if all(isinstance(row, tuple) for row in rows):
        return _transposed(rows, source)
    if several:
        return rows
    if all(isinstance(row, list) for row in rows):
        return _transposed(rows, source)
    raise InputError(source, f"{len(rows)} values, the first a {type(rows[0]).__name__}", _ACCEPTED)


def _transposed(rows: Sequence[Any], source: str) -> list[list[Any]]:
    """Return the columns of rows (user, item), (user, item, rating) or (user, item, rating, time)."""
    if not rows:
        raise InputError(source, "no ratings", "at least one")
    widths = sorted(set(map(len, rows)))
    if len(widths) > 1 or widths[0] not in (2, 3, 4):
        found = f"rows of {' and '.join(map(str, widths))} values"
        raise InputError(source, found, "rows (user, item), and perhaps a rating, and a time")
    return [list(column) for column in zip(*rows, strict=True)]


def _sparse(matrix: sp.sparray | sp.spmatrix, source: str) -> tuple[list[AnyArray | None], _Spaces]:
    """Return users, items and stored entries of a matrix, and all its users and items."""
    import scipy.sparse as sp

    try:
        cells = sp.coo_array(matrix)
    except ValueError as error:
        raise InputError(source, f"a damaged sparse matrix ({error})", "users x items") from None
    if cells.ndim != 2:
        raise InputError(source, f"a sparse array of {cells.ndim} dimensions", "users x items")
    if max(cells.shape) > _LARGEST_SHAPE:
        found = f"a sparse matrix of {cells.shape[0]} x {cells.shape[1]}"
        raise InputError(source, found, f"at most {_LARGEST_SHAPE} users, and as many items")
    spaces = np.arange(cells.shape[0]), np.arange(cells.shape[1])
    if cells.data.dtype != np.bool_:
        return [*cells.coords, cells.data], spaces
    # Where an entry is true, there is a pair, and no rating.
    return [*(place[cells.data] for place in cells.coords), None], spaces


def _of_frame(frame: Any, settings: RatingColumns, source: str) -> tuple[list[Any], list[str]]:
    """Return the columns of a data frame, and their names: users, items, ratings, and perhaps times.

    Without ratings, these are None.
    """
    names = list(frame.columns)
    header = list(map(str, names))
    timed = settings.has_times(header)
    rated = settings.has_ratings(header)
    columns: list[Any] = []
    places = settings.places(header, source, timed=timed)
    for place in places:
        where = f"{source}, column {names[place]!r}"
        if len(columns) < 2 + rated:
            columns.append(present(frame[names[place]], where))
            continue
        try:
            columns.append(times_of(present(frame[names[place]], where), where))
        except InputError:
            # One that was found by its name may hold no times.
            if settings.timestamp_column is not None:
                raise
            places = places[:-1]
    column_names = [header[place] for place in places]
    if rated:
        return columns, column_names
    return [*columns[:2], None, *columns[2:]], [*column_names[:2], "", *column_names[2:]]


def present(column: Any, where: str) -> AnyArray | Identifiers:
    """Return a column of a data frame as an array, one of texts by code; InputError if a row is empty."""
    missing = np.flatnonzero(np.asarray(column.isna() if hasattr(column, "isna") else column.is_null()))
    if missing.size:
        way_out = "dropna(subset=" if hasattr(column, "isna") else "drop_nulls("
        accepted = f"a value in every row, as after frame.{way_out}[{column.name!r}])"
        raise InputError(f"{where}, row {missing[0] + 1}", "nothing", accepted)
    if str(column.dtype).startswith(("String", "Categorical", "Enum")):
        import polars as pl

        return Identifiers.of_texts(column.cast(pl.String), partial(as_texts, where=where))
    try:
        return np.asarray(column.to_numpy())
    except Exception as error:  # as above
        raise InputError(where, str(error), "numbers or text that NumPy can hold") from None


def _flat(column: AnyArray | Identifiers) -> AnyArray:
    return column.values if isinstance(column, Identifiers) else column


def table_rows(columns: Sequence[Any], source: str, names: Sequence[str] = ()) -> RatingRows:
    """Return columns of users, items, ratings and perhaps times as rows, or raise InputError.

    Without ratings, where these are None, there is NaN. ``names``: those of the columns; by default, their
    positions.
    """
    rated, arrays = columns[2] is not None, list[Any]()
    for column in columns:
        if column is None:
            continue
        if isinstance(column, Identifiers):
            arrays.append(column)
            continue
        try:
            values = np.asarray(column)
        except ValueError:
            values = None
        if values is None or np.ma.is_masked(column):
            found = "columns that are no arrays, or hide values"
            raise InputError(source, found, "one value per row")
        # Floats of single precision have six decimals: 0.1 is not to become 0.10000000149.
        single = values.dtype.kind == "f" and values.dtype.itemsize < np.dtype(np.float64).itemsize
        arrays.append(np.round(values.astype(np.float64), 6) if single else values)
    ids = _identifiers(arrays[0], f"{source}: user"), _identifiers(arrays[1], f"{source}: item")
    others = arrays[2:]
    values = _flat(others.pop(0)) if rated else np.full(ids[0].places.shape, np.nan)
    if values.dtype.kind in "cmM":
        raise InputError(source, f"ratings of type {values.dtype}", "ratings that are numbers")
    remedy = "InMemory.of(..., duplicates='last')"
    rows = replace(RatingRows.of(*ids, values, source), unit="row", remedy=remedy)
    if not rows.values.size:
        raise InputError(source, "no ratings" if rated else "no pairs", "at least one")
    wrong = np.flatnonzero(~np.isfinite(rows.values))
    if wrong.size and rated:
        raise rows.error(int(wrong[0]), f"rating {rows.values[wrong[0]]:g}", "a finite number")
    times = times_of(others[0], f"{source}: time") if others else None
    if times is not None and times.shape != rows.values.shape:
        raise InputError(source, "columns of different lengths", "one time per rating")
    header = names or [f"column {number}" for number in range(1, 5)]
    rating, time = header[2] if rated else None, header[3] if others else None
    reading = Reading(source, header[0], header[1], rating, time)
    return replace(rows, times=times, reading=reading)


def times_of(column: AnyArray | Identifiers, where: str) -> Floats:
    """Return times as numbers; dates become seconds since 1970, in UTC unless they say otherwise.

    Raises InputError when one is neither a number nor a date, or some are numbers and some dates.
    """
    if isinstance(column, Identifiers):
        return times_of(column.distinct, where)[column.places]
    if column.dtype.kind not in "iufM":
        return _times_of_texts(column, where)
    if column.dtype.kind == "M":
        dates = column.astype("datetime64[us]")
        column = np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 1e6)
    times = column.astype(np.float64)
    if not np.all(np.isfinite(times)):
        raise InputError(where, "a time that is missing or infinite", _TIMES)
    return times


def _times_of_texts(column: AnyArray, where: str) -> Floats:
    import polars as pl

    texts = pl.Series(column.astype(np.str_).tolist(), dtype=pl.String).str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    if not numbers.null_count():
        return times_of(numbers.to_numpy(), where)
    dated = texts.str.replace(r"( ?UTC|Z)$", "").str.contains(_DATE)
    if not dated.all():
        raise InputError(where, f"values such as {shown(repr(texts.filter(~dated)[0]))}", _TIMES)
    with warnings.catch_warnings():
        # NumPy warns of an offset such as +02:00, which it takes into account.
        warnings.simplefilter("ignore", UserWarning)
        try:
            return times_of(texts.str.replace(r"( ?UTC|Z)$", "").to_numpy().astype("datetime64[us]"), where)
        except ValueError as error:
            raise InputError(where, str(error), _TIMES) from None


def _identifiers(values: AnyArray | Identifiers, where: str) -> Identifiers:
    """Return identifiers as int64 or text, so that the same ones are equal wherever they come from."""
    if isinstance(values, Identifiers):
        return values
    if values.dtype.kind == "O":
        types = set(map(type, values.ravel().tolist()))
        if types and all(issubclass(kind, str) for kind in types):
            return _of_strings(values.tolist(), where)
        if types and all(issubclass(kind, int | np.integer) for kind in types):
            try:
                values = values.astype(np.int64)
            except OverflowError:
                raise InputError(where, "identifiers beyond 64 bits", "smaller ones, or text") from None
    if values.dtype.kind == "U":
        return Identifiers.of(values)
    if values.dtype.kind in "iuf" and np.all(np.isfinite(values)):
        with np.errstate(invalid="ignore"):
            integers = values.astype(np.int64)
        if np.array_equal(integers, values):
            return Identifiers.of(integers)
    raise InputError(where, f"identifiers of type {values.dtype}", "integers or text, none missing")


def _of_strings(texts: list[str], where: str) -> Identifiers:
    import polars as pl

    try:
        column = pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        raise InputError(where, "an identifier that is no Unicode", "text") from None
    return Identifiers.of_texts(column, partial(as_texts, where=where))


def as_texts(texts: pl.Series, where: str) -> NDArray[np.str_]:
    """Return texts as an array with room for the longest, or raise InputError if one cannot be stored."""
    longest = int(texts.str.len_chars().max() or 0)  # type: ignore[arg-type]
    if longest > _LONGEST_IDENTIFIER:
        raise InputError(where, f"an identifier of {longest} characters", f"at most {_LONGEST_IDENTIFIER}")
    if texts.str.contains("\0", literal=True).any():
        raise InputError(where, "an identifier with a zero character", "text without")
    return np.asarray(texts.to_list(), dtype=np.str_)


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
        loaded = state["_held"]
        self.__dict__.update(state, _held=loaded and _PRESENT.setdefault(state["sha256"], loaded))

    @classmethod
    def of(
        cls,
        ratings: HeldRatings,
        test: HeldRatings | None = None,
        *,
        duplicates: Duplicates = "error",
        positive: str | None = None,
        min_items: int | None = None,
        min_users: int | None = None,
        copies: int | None = None,
        **settings: Any,
    ) -> Self:
        """Return the data set of ratings that are in memory.

        ``settings``: those of `RatingColumns`; the others are those of any data set.
        """
        columns = RatingColumns(**settings)
        parts = ratings_from(ratings, test, columns, duplicates, positive)
        sha256 = digest_of(parts)
        loaded = _PRESENT.setdefault(sha256, _Held(parts))
        return cls(
            users=parts[0].n_users,
            items=parts[0].n_items,
            ratings=sum(part.count for part in loaded.parts),
            test_ratings=parts[1].count if len(parts) > 1 else 0,
            sha256=sha256,
            positive=positive,
            min_items=min_items,
            min_users=min_users,
            copies=copies,
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
        loaded: _Held | None = self.__dict__["_held"]
        return None if loaded is None else loaded.parts[0].scale

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

    def _parts(self) -> tuple[Ratings, ...]:
        loaded: _Held | None = self.__dict__["_held"]
        if loaded is None:
            found = f"{self.ratings} ratings of {self.items} items by {self.users} users that were in memory"
            raise InputError("dataset", found, "the same ratings, from Python: run(..., dataset=...)")
        return loaded.parts


def digest_of(parts: Sequence[Ratings]) -> str:
    """Return the SHA-256 of ratings, of their scale, users, items and times."""
    digest = hashlib.sha256()
    for part in parts:
        exact, times = (np.zeros(0) if column is None else column for column in (part.exact, part.times))
        ends = (part.target_start, part.target_stop) if isinstance(part, CrossDomainRatings) else ()
        rows = part.indptr, part.items, part.levels, exact, times
        for column in (part.scale.values, part.user_ids, part.item_ids, *rows, np.array(ends)):
            digest.update(f"{column.dtype}{column.shape}".encode())
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
