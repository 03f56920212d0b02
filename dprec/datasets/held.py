"""Ratings from what people hold in Python: data frames, sparse matrices, arrays, ratings.

A configuration names them by their digest, as it names others by their file. While anybody in this process
holds them, every `InMemory` with that digest has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprec.arrays import AnyArray
from dprec.components import option
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets.base import GIVEN, Dataset, read_fold, times_of, united, without_times
from dprec.datasets.columns import RatingColumns, find_column, scale_of_counts
from dprec.errors import InputError
from dprec.ratings import Duplicates, RatingRows, Ratings, RatingScale

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import scipy.sparse as sp


Frame: TypeAlias = "pd.DataFrame | pl.DataFrame | pl.LazyFrame"
HeldRatings: TypeAlias = "Ratings | Frame | sp.sparray | sp.spmatrix | Sequence[ArrayLike] | AnyArray"
"""What people hold their ratings in."""

_LARGEST_SHAPE = 2**31 - 1
_LONGEST_IDENTIFIER = 255
"""Characters; as in files."""

_ACCEPTED = (
    "a data frame of pandas or polars, a SciPy sparse matrix, three arrays (users, items, ratings) or the "
    "first two, Ratings, a data set or a mapping"
)


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows of ratings, with what else their holder knows."""

    rows: RatingRows
    spaces: tuple[AnyArray, AnyArray] | None = None
    """Identifiers of all users and of all items, ascending."""
    scale: RatingScale | None = None


def ratings_from(
    ratings: HeldRatings,
    test: HeldRatings | None,
    columns: RatingColumns,
    duplicates: Duplicates,
    positive: str | None = None,
) -> tuple[Ratings, ...]:
    """Return ratings that are held in Python, or their train and test part in one space of users and items.

    Each is a data frame of pandas or polars with one row per rating; a SciPy matrix of shape (users, items),
    whose stored entries are the ratings; or three arrays (users, items, ratings) of one length, or four with
    the times. Two columns or arrays (users, items), and a matrix of booleans, are pairs without ratings.

    ``positive``: the rule that is to cut the ratings, whose scale need not be found then. Raises InputError
    under "dataset" or "test", when they cannot be used as ratings.
    """
    if test is None and isinstance(ratings, Ratings):
        return (_filled(ratings, "dataset"),)
    held = [_table(ratings, columns, "dataset")]
    if test is not None:
        held.append(_table(test, columns, "test"))
    scale = _scale(held, columns, counted=positive is not None)
    if scale.implicit:
        duplicates = "last"
    if len(held) == 1:
        users, items = held[0].spaces or (None, None)
        rows = held[0].rows
        return (Ratings.from_rows(rows, scale, duplicates=duplicates, user_ids=users, item_ids=items),)
    spaces = [table.spaces for table in held if table.spaces is not None]
    return read_fold(held[0].rows, held[1].rows, scale, duplicates, spaces)


def _scale(held: Sequence[_Table], columns: RatingColumns, *, counted: bool) -> RatingScale:
    """Return the one scale of all parts: that of `Ratings`, or what the values of the parts show."""
    known = [table.scale for table in held if table.scale is not None]
    if not known:
        values = np.concatenate([table.rows.values for table in held])
        if counted and not np.isnan(values).all():
            return scale_of_counts(values)
        return columns.scale(values, held[0].rows.source)
    for other in known[1:]:
        if not (np.array_equal(other.values, known[0].values) and other.continuous == known[0].continuous):
            accepted = f"that of dataset: {known[0].describe()}"
            raise InputError("test", f"a scale of {other.describe()}", accepted)
    return known[0]


def _table(held: HeldRatings, columns: RatingColumns, source: str) -> _Table:
    import scipy.sparse as sp

    if isinstance(held, Ratings):
        ratings = _filled(held, source)
        users, items = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
        values = np.full(ratings.count, np.nan) if ratings.scale.implicit else ratings.values
        rows = RatingRows(users, items, values, source, unit="row")
        return _Table(rows, (ratings.user_ids, ratings.item_ids), ratings.scale)
    spaces = None
    triples: Sequence[ArrayLike | None]
    lazy: Any = held
    if hasattr(lazy, "collect_schema") and hasattr(lazy, "collect"):
        try:
            held = lazy.collect()  # of polars
        except Exception as error:  # Its steps can raise anything of polars.
            raise InputError(source, f"a lazy frame that raised {error}", _ACCEPTED) from None
    if sp.issparse(held):
        triples, spaces = _sparse(held, source)
    elif hasattr(held, "columns") and (hasattr(held, "iloc") or hasattr(held, "lazy")):
        triples = _columns(held, columns, source)
    elif isinstance(held, np.ndarray) and held.ndim == 2 and held.shape[1] in (2, 3, 4):
        triples = list(held.T)
    elif isinstance(held, Sequence) and not isinstance(held, str | bytes) and len(held) in (2, 3, 4):
        triples = held
    elif isinstance(held, np.ndarray):
        matrix = "scipy.sparse.coo_array(array) if it is users x items with 0 for no rating"
        raise InputError(source, f"an array of shape {held.shape}", f"{matrix}; or {_ACCEPTED}")
    else:
        raise InputError(source, f"a value of type {type(held).__name__}", _ACCEPTED)
    rows = table_rows([*triples, None] if len(triples) == 2 else triples, source)
    return _Table(rows if np.isnan(rows.values).all() else rows.without(columns.missing), spaces)


def _sparse(
    held: sp.sparray | sp.spmatrix, source: str
) -> tuple[list[AnyArray | None], tuple[AnyArray, AnyArray]]:
    """Return users, items and stored entries of a matrix, and all its users and items."""
    import scipy.sparse as sp

    try:
        cells = sp.coo_array(held)
    except ValueError as error:
        raise InputError(source, f"a damaged sparse matrix ({error})", "users x items") from None
    if cells.ndim != 2:
        raise InputError(source, f"a sparse array of {cells.ndim} dimensions", "users x items")
    if max(cells.shape) > _LARGEST_SHAPE:
        found = f"a sparse matrix of {cells.shape[0]} x {cells.shape[1]}"
        raise InputError(source, found, f"at most {_LARGEST_SHAPE} users, and as many items")
    users, items = (np.arange(size) for size in cells.shape)
    if cells.data.dtype != np.bool_:
        return [*cells.coords, cells.data], (users, items)
    # Where an entry is true, there is a pair, and no rating.
    return [*(place[cells.data] for place in cells.coords), None], (users, items)


def _filled(ratings: Ratings, source: str) -> Ratings:
    if not ratings.count:
        raise InputError(source, "no ratings", "at least one")
    return ratings


def _columns(frame: Any, settings: RatingColumns, source: str) -> list[AnyArray | None]:
    names = list(frame.columns)
    header = list(map(str, names))
    timed = settings.timestamp_column is not None or find_column("timestamp", header) is not None
    columns: list[AnyArray | None] = []
    for number, place in enumerate(settings.places(header, source, timed=timed), start=1):
        where = f"{source}, column {names[place]!r}"
        if number < 3 + settings.has_ratings(header):
            columns.append(present(frame[names[place]], where))
            continue
        try:
            columns.append(times_of(present(frame[names[place]], where), where))
        except InputError:
            # One that was found by its name may hold no times.
            if settings.timestamp_column is not None:
                raise
    if not settings.has_ratings(header):
        columns.insert(2, None)
    return columns


def present(column: Any, where: str) -> AnyArray:
    """Return a column of a data frame as an array; raises InputError for a row that holds nothing."""
    missing = np.flatnonzero(np.asarray(column.isna() if hasattr(column, "isna") else column.is_null()))
    if missing.size:
        raise InputError(f"{where}, row {missing[0] + 1}", "nothing", "a value in every row")
    if str(column.dtype).startswith(("String", "Categorical", "Enum")):
        return texts_of(column, where)
    try:
        return np.asarray(column.to_numpy())
    except Exception as error:  # as above
        raise InputError(where, str(error), "numbers or text that NumPy can hold") from None


def table_rows(columns: Sequence[ArrayLike | None], source: str) -> RatingRows:
    """Return columns of users, items, ratings and perhaps times as rows, or raise InputError.

    Without ratings, where these are None, there is NaN.
    """
    rated = columns[2] is not None
    try:
        users, items, *others = [_whole(column) for column in columns if column is not None]
    except ValueError:
        raise InputError(source, "columns that are no arrays, or hide values", "one value per row") from None
    values = others.pop(0) if rated else np.full(users.shape, np.nan)
    if values.dtype.kind in "cmM":
        raise InputError(source, f"ratings of type {values.dtype}", "ratings that are numbers")
    ids = _identifiers(users, f"{source}: user"), _identifiers(items, f"{source}: item")
    rows = replace(RatingRows.of(*ids, values, source), unit="row")
    if not rows.values.size:
        raise InputError(source, "no ratings" if rated else "no pairs", "at least one")
    wrong = np.flatnonzero(~np.isfinite(rows.values))
    if wrong.size and rated:
        raise rows.error(int(wrong[0]), f"rating {rows.values[wrong[0]]:g}", "a finite number")
    times = times_of(others[0], f"{source}: time") if others else None
    if times is not None and times.shape != rows.values.shape:
        raise InputError(source, "columns of different lengths", "one time per rating")
    return replace(rows, times=times)


def _whole(column: ArrayLike) -> AnyArray:
    """Return a column as an array; ValueError if its rows differ in length, or a mask hides some of them."""
    if np.ma.is_masked(column):
        raise ValueError("masked")
    values = np.asarray(column)
    # Floats of single precision have six decimals: 0.1 is not to become 0.10000000149.
    single = values.dtype.kind == "f" and values.dtype.itemsize < np.dtype(np.float64).itemsize
    return np.round(values.astype(np.float64), 6) if single else values


def _identifiers(values: AnyArray, where: str) -> AnyArray:
    """Return identifiers as int64 or text, so that the same ones are equal wherever they come from."""
    if values.dtype.kind == "O":
        types = set(map(type, values.ravel().tolist()))
        if types == {str}:
            return as_texts(values, where)
        if types and all(issubclass(each, int | np.integer) for each in types):
            try:
                values = values.astype(np.int64)
            except OverflowError:
                raise InputError(where, "identifiers beyond 64 bits", "smaller ones, or text") from None
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind in "iuf" and np.all(np.isfinite(values)):
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        if np.array_equal(whole, values):
            return whole
    raise InputError(where, f"identifiers of type {values.dtype}", "integers or text, none missing")


def texts_of(column: pl.Series, where: str) -> NDArray[np.str_]:
    """Return a column of text of polars, none missing, as an array; see `as_texts`."""
    import polars as pl

    texts = column.cast(pl.String)
    distinct = texts.unique().sort()
    places = texts.cast(pl.Enum(distinct)).to_physical().to_numpy()
    return np.asarray(as_texts(distinct.to_numpy(), where)[places])


def as_texts(values: AnyArray, where: str) -> NDArray[np.str_]:
    """Return texts as an array with room for the longest, or raise InputError if one cannot be stored."""
    texts = values.ravel().tolist()
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_IDENTIFIER:
        raise InputError(where, f"an identifier of {longest} characters", f"at most {_LONGEST_IDENTIFIER}")
    try:
        zeros = b"\0" in "".join(texts).encode()
    except UnicodeEncodeError:
        raise InputError(where, "an identifier that is no Unicode", "text") from None
    if zeros:
        raise InputError(where, "an identifier with a zero character", "text without")
    return values.astype(np.str_)


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
        positive: str | None = None,
        min_items: int | None = None,
        copies: int | None = None,
        **settings: Any,
    ) -> Self:
        """Return the data set of ratings that are in memory.

        ``settings``: those of `RatingColumns`; the others are those of any data set.
        """
        columns = RatingColumns(**settings)
        parts = ratings_from(ratings, test, columns, duplicates, positive)
        sha256 = digest_of(parts)
        held = _PRESENT.setdefault(sha256, _Held(parts))
        return cls(
            users=parts[0].n_users,
            items=parts[0].n_items,
            ratings=sum(part.count for part in held.parts),
            test_ratings=parts[1].count if len(parts) > 1 else 0,
            sha256=sha256,
            positive=positive,
            min_items=min_items,
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
        held: _Held | None = self.__dict__["_held"]
        return None if held is None else held.parts[0].scale

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
        held: _Held | None = self.__dict__["_held"]
        if held is None:
            raise InputError(
                "dataset",
                f"{self.ratings} ratings of {self.items} items by {self.users} users that were in memory",
                "the same ratings, from Python: run(..., dataset=...)",
            )
        return held.parts


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
