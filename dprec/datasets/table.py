"""Ratings in any delimited text file, such as the one that `Ratings.to_csv` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.datasets.base import FileDataset, locate
from dprec.datasets.columns import RatingColumns
from dprec.datasets.compression import is_parquet
from dprec.datasets.delimited import first_lines, read_rows
from dprec.datasets.held import table_rows
from dprec.datasets.item_columns import ItemColumns
from dprec.datasets.layout import Layout
from dprec.datasets.parquet import column_names, read_table
from dprec.datasets.sniffing import found_separator, is_number, split_line
from dprec.errors import SettingError, within
from dprec.options import option
from dprec.rating_rows import RatingRows
from dprec.ratings import Ratings


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
        for name in ("user_column", "item_column", "rating_column"):
            column = getattr(self, name)
            if isinstance(column, str) and self.has_header is False:
                raise SettingError(name, repr(column), "a position counted from 1, as there is no header")

    def read(self, path: str) -> RatingRows:
        """Read one file; an InputError names the line of what cannot be read."""
        file = locate(path)
        rows = self._parquet(file) if is_parquet(file) else self._text(file)
        return rows.without(self.missing)

    def _parquet(self, file: Path) -> RatingRows:
        places = self.places(column_names(file), str(file))
        return table_rows(read_table(file, places), str(file))

    def _text(self, file: Path) -> RatingRows:
        lines = first_lines(file)
        separator = self.separator or found_separator(lines)
        layout = Layout(separator=separator)
        first = split_line(lines[0], layout.separator) if lines else []
        header = self._has_header(first) if self.has_header is None else self.has_header
        if len(first) > 1:
            places = self.places(first, f"{file}, line 1") if header else self._positions()
            user, item, rating = (place + 1 for place in places)
            layout = replace(layout, header=header, user=user, item=item, rating=rating)
        return read_rows(file, layout)

    def _has_header(self, first: Sequence[str]) -> bool:
        """Return whether a first line names the columns rather than holding a rating."""
        columns = self.user_column, self.item_column, self.rating_column
        if any(isinstance(column, str) for column in columns):
            return True
        place = self._positions()[-1]
        return place < len(first) and not is_number(first[place])

    def _positions(self) -> list[int]:
        """Return the places of users, items and ratings, from 0, in a file without header."""
        columns = self.user_column, self.item_column, self.rating_column
        return [column - 1 if isinstance(column, int) else usual for usual, column in enumerate(columns)]


@dataclass(frozen=True, kw_only=True)
class DelimitedTable(DelimitedColumns):
    """Any table with a user, an item and a rating on each line: delimited text, also packed, or Parquet."""

    kind: Literal["csv"] = "csv"
    items: ItemColumns | None = option("A file of public data about the items.", None)

    def load(self) -> Ratings:
        """Return all ratings; InputError names the file and line of what cannot be read."""
        rows = self.read(self.path)
        scale = self.scale(rows.values, rows.source)
        return Ratings.from_rows(rows, scale, duplicates=self.duplicates)

    def catalogue(self, item_ids: NDArray[Any]) -> Catalogue | None:
        """Return the data about the items if there is a file of them; see `Dataset.catalogue`."""
        if self.items is None:
            return None
        with within("items"):
            return self.items.read().catalogue(item_ids)
