"""Data sets that are read from files, and the files of public data about their users."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import AnyArray
from dprec.catalogue import UserRows, UsersTable
from dprec.components import Options, as_tuple, option
from dprec.datasets.base import Dataset, TextLayout, locate
from dprec.datasets.columns import column_place, find_column, found_separator, is_number
from dprec.datasets.delimited import Cells, first_cells, first_lines, read_columns, read_rows
from dprec.errors import InputError, SettingError, within
from dprec.ratings import Ratings, RatingScale

Columns = Annotated[tuple[str | int, ...], BeforeValidator(as_tuple)]
"""Columns of a file: names in the header, or positions counted from 1."""

_MOST_COLUMNS = 100
"""Of a users' table; what is read of a column takes up to 255 bytes for each user."""


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

    def read(self) -> UserRows:
        """Read the file; raises InputError for a line that cannot be, or a column that is not there."""
        path = locate(self.path)
        separator = self.separator or found_separator(first_lines(path))
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
        if self.columns:
            chosen = [column_place(column, names, source) for column in self.columns]
        else:
            chosen = [place for place in range(len(names)) if place != user]
        told = [names[place] for place in (user, *chosen)]
        repeated = [name for name in told if told.count(name) > 1]
        if repeated:
            raise InputError(source, f"column {repeated[0]!r} twice", "each column once")
        if not 0 < len(chosen) <= _MOST_COLUMNS:
            accepted = f"1 to {_MOST_COLUMNS} beside the users', such as users.columns=[age, gender]"
            raise InputError(source, f"{len(chosen)} columns", accepted)
        return users_of(path, layout, user + 1, {names[place]: place + 1 for place in chosen})


def users_of(path: Path, layout: TextLayout, user: int, columns: dict[str, int]) -> UserRows:
    """Read columns of a file about users, by names of ours and positions from 1."""
    wanted: list[tuple[str | int, Cells]] = [(user, "identifier")]
    wanted += [(place, "text or nothing") for place in columns.values()]
    users, *texts = read_columns(path, layout, wanted)
    values = {name: _numbers_or_texts(cells) for name, cells in zip(columns, texts, strict=True)}
    return UserRows(users, values, str(path), 2 if layout.header else 1)


def _numbers_or_texts(cells: AnyArray) -> AnyArray:
    """Return a column as numbers, NaN for nothing, if all that is there are numbers; else as it is."""
    distinct, places = np.unique(cells, return_inverse=True)
    texts = distinct.tolist()
    if not all(is_number(text) for text in texts if text) or texts == [""]:
        return cells
    return np.array([float(text) if text else np.nan for text in texts])[places]


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

    def distributed_users(self) -> UserRows | None:
        """Return what the distributor says of the users; None without any."""
        return None

    def users_table(self, user_ids: AnyArray) -> UsersTable | None:
        """Return what is known of the users; a column of `users` counts before one of the distributor's."""
        distributed = self.distributed_users()
        table = None if distributed is None else distributed.table(user_ids)
        if self.users is None:
            return table
        with within("users"):
            own = self.users.read().table(user_ids)
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
