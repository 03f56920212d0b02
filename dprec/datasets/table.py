"""Ratings in any delimited text file, such as the one that `Ratings.to_csv` writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.datasets.base import FileDataset, locate
from dprec.datasets.delimited import read_rows
from dprec.datasets.item_columns import ItemColumns
from dprec.datasets.layout import Layout
from dprec.errors import InputError, SettingError, within
from dprec.options import option
from dprec.rating_rows import RatingRows
from dprec.ratings import MAX_LEVELS, Ratings, RatingScale

_CONTINUOUS_STEPS = 40
_LARGEST = 1e15
"""Greatest absolute rating: beyond it, floating point is too coarse to distinguish levels."""


@dataclass(frozen=True, kw_only=True)
class DelimitedColumns(FileDataset):
    """Base of the data sets whose settings describe the layout.

    The scale runs from `low` to `high` by `step`. What is not given is taken from the ratings: the
    least, the greatest, and the smallest distance between two different ones, which must then fit all.
    Give `low` and `high` if the ends of the scale may not occur in the data.
    """

    user_column: str | int = option("Users' column: its name in the header, or its position from 1.", "user")
    item_column: str | int = option("Items' column: its name in the header, or its position from 1.", "item")
    rating_column: str | int = option("Ratings' column: its name in the header, or its position.", "rating")
    has_header: bool = option("Whether the first line names the columns; if not, give positions.", True)
    separator: str = option(
        "What separates the columns: ',', ';', a tab, '::', ... or 'whitespace' for any blanks.", ","
    )
    low: float | None = option("Least rating of the scale; by default the least that occurs.", None)
    high: float | None = option("Greatest rating of the scale; by default the greatest that occurs.", None)
    step: float | None = option(
        "Distance between two levels of the scale; by default the smallest distance between two ratings, "
        "or a fortieth of the range if the scale is continuous.",
        None,
        gt=0,
    )
    continuous: bool = option("Whether ratings lie between the levels too, as on a slider.", False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("user_column", "item_column", "rating_column"):
            column = getattr(self, name)
            if isinstance(column, str) and not self.has_header:
                raise SettingError(name, repr(column), "a position counted from 1, as there is no header")

    def known_scale(self) -> RatingScale | None:
        """Return the scale if it is configured in full."""
        if self.low is None or self.high is None or self.step is None:
            return None
        return RatingScale.evenly(self.low, self.high, self.step, continuous=self.continuous)

    def read(self, path: str) -> RatingRows:
        """Read one file; an InputError names the line of what cannot be read."""
        layout = Layout(
            separator=self.separator,
            header=self.has_header,
            user=self.user_column,
            item=self.item_column,
            rating=self.rating_column,
        )
        return read_rows(locate(path), layout)

    def scale(self, values: NDArray[np.float64], source: str) -> RatingScale:
        """Return the scale of some ratings; an InputError names their source."""
        low = float(values.min()) if self.low is None else float(self.low)
        high = float(values.max()) if self.high is None else float(self.high)
        if not low < high or max(-low, high) > _LARGEST:
            raise InputError(
                source, f"a scale from {low:g} to {high:g}", "low and high, with low < high, within 1e15"
            )
        step = self.step
        if step is None and self.continuous:
            step = (high - low) / _CONTINUOUS_STEPS
        elif step is None:
            # Rounding keeps two spellings of one rating from counting as different levels.
            step = float(np.diff(np.unique(np.round([low, high, *np.unique(values)], 9))).min())
            steps = (high - low) / step
            if not (abs(steps - round(steps)) < 1e-6 and steps < MAX_LEVELS):
                raise InputError(
                    source,
                    f"ratings from {low:g} to {high:g} that are as little as {step:g} apart",
                    "evenly spaced ratings, or a step, with continuous: true if it does not fit all",
                )
            step = (high - low) / round(steps)
        return RatingScale.evenly(low, high, step, continuous=self.continuous)


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
