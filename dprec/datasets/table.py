"""Ratings in tables: delimited text, JSON Lines and Parquet, in one file or in one for each part."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from dprec.arrays import AnyArray, Floats
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import as_values, option
from dprec.crossdomain import joined
from dprec.datasets.base import (
    GIVEN,
    VALIDATION,
    Dataset,
    locate,
    passing,
    read_parts,
    typed_condition,
    united,
    without_times,
)
from dprec.datasets.columns import ABSENT, ROLES, RatingColumns, candidates, column_place, find_column
from dprec.datasets.delimited import (
    MOST_COLUMNS,
    TextLayout,
    lines_of,
    read_rows,
    readable,
    typed_table,
)
from dprec.datasets.foreign import check_layout, refuse_text
from dprec.datasets.lines import (
    LINES_LOOKED_AT,
    found_separator,
    is_number,
    is_time,
    is_value,
    split_line,
)
from dprec.datasets.side_tables import ItemColumns, UserColumns
from dprec.errors import InputError, SettingError, within
from dprec.rating_rows import Duplicates, RatingRows, Reading
from dprec.ratings import Ratings, RatingScale

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class FileDataset(Dataset):
    """Base of the data sets that are read from files."""

    path: str = option("The folder of the data set, or its file of ratings.")
    duplicates: Duplicates = option(
        "What becomes of an item that a user rates twice: 'error' refuses; 'first' and 'last' go by time, "
        "where there are times, and by line; 'sum', 'mean' and 'max' are of all its ratings.",
        "error",
    )
    users: UserColumns | None = option(
        "A file of public data about the users, such as their age, or the epsilon that each chose.", None
    )

    @property
    def by_time(self) -> bool:
        """Whether times decide which of two ratings of an item counts."""
        return self.duplicates in ("first", "last")

    def agreeing(self, rows: RatingRows) -> RatingRows:
        """Return one row for each pair; see `RatingRows.agreeing`."""
        return rows.agreeing(self.duplicates, passing(self.positive))

    def distributed_users(self, user_ids: AnyArray) -> UsersTable | None:
        """Return what the distributor says of the users; None without any."""
        return None

    def users_table(self, user_ids: AnyArray) -> UsersTable | None:
        """Return what is known of the users; a column of `users` counts before one of the distributor's."""
        table = self.distributed_users(user_ids)
        if self.users is None:
            return table
        with within("users"):
            configured = self.users.read(user_ids)
        if table is None:
            return configured
        return UsersTable({**table.columns, **configured.columns}, configured.n_users)


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
        rows = read_rows(locate(self.path, self.file), self.layout, timed=timed or self.by_time)
        ratings = Ratings.from_rows(self.agreeing(rows), self.documented)
        return ratings if timed else without_times(ratings)


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
    where: str | None = option(
        "Which rows are read: a condition on columns in SQL, such as \"event = 'play' AND hours >= 2\"; "
        "without a header, the columns are column_1, column_2, ...",
        None,
    )
    own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("user_column", "item_column", "rating_column", "timestamp_column"):
            column = getattr(self, name)
            if isinstance(column, str) and column != ABSENT and self.has_header is False:
                raise SettingError(name, repr(column), "a position counted from 1, as there is no header")

    written = FileDataset.written

    def has_ratings(self, header: Sequence[str]) -> bool:
        """Return whether there are ratings: nor where rows are chosen and no column is known to hold them."""
        chosen = self.where is not None and self.rating_column is None and not candidates("rating", header)
        named = all(find_column(role, header) is not None for role in ROLES[:2])
        return super().has_ratings(header) and not (chosen and named)

    def scale(self, values: Floats, source: str, *, counted: bool = False) -> RatingScale:
        """Return the scale; see `RatingColumns.scale`. An InputError names the file first."""
        with _file_first(source):
            return super().scale(values, source, counted=counted or self.positive is not None)

    def leaving_out_cut(self, reading: Reading | None, users: bool) -> str:
        """Return the condition that leaves such rows out; see `RatingColumns.leaving_out_cut`."""
        column = "" if reading is None else reading.users if users else reading.items
        condition = typed_condition(column, "NOT LIKE '%+%'")
        return f"; or, without these rows, {condition}"

    def read(self, path: str, *, timed: bool = False) -> RatingRows:
        """Read one file, a row per pair, with times if asked or needed; an InputError names the line."""
        file = locate(path)
        with _file_first(str(file)):
            layout, typed = self.layout_of(file, timed=timed)
            timed = timed or self.by_time
            return self.agreeing(
                self.cleaned(read_rows(file, layout, timed=timed, where=self.where, typed=typed))
            )

    def layout_of(self, file: Path, *, timed: bool = False) -> tuple[TextLayout, pl.LazyFrame | None]:
        """Return where a file has what, and its table if its columns have types.

        Of a text, by its first lines. Raises SettingError, or InputError for what is no table.
        """
        with readable(file):
            typed = typed_table(file)
            names = None if typed is None else typed.collect_schema().names()
        if typed is not None and names is not None:
            with readable(file):
                dated = _dated(_first_texts(typed))
            read = self._with_times(names, [names.index(name) for name in dated])
            return read._placed(TextLayout(header=True), names, str(file), timed), typed
        lines, start = lines_of(file, LINES_LOOKED_AT), f"{file}, line 1"
        refuse_text(file, lines)
        layout = TextLayout(separator=self.separator or found_separator(lines))
        rows = [split_line(line, layout.separator) for line in lines if line.strip()]
        if not rows or not 1 < len(rows[0]) <= MOST_COLUMNS:
            return layout, None
        first, columns = rows[0], [self.user_column, self.item_column, self.rating_column]
        if {*columns, self.timestamp_column, self.low, self.high} == {None} and not any(
            candidates(role, first) for role in ROLES[1:]
        ):
            check_layout(rows, layout.separator, str(file))
        header = self._names_columns(rows) if self.has_header is None else self.has_header
        layout = replace(layout, header=header)
        if not header:
            self._check_unnamed(rows, start)
            return self._placed(layout, self._usual(rows), start, timed), None
        columns_below = dict(enumerate(zip(*rows[1:], strict=False)))
        numeric = [place for place, cells in columns_below.items() if all(map(is_number, cells))]
        read = self._with_times(first, _dated(columns_below))
        try:
            return read._placed(layout, first, start, timed, numeric if columns_below else None), None
        except SettingError as error:
            raise self._without_header(error, first) from None

    def _with_times(self, names: Sequence[str], dated: Sequence[int]) -> Self:
        """Return the settings with the one column that holds dates as that of times, if none is named so."""
        configured = {self.user_column, self.item_column, self.rating_column}
        named = {find_column(role, names) for role in ROLES}
        free = [
            place for place in dated if not configured & {place + 1, names[place].strip()} | named & {place}
        ]
        if self.timestamp_column is not None or candidates("timestamp", names) or len(free) != 1:
            return self
        return replace(self, timestamp_column=free[0] + 1)

    def _names_columns(self, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether the first line of a text is a header."""
        first, columns_below = rows[0], [*zip(*rows[1:], strict=False)]
        columns = self.user_column, self.item_column, self.rating_column, self.timestamp_column
        if any(isinstance(column, str) and column != ABSENT for column in columns):
            return True
        if all(candidates(role, first) for role in ROLES[:2]):
            return True
        texts_above = [
            place
            for place, cells in enumerate(columns_below)
            if not is_value(first[place]) and all(map(is_value, cells))
        ]
        if not self.has_ratings([""] * len(first)):
            return bool(texts_above) and not any(map(is_value, first))
        place = self.rating_column if isinstance(self.rating_column, int) else 3
        # A number with a decimal comma is no name; the reader says what is wrong with it.
        return place <= len(first) and not is_number(first[place - 1].replace(",", "."))

    def _usual(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Return what the columns of a text without a header hold, in the usual order."""
        width = len(rows[0])
        usual: list[str] = [*(ROLES if self.has_ratings([""] * width) else ROLES[:2])]
        columns = [*zip(*rows, strict=False)][len(usual) :]
        dated = [place for place, cells in enumerate(columns) if all(map(is_time, cells))]
        integers = [
            place for place, cells in enumerate(columns[:1]) if all(cell.strip().isdigit() for cell in cells)
        ]
        further = [""] * (width - len(usual))
        if times := [*dated, *integers]:
            further[times[0]] = "timestamp"
        return [*usual, *further]

    def _check_unnamed(self, rows: Sequence[Sequence[str]], source: str) -> None:
        """Refuse a text without a header whose columns are not those of the usual order."""
        if {self.user_column, self.item_column, self.rating_column, self.timestamp_column} != {None}:
            return
        columns = [*zip(*rows, strict=False)]
        kinds = [all(map(is_number, cells)) for cells in columns]
        times = [place for place, cells in enumerate(columns, 1) if all(map(is_time, cells))]
        texts = [place for place, numeric in enumerate(kinds, 1) if not numeric and place not in times]
        dates = [place for place in times[:1] if place < 3 and not kinds[place - 1]]
        if dates:
            settings = {"item_column": 3, "rating_column": ABSENT, "timestamp_column": dates[0]}
            found = f"dates in column {dates[0]}, where users and items are expected"
            raise InputError(source, found, f"such as {self.written(settings)}, or other positions")
        events = [place for place in texts if place > 3 and len(set(columns[place - 1])) <= 10]
        if events and kinds[2] and all(float(cell) > 1000 for cell in columns[2]):
            settings = {"rating_column": ABSENT, **({"timestamp_column": times[0]} if times else {})}
            event = columns[events[0] - 1][0].strip().replace("'", "''")
            chosen = typed_condition(f"column {events[0]}", f"= '{event}'")
            found = f"numbers such as {columns[2][0]} in column 3, where ratings are expected"
            raise InputError(source, found, f"{self.written(settings)} {chosen}, if lines are events")

    def _placed(
        self,
        layout: TextLayout,
        names: Sequence[str],
        source: str,
        timed: bool,
        numeric: Sequence[int] | None = None,
    ) -> TextLayout:
        """Return a layout with the positions of users, items, ratings and times, if there are any."""
        places = self.places(names, source, timed=timed, numeric=numeric)
        rated = self.has_ratings(names)
        times: int | None = places[-1] if timed else None
        if not timed and self.has_times(names):
            times = (
                find_column("timestamp", names)
                if self.timestamp_column is None
                else column_place(self.timestamp_column, names, source)
            )
            times = None if times in places else times
        user, item, *further = (place + 1 for place in places)
        timestamp = None if times is None else times + 1
        return replace(
            layout, user=user, item=item, rating=further[0] if rated else None, timestamp=timestamp
        )

    def _without_header(self, error: SettingError, first: Sequence[str]) -> SettingError:
        """Return an error of columns, or what to type if the first line is no header but a row."""
        numbers = [place for place, cell in enumerate(first, 1) if is_number(cell)]
        if self.has_header is not None or not numbers:
            return error
        rated = next((place for place in numbers if place > 2), 3)
        positions = self.written({"has_header": False, "rating_column": rated})
        return SettingError(error.key, error.found, f"{positions} if there is no header")


_Place = TypeVar("_Place", int, str)


def _dated(columns: Mapping[_Place, Sequence[str | None]]) -> list[_Place]:
    """Return which columns hold dates, and no numbers, in the first rows."""
    return [
        place
        for place, cells in columns.items()
        if cells and all(cell is not None and is_time(cell) and not is_number(cell) for cell in cells)
    ]


def _first_texts(typed: pl.LazyFrame) -> dict[str, list[str | None]]:
    """Return the first cells of the columns of a typed table as texts, by the columns' names."""
    import polars as pl

    plain = [name for name, kind in typed.collect_schema().items() if kind.is_temporal() or kind == pl.String]
    first = typed.select(plain).head(LINES_LOOKED_AT).collect()
    return first.cast(dict.fromkeys(plain, pl.String)).to_dict(as_series=False) if plain else {}


@contextmanager
def _file_first(source: str) -> Iterator[None]:
    """Name the file first, and what to type, where its contents leave a setting open."""
    try:
        yield
    except SettingError as error:
        behind = error.found.removeprefix(source)
        line, _, found = behind.partition(": ") if behind != error.found else ("", "", behind)
        raise InputError(source + line, found, error.accepted) from None


def holds_pairs(path: str) -> bool:
    """Return whether a file looks like one of pairs without ratings; False where it cannot be read."""
    return DelimitedTable(path=path).holds_sets


_PATHS = ("path", "train_path", "test_path", "validation_path")

_OF_NCF = ".train.rating"


def _parts_of_ncf(folder: str) -> dict[str, str]:
    """Return the files of the parts in the layout of NCF; nothing where there is not exactly one pair."""
    with suppress(OSError):
        names = [name.removesuffix(_OF_NCF) for name in os.listdir(folder) if name.endswith(_OF_NCF)]
        if len(names) == 1:
            return {part: os.path.join(folder, f"{names[0]}.{part}.rating") for part in ("train", "test")}
    return {}


_TESTED = {GIVEN: "test", VALIDATION: "validation"}
"""The part beside that of training, by the name of a division."""

UNRATED = "unrated"
"""Beside the parts of a folder: pairs of users and items without a rating in any of them."""


@dataclass(frozen=True, kw_only=True)
class DelimitedTable(DelimitedColumns):
    """Any table with a user, an item and a rating on each line: delimited text, also packed, or Parquet.

    A train and a test part in two files are `train_path` and `test_path`, in place of `path`; or train.csv
    and test.csv, perhaps with a validation.csv, in the folder at `path`; or the one pair of NAME.train.rating
    and NAME.test.rating there, as of NCF (He et al. [he2017]). They are the predefined split "given".
    """

    kind: Literal["csv"] = "csv"
    path: str = option("The file, or the folder of the parts; without it, train_path and test_path.", "")
    train_path: str | None = option("The file of the ratings to learn from.", None)
    test_path: str | None = option("The file of the ratings to test on.", None)
    validation_path: str | None = option(
        "The file of the ratings that judge the trials of a tuning, and are in neither part of a run.", None
    )
    items: ItemColumns | None = option("A file of public data about the items.", None)
    scale_is_public: bool = option("Whether low, high and step were known without the ratings.", True)

    def read_off(self) -> tuple[str, ...]:
        """Return the settings of the scale that ratings decided, perhaps those of an earlier data set."""
        return super().read_off() if self.scale_is_public else ("low", "high", "step")

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings as they are typed; a scale that is given anew is public."""
        declared = {} if self.scale_is_public or "low" not in settings else {"scale_is_public": True}
        return super().written({**settings, **declared})

    def fold_names(self) -> tuple[str, ...]:
        """Return the divisions that are given, if the parts are in files of their own."""
        files = self._files()
        return tuple(fold for fold, part in _TESTED.items() if part in files)

    @property
    def holds_sets(self) -> bool:
        """Whether its file, or that of its train part, looks like one of pairs; see `Dataset.holds_sets`."""
        try:
            layout, _ = self.layout_of(locate(self._files().get("train", self.path)))
        except InputError:  # which is raised again where it is read
            return False
        return super().holds_sets or layout.rating is None

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
        ratings = Ratings.from_rows(rows, self.scale(rows.values, rows.source))
        return ratings if timed else without_times(ratings)

    def _read(self) -> dict[str, Ratings]:
        """Return the ratings of all parts, in one space of users and items."""
        rows = {part: self.read(path) for part, path in self._parts().items()}
        unrated = rows.pop(UNRATED, None)
        spaces = [] if unrated is None else [(unrated.users.distinct, unrated.items.distinct)]
        values = np.concatenate([part.values for part in rows.values()])
        scale = self.scale(values, ", ".join(part.source for part in rows.values()))
        parts = map(without_times, read_parts(list(rows.values()), scale, spaces))
        return dict(zip(rows, parts, strict=True))

    def _files(self) -> dict[str, str]:
        """Return the files of the parts by their names; if none are given, those in the folder at `path`."""
        files = {name.removesuffix("_path"): getattr(self, name) for name in _PATHS[1:]}
        if not any(files.values()):
            folder = os.path.expanduser(self.path)
            named = {part: os.path.join(folder, f"{part}.csv") for part in (*files, UNRATED)}
            for paths in (named, _parts_of_ncf(folder)):
                files = {part: path for part, path in paths.items() if self.path and os.path.isfile(path)}
                if {"train", "test"} <= files.keys():
                    return files
            return {}
        return {part: path for part, path in files.items() if path}

    def _parts(self) -> dict[str, str]:
        """Return the same, once the settings go together; nothing where `path` is the file of all ratings."""
        configured = tuple(name for name in _PATHS if getattr(self, name))
        if configured not in (_PATHS[:1], _PATHS[1:3], _PATHS[1:]):
            accepted = "path, the file of ratings; or train_path and test_path, perhaps with validation_path"
            raise SettingError("path", " and ".join(configured) or "missing", accepted)
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
        source, target = (without_times(Ratings.from_rows(table, scale)) for table in tables)
        return joined(source, target, ("source", "target"))
