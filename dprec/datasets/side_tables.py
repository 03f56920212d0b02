"""Public data about users and items, in delimited text files beside the ratings."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import AnyArray, Bools
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import Options, as_tuple, option
from dprec.datasets.base import locate
from dprec.datasets.columns import column_place, find_column
from dprec.datasets.delimited import Cells, TextLayout, first_cells, lines_of, read_columns
from dprec.datasets.lines import LINES_LOOKED_AT, found_separator, is_number
from dprec.errors import InputError, SettingError

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
        separator = self.separator or found_separator(lines_of(path, LINES_LOOKED_AT))
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
        column_names = [names[place] for place in (user, *chosen)]
        repeated = [name for name in column_names if column_names.count(name) > 1]
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
        distinct_texts = distinct.tolist()
        values[name] = cells
        if all(is_number(text) for text in distinct_texts if text) and distinct_texts != [""]:
            values[name] = np.array([float(text) if text else np.nan for text in distinct_texts])[places]
    return UsersTable.of_rows(user_ids, users.values, values, str(path), layout.header + 1)


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
            np.column_stack([np.zeros((items.places.size, 0)), *numbers]),
            np.column_stack(
                [np.zeros((items.places.size, 0), dtype=np.bool_), *(table for table, _ in tables)]
            ),
        )
        names = [*map(str, self.numbers)], [name for _, names in tables for name in names]
        return Catalogue.of_rows(item_ids, items.values, columns, names, str(path), self.has_header + 1)


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
