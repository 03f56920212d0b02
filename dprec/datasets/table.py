"""Ratings in any delimited text file, such as the one that `Ratings.to_csv` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.datasets.base import FileDataset, locate
from dprec.datasets.column_names import ROLES, Role, required_column
from dprec.datasets.columns import RatingColumns
from dprec.datasets.delimited import first_cells, read_rows
from dprec.datasets.item_columns import ItemColumns
from dprec.datasets.layout import Layout
from dprec.errors import SettingError, within
from dprec.options import option
from dprec.rating_rows import RatingRows
from dprec.ratings import Ratings


@dataclass(frozen=True, kw_only=True)
class DelimitedColumns(RatingColumns, FileDataset):
    """Base of the data sets whose settings describe the layout of a text file; see `RatingColumns`."""

    has_header: bool = option("Whether the first line names the columns; if not, give positions.", True)
    separator: str = option(
        "What separates the columns: ',', ';', a tab, '::', ... or 'whitespace' for any blanks.", ","
    )
    own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("user_column", "item_column", "rating_column"):
            column = getattr(self, name)
            if isinstance(column, str) and not self.has_header:
                raise SettingError(name, repr(column), "a position counted from 1, as there is no header")

    def read(self, path: str) -> RatingRows:
        """Read one file; an InputError names the line of what cannot be read."""
        file = locate(path)
        layout = Layout(separator=self.separator, header=self.has_header)
        first = first_cells(file, self.separator)
        user, item, rating = (self._column(role, first, str(file)) for role in ROLES)
        return read_rows(file, replace(layout, user=user, item=item, rating=rating))

    def _column(self, role: Role, first: Sequence[str], source: str) -> str | int:
        """Return a column as configured, or else by its name, or in the usual order without a header."""
        configured: str | int | None = getattr(self, f"{role}_column")
        if configured is not None or len(first) == 1:
            return configured or 1
        if not self.has_header:
            return ROLES.index(role) + 1
        return required_column(role, first, f"{source}, line 1") + 1


@dataclass(frozen=True, kw_only=True)
class DelimitedTable(DelimitedColumns):
    """Any delimited text file with a user, an item and a rating on each line."""

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
