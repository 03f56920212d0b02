"""Ratings in delimited text files and Parquet tables, and public data about users and items in text files."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import AnyArray, Bools, Floats
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import Options, as_tuple, as_values, option
from dprec.crossdomain import joined
from dprec.datasets.base import GIVEN, VALIDATION, Dataset, locate, read_parts, united
from dprec.datasets.columns import (
    ROLES,
    RatingColumns,
    check_layout,
    column_place,
    find_column,
    found_separator,
    is_number,
    split_line,
)
from dprec.datasets.delimited import (
    MOST_COLUMNS,
    Cells,
    TextLayout,
    first_cells,
    is_parquet,
    lines_of,
    read_columns,
    read_rows,
    readable,
)
from dprec.datasets.held import present, table_rows
from dprec.errors import InputError, SettingError, within
from dprec.ratings import Duplicates, RatingRows, Ratings, RatingScale

_FIRST = 20
"""Lines by which the layout of a file is found."""

Columns = Annotated[tuple[str | int, ...], BeforeValidator(as_tuple)]
"""Columns of a file: names in the header, or positions counted from 1."""

_MOST_ABOUT_USERS = 100
"""Columns of a users' table; what is read of one takes up to 255 bytes for each user."""


@dataclass(frozen=True, kw_only=True)
class UserColumns(Options):
    """A delimited text file with public data about a user on each line.

    A column whose cells are all numbers, or nothing where one is unknown, holds numbers; any other texts.
    """

    path: str = option("The file of users.")
    user_column: str | int | None = option(
        "Users' column: its name in the header, or its position from 1; by default user, userId, ..., and "
        "without a header the first.",
        None,
    )
    columns: Columns = option("The columns that are read; by default all others.", ())
    has_header: bool = option("Whether the first line names the columns; if not, they are 1, 2, ...", True)
    separator: str | None = option(
        "What separates the columns: ',', ';', 'tab', '::', ...; by default what divides the first lines "
        "alike.",
        None,
    )

    def read(self, user_ids: AnyArray) -> UsersTable:
        """Read what is known of some users; raises InputError for a line or a column that cannot be read."""
        path = locate(self.path)
        separator = self.separator or found_separator(lines_of(path, _FIRST))
        layout = TextLayout(separator=separator, header=self.has_header)
        first = first_cells(path, layout.separator)
        names = [name.strip() if self.has_header else str(n) for n, name in enumerate(first, 1)]
        source = f"{path}, line 1"
        if self.user_column is not None:
            user = column_place(self.user_column, names, source)
        elif (place := find_column("user", names) if self.has_header else 0) is None:
            found = f"{source}: no column of users' identifiers by its name"
            raise SettingError("user_column", found, "the name of a column, or its position from 1")
        else:
            user = place
        chosen = [column_place(column, names, source) for column in self.columns]
        chosen = chosen or [place for place in range(len(names)) if place != user]
        told = [names[place] for place in (user, *chosen)]
        repeated = [name for name in told if told.count(name) > 1]
        if repeated:
            raise InputError(source, f"column {repeated[0]!r} twice", "each column once")
        if not 0 < len(chosen) <= _MOST_ABOUT_USERS:
            accepted = f"1 to {_MOST_ABOUT_USERS} beside the users', such as users.columns=[age, gender]"
            raise InputError(source, f"{len(chosen)} columns", accepted)
        return users_of(user_ids, path, layout, user + 1, {names[place]: place + 1 for place in chosen})


def users_of(
    user_ids: AnyArray, path: Path, layout: TextLayout, user: int, columns: dict[str, int]
) -> UsersTable:
    """Read columns of a file about users, by names of ours and positions from 1."""
    wanted: list[tuple[str | int, Cells]] = [(user, "identifier")]
    wanted += [(place, "text or nothing") for place in columns.values()]
    users, *texts = read_columns(path, layout, wanted)
    values = {}
    for name, cells in zip(columns, texts, strict=True):
        distinct, places = np.unique(cells, return_inverse=True)
        known = distinct.tolist()
        values[name] = cells
        if all(is_number(text) for text in known if text) and known != [""]:
            values[name] = np.array([float(text) if text else np.nan for text in known])[places]
    return UsersTable.of_rows(user_ids, users, values, str(path), layout.header + 1)


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

    def read(self, item_ids: AnyArray) -> Catalogue:
        """Read what is known of some items.

        Raises InputError for a line that cannot be read, no columns, or over 500 categories.
        """
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
        columns = (
            np.column_stack([np.zeros((items.size, 0)), *numbers]),
            np.column_stack([np.zeros((items.size, 0), dtype=np.bool_), *(table for table, _ in tables)]),
        )
        names = [*map(str, self.numbers)], [name for _, names in tables for name in names]
        return Catalogue.of_rows(item_ids, items, columns, names, str(path), self.has_header + 1)


def categories_of(rows: Iterable[Collection[str]], column: str, source: str) -> tuple[Bools, tuple[str, ...]]:
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


@dataclass(frozen=True, kw_only=True)
class FileDataset(Dataset):
    """Base of the data sets that are read from files."""

    path: str = option("The folder of the data set, or its file of ratings.")
    duplicates: Literal["error", "last"] = option(
        "What to do if a user rates an item twice: 'error' refuses, 'last' keeps the later line.", "error"
    )
    users: UserColumns | None = option(
        "A file of public data about the users, such as their age, or the epsilon that each chose.", None
    )

    def distributed_users(self, user_ids: AnyArray) -> UsersTable | None:
        """Return what the distributor says of the users; None without any."""
        return None

    def users_table(self, user_ids: AnyArray) -> UsersTable | None:
        """Return what is known of the users; a column of `users` counts before one of the distributor's."""
        table = self.distributed_users(user_ids)
        if self.users is None:
            return table
        with within("users"):
            own = self.users.read(user_ids)
        return own if table is None else UsersTable({**table.columns, **own.columns}, own.n_users)


@dataclass(frozen=True, kw_only=True)
class DelimitedDataset(FileDataset):
    """Base of the data sets that are one text file in a fixed layout."""

    file: ClassVar[str]
    layout: ClassVar[TextLayout]
    documented: ClassVar[RatingScale]

    def load(self) -> Ratings:
        """Return all ratings; an InputError names the file and line of what cannot be read."""
        return self._loaded(timed=False)

    def load_timed(self) -> Ratings:
        """Return all ratings with their times; see `Dataset.load_timed`."""
        return super().load_timed() if self.layout.timestamp is None else self._loaded(timed=True)

    def _loaded(self, *, timed: bool) -> Ratings:
        rows = read_rows(locate(self.path, self.file), self.layout, timed=timed)
        return Ratings.from_rows(rows, self.documented, duplicates=self.duplicates)


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

    def scale(self, values: Floats, source: str, *, counted: bool = False) -> RatingScale:
        """Return the scale; see `RatingColumns.scale`. An InputError names the file first."""
        with _file_first(source):
            return super().scale(values, source, counted=counted or self.positive is not None)

    def read(self, path: str, *, timed: bool = False) -> RatingRows:
        """Read one file, with the times of the ratings if asked; an InputError names the line at fault."""
        file = locate(path)
        if is_parquet(file):
            import polars as pl

            with readable(file):
                header = list(pl.read_parquet_schema(file))
                names = [header[place] for place in self.places(header, str(file), timed=timed)]
                frame = pl.scan_parquet(file, glob=False).select(names).collect()
            columns: list[AnyArray | None]
            columns = [present(frame[name], f"{file}, column {name!r}") for name in names]
            if not self.has_ratings(header):
                columns.insert(2, None)
            rows = table_rows(columns, str(file))
        else:
            rows = read_rows(file, self.layout_of(file, timed=timed), timed=timed)
        return rows if np.isnan(rows.values).all() else rows.without(self.missing)

    def layout_of(self, file: Path, *, timed: bool = False) -> TextLayout:
        """Return where a text has what, by its first lines; the place of times only if they are asked for."""
        lines, start = lines_of(file, _FIRST), f"{file}, line 1"
        layout = TextLayout(separator=self.separator or found_separator(lines))
        rows = [split_line(line, layout.separator) for line in lines if line.strip()]
        if rows and re.fullmatch(r"\d+:", lines[0]):
            raise InputError(start, f"{lines[0]!r}, with the ratings of a film below it", _LISTED)
        if not rows or not 1 < len(rows[0]) <= MOST_COLUMNS:
            return layout
        first = rows[0]
        columns = self.user_column, self.item_column, self.rating_column, self.timestamp_column
        named = [find_column(role, first) is not None for role in ROLES]
        if {*columns, self.low, self.high} == {None} and not any(named[1:]):
            check_layout(rows, layout.separator, str(file))
        # What the columns of a file without a header hold, in the usual order.
        rated = self.has_ratings([""] * len(first))
        usual = [*(ROLES if rated else ROLES[:2]), "timestamp", *[""] * len(first)][: len(first)]
        header = self.has_header
        if header is None:
            header = any(isinstance(column, str) for column in columns) or (named[0] and named[1])
            if not header and "rating" in usual:
                place = int(self.rating_column or 3)
                # A number with a decimal comma is no name; the reader says what is wrong with it.
                header = place <= len(first) and not is_number(first[place - 1].replace(",", "."))
        names = first if header else usual
        if timed and not header and self.timestamp_column is None and "timestamp" not in names:
            raise InputError(start, "no column of times", "--set dataset.timestamp_column=...")
        user, item, *others = (place + 1 for place in self.places(names, start, timed=timed))
        rating = others.pop(0) if self.has_ratings(names) else None
        timestamp = others[0] if others else None
        return replace(layout, header=header, user=user, item=item, rating=rating, timestamp=timestamp)


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
    import polars as pl

    table = DelimitedTable(path=path)
    try:
        file = locate(path)
        if not is_parquet(file):
            return table.layout_of(file).rating is None
        with readable(file):
            return not table.has_ratings(list(pl.read_parquet_schema(file)))
    except InputError:
        return False


_PATHS = ("path", "train_path", "test_path", "validation_path")

_TESTED = {GIVEN: "test", VALIDATION: "validation"}
"""The part beside that of training, by the name of a division."""

UNRATED = "unrated"
"""Beside the parts of a folder: pairs of users and items without a rating in any of them."""


@dataclass(frozen=True, kw_only=True)
class DelimitedTable(DelimitedColumns):
    """Any table with a user, an item and a rating on each line: delimited text, also packed, or Parquet.

    A train and a test part in two files are `train_path` and `test_path`, in place of `path`; or train.csv
    and test.csv, perhaps with a validation.csv, in the folder at `path`. They are the predefined split
    "given".
    """

    kind: Literal["csv"] = "csv"
    path: str = option("The file, or the folder of the parts; without it, train_path and test_path.", "")
    train_path: str | None = option("The file of the ratings to learn from.", None)
    test_path: str | None = option("The file of the ratings to test on.", None)
    validation_path: str | None = option(
        "The file of the ratings that judge the trials of a tuning, and are in neither part of a run.", None
    )
    items: ItemColumns | None = option("A file of public data about the items.", None)

    def fold_names(self) -> tuple[str, ...]:
        """Return the divisions that are given, if the parts are in files of their own."""
        files = self._files()
        return tuple(fold for fold, part in _TESTED.items() if part in files)

    def load(self) -> Ratings:
        """Return all ratings; InputError names the file and line of what cannot be read."""
        return united(*self._read().values()) if self._parts() else self._loaded(timed=False)

    def load_timed(self) -> Ratings:
        """Return all ratings with their times; see `Dataset.load_timed`."""
        return super().load_timed() if self._parts() else self._loaded(timed=True)

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the ratings of two files; see `Dataset.load_fold`."""
        self.check_fold(fold)
        parts = self._read()
        return parts["train"], parts[_TESTED[fold]]

    def _loaded(self, *, timed: bool) -> Ratings:
        rows = self.read(self.path, timed=timed)
        scale = self.scale(rows.values, rows.source)
        return Ratings.from_rows(rows, scale, duplicates=self._duplicates(scale))

    def _read(self) -> dict[str, Ratings]:
        """Return the ratings of all parts, in one space of users and items."""
        rows = {part: self.read(path) for part, path in self._parts().items()}
        unrated = rows.pop(UNRATED, None)
        spaces = [] if unrated is None else [(unrated.users, unrated.items)]
        values = np.concatenate([part.values for part in rows.values()])
        scale = self.scale(values, ", ".join(part.source for part in rows.values()))
        parts = read_parts(list(rows.values()), scale, self._duplicates(scale), spaces)
        return dict(zip(rows, parts, strict=True))

    def _duplicates(self, scale: RatingScale) -> Duplicates:
        """Return what to do with a repeated pair: it contradicts nothing where there is no rating."""
        return "last" if scale.implicit else self.duplicates

    def _files(self) -> dict[str, str]:
        """Return the files of the parts by their names; if none are given, those in the folder at `path`."""
        files = {name.removesuffix("_path"): getattr(self, name) for name in _PATHS[1:]}
        if not any(files.values()):
            folder = os.path.expanduser(self.path)
            files = {part: os.path.join(folder, f"{part}.csv") for part in (*files, UNRATED)}
            files = {part: path for part, path in files.items() if self.path and os.path.isfile(path)}
            return files if {"train", "test"} <= files.keys() else {}
        return {part: path for part, path in files.items() if path}

    def _parts(self) -> dict[str, str]:
        """Return the same, once the settings go together; nothing where `path` is the file of all ratings."""
        given = tuple(name for name in _PATHS if getattr(self, name))
        if given not in (_PATHS[:1], _PATHS[1:3], _PATHS[1:]):
            accepted = "path, the file of ratings; or train_path and test_path, perhaps with validation_path"
            raise SettingError("path", " and ".join(given) or "missing", accepted)
        return self._files()

    @property
    def public_items(self) -> str:
        """The columns of the file of items, if there is one; see `Dataset.public_items`."""
        return "" if self.items is None else json.dumps(as_values(self.items))

    def catalogue(self, item_ids: AnyArray) -> Catalogue | None:
        """Return the data about the items if there is a file of them; see `Dataset.catalogue`."""
        if self.items is None:
            return None
        with within("items"):
            return self.items.read(item_ids)


@dataclass(frozen=True, kw_only=True)
class DelimitedDomains(DelimitedColumns):
    """Two delimited text files in one layout: ratings of the source's items, and of the target's.

    The file at `path` is the source's, that at `target_path` the target's. The scale is that of both
    files together; users with the same identifier are the same user.
    """

    kind: Literal["csv-domains"] = "csv-domains"
    target_path: str = option("The file of the target domain's ratings.")

    def load(self) -> Ratings:
        """Return the ratings of both files; InputError names the file and line at fault."""
        tables = [self.read(path) for path in (self.path, self.target_path)]
        values = np.concatenate([table.values for table in tables])
        scale = self.scale(values, f"{tables[0].source}, {tables[1].source}")
        source, target = (Ratings.from_rows(table, scale, duplicates=self.duplicates) for table in tables)
        return joined(source, target, ("source", "target"))
