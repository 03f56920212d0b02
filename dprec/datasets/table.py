"""Ratings in any delimited text file or Parquet table, and public data about items in one."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats
from dprec.catalogue import Catalogue, ItemRows
from dprec.components import Options, as_values, option
from dprec.datasets.base import GIVEN, TextLayout, locate, read_fold, united
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
from dprec.datasets.delimited import (
    MOST_COLUMNS,
    Cells,
    first_lines,
    is_parquet,
    read_columns,
    read_rows,
    readable,
)
from dprec.datasets.files import Columns, FileDataset
from dprec.datasets.held import present, table_rows
from dprec.errors import InputError, SettingError, within
from dprec.ratings import Duplicates, RatingRows, Ratings, RatingScale

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

    def read(self) -> ItemRows:
        """Read the file; raises InputError for a line that cannot be, no columns, or over 500 categories."""
        if not self.numbers and not self.categories:
            raise SettingError("numbers", "no columns", "columns here, under categories, or both")
        path = locate(self.path)
        layout = TextLayout(separator=self.separator, header=self.has_header)
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

    A text file may be packed with gzip or zstd. Of Parquet, the text settings do not apply.
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

    written = FileDataset.written

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
        if is_parquet(file):
            rows = self._parquet(file, timed)
        else:
            rows = read_rows(file, self._layout(file, timed), timed=timed)
        return rows if np.isnan(rows.values).all() else rows.without(self.missing)

    def _parquet(self, file: Path, timed: bool) -> RatingRows:
        import polars as pl

        with readable(file):
            header = list(pl.read_parquet_schema(file))
            names = [header[place] for place in self.places(header, str(file), timed=timed)]
            frame = pl.scan_parquet(file, glob=False).select(names).collect()
        columns: list[AnyArray | None]
        columns = [present(frame[name], f"{file}, column {name!r}") for name in names]
        if not self.has_ratings(header):
            columns.insert(2, None)
        return table_rows(columns, str(file))

    def holds_pairs(self) -> bool:
        """Return whether the beginning of the file at `path` shows pairs without ratings."""
        import polars as pl

        file = locate(self.path)
        if not is_parquet(file):
            return self._layout(file, timed=False).rating is None
        with readable(file):
            return not self.has_ratings(list(pl.read_parquet_schema(file)))

    def _layout(self, file: Path, timed: bool) -> TextLayout:
        """Return where a text has what, by its first lines; the place of times only if they are asked for."""
        lines, start = first_lines(file), f"{file}, line 1"
        layout = TextLayout(separator=self.separator or found_separator(lines))
        rows = [split_line(line, layout.separator) for line in lines if line.strip()]
        if rows and re.fullmatch(r"\d+:", lines[0]):
            raise InputError(start, f"{lines[0]!r}, with the ratings of a film below it", _LISTED)
        if not rows or not 1 < len(rows[0]) <= MOST_COLUMNS:
            return layout
        first, settings = rows[0], {*self._columns, self.low, self.high}
        if settings == {None} and {find_column(role, first) for role in ROLES[1:]} == {None}:
            check_layout(rows, layout.separator, str(file))
        usual = self._usual(len(first))
        header = self._has_header(first, usual) if self.has_header is None else self.has_header
        names = first if header else usual
        if timed and not header and self.timestamp_column is None and "timestamp" not in names:
            raise InputError(start, "no column of times", "--set dataset.timestamp_column=...")
        user, item, *others = (place + 1 for place in self.places(names, start, timed=timed))
        rating = others.pop(0) if self.has_ratings(names) else None
        timestamp = others[0] if others else None
        return replace(layout, header=header, user=user, item=item, rating=rating, timestamp=timestamp)

    @property
    def _columns(self) -> tuple[str | int | None, ...]:
        return self.user_column, self.item_column, self.rating_column, self.timestamp_column

    def _usual(self, width: int) -> list[str]:
        """Return what the columns of a file without a header hold, in the usual order."""
        roles = ROLES if self.has_ratings([""] * width) else ROLES[:2]
        return [*roles, "timestamp", *[""] * width][:width]

    def _has_header(self, first: Sequence[str], usual: Sequence[str]) -> bool:
        """Return whether a first line names the columns rather than holding a rating."""
        if any(isinstance(column, str) for column in self._columns):
            return True
        if find_column("user", first) is not None and find_column("item", first) is not None:
            return True
        if not self.has_ratings(usual):
            return False
        place = int(self.rating_column or usual.index("rating") + 1)
        # A number with a decimal comma is no name; the reader says what is wrong with it.
        return place <= len(first) and not is_number(first[place - 1].replace(",", "."))


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
        return DelimitedTable(path=path).holds_pairs()
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
        parts = [part for part in (self.train_path, self.test_path) if part]
        if len(parts) != (0 if self.path else 2):
            given = [name for name in ("path", "train_path", "test_path") if getattr(self, name)]
            accepted = "path, the file of ratings; or train_path and test_path"
            raise SettingError("path", " and ".join(given) or "missing", accepted)
        return tuple(parts)

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
