"""Ratings in any delimited text file or Parquet table, and public data about items in one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats
from dprec.catalogue import Catalogue, ItemRows
from dprec.components import Options, as_values, option
from dprec.datasets.base import GIVEN, Layout, locate, read_fold, typed, united
from dprec.datasets.columns import (
    ROLES,
    RatingColumns,
    check_layout,
    find_column,
    found_separator,
    is_number,
    scale_of_counts,
    split_line,
)
from dprec.datasets.delimited import Cells, first_lines, is_parquet, read_columns, read_rows
from dprec.datasets.files import Columns, FileDataset
from dprec.datasets.held import as_texts, table_rows
from dprec.errors import InputError, SettingError, within
from dprec.ratings import Duplicates, RatingRows, Ratings, RatingScale


def _read_table(path: Path, places: Sequence[int]) -> list[AnyArray]:
    """Return columns of a table, by their positions from 0."""
    file = _file(path)
    names = [file.schema_arrow.names[place] for place in places]
    try:
        table = file.read(columns=names)
    except Exception as error:  # A damaged file can raise anything of pyarrow.
        raise _damaged(path, error) from error
    return [_values(table.column(name), f"{path}, column {name!r}") for name in names]


def _file(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        accepted = "pip install dprec[parquet], or the table as .csv"
        raise InputError(str(path), "a Parquet table, but no pyarrow", accepted) from error
    try:
        return parquet.ParquetFile(path)
    except Exception as error:  # as above
        raise _damaged(path, error) from error


def _values(column: Any, where: str) -> AnyArray:
    import pyarrow as pa

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"{where}, row {row + 1}", "nothing", "a value in every row")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return np.asarray(column.to_numpy())
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    distinct = whole.dictionary.to_pylist()
    if all(isinstance(each, str) for each in distinct):
        return np.asarray(as_texts(np.array(distinct, dtype=object), where)[whole.indices.to_numpy()])
    return np.asarray(np.array(distinct)[whole.indices.to_numpy()])


def _damaged(path: Path, error: BaseException) -> InputError:
    return InputError(str(path), f"a Parquet table that cannot be read ({error})", "a whole one")


_MOST_CATEGORIES = 500
"""More would be identifiers rather than categories, and fill the memory."""

_MOST_NUMBERS = 200
"""The table of items that devices receive has room for 254."""


@dataclass(frozen=True, kw_only=True)
class ItemColumns(Options):
    """A delimited text file with public data about an item on each line.

    A cell of `numbers` holds a number, or nothing where it is unknown. A cell of `categories` holds any
    number of names with '|' between them.
    """

    path: str = option("The file of items.")
    item_column: str | int = option("Items' column: its name in the header, or its position from 1.", "item")
    numbers: Columns = option("Columns of numbers, such as a year.", ())
    categories: Columns = option("Columns of categories, such as genres.", ())
    has_header: bool = option("Whether the first line names the columns; if not, give positions.", True)
    separator: str = option("What separates the columns: ',', ';', a tab, '::', ...", ",")

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = [self.item_column, *self.numbers, *self.categories]
        repeated = [column for column in columns if columns.count(column) > 1]
        if repeated:
            raise SettingError("numbers", f"column {repeated[0]!r} twice", "each column in one place")
        if len(self.numbers) > _MOST_NUMBERS:
            raise SettingError("numbers", f"{len(self.numbers)} columns", f"at most {_MOST_NUMBERS}")
        named = [column for column in columns if isinstance(column, str)]
        if named and not self.has_header:
            accepted = "positions counted from 1, as there is no header"
            raise SettingError("has_header", f"false, with column {named[0]!r}", accepted)

    def read(self) -> ItemRows:
        """Read the file; raises InputError for a line that cannot be, no columns, or over 500 categories."""
        if not self.numbers and not self.categories:
            raise SettingError("numbers", "no columns", "columns here, under categories, or both")
        path = locate(self.path)
        layout = Layout(separator=self.separator, header=self.has_header)
        wanted: list[tuple[str | int, Cells]] = [(self.item_column, "identifier")]
        wanted += [(column, "number or nothing") for column in self.numbers]
        wanted += [(column, "text or nothing") for column in self.categories]
        items, *cells = read_columns(path, layout, wanted)
        numbers, texts = cells[: len(self.numbers)], cells[len(self.numbers) :]
        tables = [
            categories_of((cell.split("|") for cell in column.tolist()), str(name), str(path))
            for column, name in zip(texts, self.categories, strict=True)
        ]
        total = sum(len(names) for _, names in tables)
        if total > _MOST_CATEGORIES:
            raise _too_many(total, "all columns", str(path))
        return ItemRows(
            items,
            np.column_stack([np.zeros((items.size, 0)), *numbers]),
            np.column_stack([np.zeros((items.size, 0), dtype=np.bool_), *(table for table, _ in tables)]),
            tuple(map(str, self.numbers)),
            tuple(name for _, names in tables for name in names),
            str(path),
            2 if self.has_header else 1,
        )


def categories_of(rows: Iterable[Sequence[str]], column: str, source: str) -> tuple[Bools, tuple[str, ...]]:
    """Return which category each row is in, shape (rows, categories), and their names: "genres: Drama".

    Empty ones are ignored. Raises InputError when there are more than 500.
    """
    labels = [{label.strip() for label in row} - {""} for row in rows]
    names = sorted(set().union(*labels))
    if len(names) > _MOST_CATEGORIES:
        raise _too_many(len(names), column, source)
    places = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(labels), len(names)), dtype=np.bool_)
    rows_of = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    table[rows_of, [places[label] for row in labels for label in row]] = True
    return table, tuple(f"{column}: {name}" for name in names)


def _too_many(categories: int, column: str, source: str) -> InputError:
    accepted = f"at most {_MOST_CATEGORIES}; a column of numbers belongs under numbers"
    return InputError(source, f"{categories} categories in {column}", accepted)


_LISTED = (
    "a line per rating, as the Netflix Prize becomes by: "
    """awk -F, 'NF==1{film=$1+0;next}{print $1","film","$2","$3}' FILE > ratings.csv"""
)


@dataclass(frozen=True, kw_only=True)
class DelimitedColumns(RatingColumns, FileDataset):
    """Base of the data sets whose settings describe the layout of a table; see `RatingColumns`.

    A text file may be packed (gz, bz2, xz, or zip of one file). Of Parquet, the text settings do not apply.
    """

    has_header: bool | None = option(
        "Whether the first line names the columns; by default, whether its rating is no number.", None
    )
    separator: str | None = option(
        "What separates the columns: ',', ';', 'tab', '::', ... or 'whitespace' for any blanks; by default "
        "what divides the first lines alike.",
        None,
    )
    own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("user_column", "item_column", "rating_column", "timestamp_column"):
            column = getattr(self, name)
            if isinstance(column, str) and self.has_header is False:
                raise SettingError(name, repr(column), "a position counted from 1, as there is no header")

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings as they are typed on the command line."""
        return typed(settings)

    def places(self, header: Sequence[str], source: str, *, timed: bool = False) -> list[int]:
        """Return the positions of columns; see `RatingColumns.places`. An InputError names the file first."""
        with _file_first(source):
            return super().places(header, source, timed=timed)

    def scale(self, values: Floats, source: str) -> RatingScale:
        """Return the scale; see `RatingColumns.scale`. An InputError names the file first."""
        if self.positive is not None and not np.isnan(values).all():
            return scale_of_counts(values)
        with _file_first(source):
            return super().scale(values, source)

    def read(self, path: str, *, timed: bool = False) -> RatingRows:
        """Read one file, with the times of the ratings if asked; an InputError names the line at fault."""
        file = locate(path)
        rows = self._parquet(file, timed) if is_parquet(file) else self._text(file, timed)
        return rows if np.isnan(rows.values).all() else rows.without(self.missing)

    def _parquet(self, file: Path, timed: bool) -> RatingRows:
        header = [str(name) for name in _file(file).schema_arrow.names]
        columns: list[AnyArray | None] = [*_read_table(file, self.places(header, str(file), timed=timed))]
        if not self.has_ratings(header):
            columns.insert(2, None)
        return table_rows(columns, str(file))

    def _text(self, file: Path, timed: bool) -> RatingRows:
        lines = first_lines(file)
        separator = self.separator or found_separator(lines)
        layout = Layout(separator=separator)
        first = split_line(lines[0], layout.separator) if lines else []
        if lines and re.fullmatch(r"\d+:", lines[0]):
            raise InputError(f"{file}, line 1", f"{lines[0]!r}, with the ratings of a film below it", _LISTED)
        self._check_layout(lines, layout.separator, str(file))
        header = self._has_header(first) if self.has_header is None else self.has_header
        if len(first) > 1:
            start = f"{file}, line 1"
            places = self.places(first, start, timed=timed) if header else self._positions(len(first))
            user, item, *more = (place + 1 for place in places)
            rated = self.has_ratings(first) if header else self._has_ratings(len(first))
            rating = more.pop(0) if rated else None
            timestamp = more[0] if more else None
            if timed and timestamp is None:
                raise InputError(start, "pairs without times", "--set dataset.timestamp_column=...")
            layout = replace(layout, header=header, user=user, item=item, rating=rating, timestamp=timestamp)
        return read_rows(file, layout, timed=timed)

    def looks_implicit(self) -> bool:
        """Return whether the beginning of the file at `path` shows pairs without ratings."""
        file = locate(self.path)
        if is_parquet(file):
            return not self.has_ratings([str(name) for name in _file(file).schema_arrow.names])
        lines = first_lines(file)
        first = split_line(lines[0], self.separator or found_separator(lines)) if lines else []
        if len(first) < len(ROLES[:2]):
            return False
        return not (self.has_ratings(first) if self._has_header(first) else self._has_ratings(len(first)))

    def _has_ratings(self, width: int) -> bool:
        """Return whether a file without a header has ratings: not two columns, or a third of times."""
        return self.rating_column is not None or width != 2 + (self.timestamp_column == len(ROLES))

    def _check_layout(self, lines: Sequence[str], separator: str, source: str) -> None:
        """Refuse what is no line per rating in the usual order, unless settings say how it is to be read."""
        columns = self.user_column, self.item_column, self.rating_column, self.timestamp_column
        given = *columns, self.low, self.high
        rows = [split_line(line, separator) for line in lines if line.strip()]
        named = rows and any(find_column(role, rows[0]) is not None for role in ROLES[1:])
        if rows and not named and all(setting is None for setting in given):
            check_layout(rows, separator, source)

    def _has_header(self, first: Sequence[str]) -> bool:
        """Return whether a first line names the columns rather than holding a rating."""
        columns = self.user_column, self.item_column, self.rating_column, self.timestamp_column
        if any(isinstance(column, str) for column in columns):
            return True
        if find_column("user", first) is not None and find_column("item", first) is not None:
            return True
        if not self._has_ratings(len(first)):
            return False
        place = self._positions(len(first))[2]
        # A number with a decimal comma is no name; the reader says what is wrong with it.
        return place < len(first) and not is_number(first[place].replace(",", "."))

    def _positions(self, width: int) -> list[int]:
        """Return the positions of users, items, ratings and times; without ratings where there are none."""
        columns = self.user_column, self.item_column, self.rating_column, self.timestamp_column
        places = [column - 1 if isinstance(column, int) else usual for usual, column in enumerate(columns)]
        if self._has_ratings(width):
            return places
        return places[:2] if self.timestamp_column is None else [*places[:2], places[3]]


@contextmanager
def _file_first(source: str) -> Iterator[None]:
    """Name the file first, and what to type, where its contents leave a setting open."""
    try:
        yield
    except SettingError as error:
        setting = f"--set dataset.{error.key}=..., " if error.key.endswith("_column") else ""
        found = error.found.removeprefix(f"{source}: ")
        raise InputError(source, found, f"{setting}{error.accepted}") from None


def holds_pairs(path: str) -> bool:
    """Return whether a file looks like one of pairs without ratings; False where it cannot be read."""
    try:
        return DelimitedTable(path=path).looks_implicit()
    except InputError:
        return False


@dataclass(frozen=True, kw_only=True)
class DelimitedTable(DelimitedColumns):
    """Any table with a user, an item and a rating on each line: delimited text, also packed, or Parquet.

    A train and a test part in two files are `train_path` and `test_path`, in place of `path`. They are the
    predefined split "given".
    """

    kind: Literal["csv"] = "csv"
    path: str = option("The file; without it, train_path and test_path.", "")
    train_path: str | None = option("The file of the ratings to learn from.", None)
    test_path: str | None = option("The file of the ratings to test on.", None)
    items: ItemColumns | None = option("A file of public data about the items.", None)

    def fold_names(self) -> tuple[str, ...]:
        """Return the one division that is given, if the parts are in two files."""
        return (GIVEN,) if self.test_path else ()

    def load(self) -> Ratings:
        """Return all ratings; InputError names the file and line of what cannot be read."""
        return self._loaded(timed=False)

    def load_timed(self) -> Ratings:
        """Return all ratings with their times; see `Dataset.load_timed`."""
        return self._loaded(timed=True)

    def _loaded(self, *, timed: bool) -> Ratings:
        if self._parts():
            return super().load_timed() if timed else united(*self.load_fold(GIVEN))
        rows = self.read(self.path, timed=timed)
        scale = self.scale(rows.values, rows.source)
        return Ratings.from_rows(rows, scale, duplicates=self._duplicates(scale))

    def _duplicates(self, scale: RatingScale) -> Duplicates:
        """Return what to do with a repeated pair: it contradicts nothing where there is no rating."""
        return "last" if scale.implicit else self.duplicates

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the ratings of both files; see `Dataset.load_fold`."""
        self.check_fold(fold)
        train, test = (self.read(path) for path in self._parts())
        values = np.concatenate([train.values, test.values])
        scale = self.scale(values, f"{train.source}, {test.source}")
        return read_fold(train, test, scale, self._duplicates(scale))

    def _parts(self) -> tuple[str, ...]:
        """Return the files of the train and the test part; none where `path` is the file of all ratings."""
        train, test = self.train_path, self.test_path
        if self.path and (train or test):
            raise SettingError(
                "path", "a path beside train_path or test_path", "path alone, or the other two"
            )
        if train and test:
            return train, test
        if not (self.path or train or test):
            raise SettingError("path", "missing", "the file of ratings, or train_path and test_path")
        if train or test:
            missing = "test_path" if train else "train_path"
            raise SettingError(missing, "missing", "train_path and test_path, or path alone")
        return ()

    @property
    def public_items(self) -> str:
        """The columns of the file of items, if there is one; see `Dataset.public_items`."""
        return "" if self.items is None else json.dumps(as_values(self.items))

    def catalogue(self, item_ids: AnyArray) -> Catalogue | None:
        """Return the data about the items if there is a file of them; see `Dataset.catalogue`."""
        if self.items is None:
            return None
        with within("items"):
            return self.items.read().catalogue(item_ids)
