"""Public data about items in a delimited text file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from dprec.catalogue import ItemRows
from dprec.components import Options, as_tuple, option
from dprec.datasets.base import Layout, locate
from dprec.datasets.delimited import Cells, read_columns
from dprec.errors import InputError, SettingError

_MOST_CATEGORIES = 500
"""More would be identifiers rather than categories, and fill the memory."""

_MOST_NUMBERS = 200
"""The table of items that devices receive has room for 254."""

Columns = Annotated[tuple[str | int, ...], BeforeValidator(as_tuple)]
"""Columns of a file: names in the header, or positions counted from 1."""


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
        """Read the file.

        Raises
        ------
        InputError
            Naming the line of what cannot be read; when no columns are asked for, or there are more than 500
            categories.
        """
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


def categories_of(
    rows: Iterable[Sequence[str]], column: str, source: str
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which category each row is in, and their names.

    Parameters
    ----------
    rows : iterable of sequences of str
        The categories of each row; empty names are ignored.
    column : str
        What the categories are, for their names.
    source : str
        The file's name.

    Returns
    -------
    table : ndarray of bool, shape (rows, categories)
        In the order of the names.
    names : tuple of str
        Such as "genres: Drama".

    Raises
    ------
    InputError
        When there are more than 500.
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
