"""Tables that fit their terminal: columns are left out, by their rank, and no number is broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_GAP = 2
"""Characters between two columns."""

_NARROWEST_TEXT = 20
"""Least characters per line of a text that may be wrapped, unless it is shorter."""


@dataclass(frozen=True)
class Column:
    """A column of a table on the terminal."""

    heading: str
    """Its lines, separated by line breaks."""
    cells: tuple[str, ...]
    numeric: bool = True
    wrapped: bool = False
    """Whether it holds text that may go on in the next line."""
    rank: int = 0
    """Columns of a higher rank are left out first, and of one rank the last."""

    @property
    def least_width(self) -> int:
        """The least characters that it needs."""
        lines = [line for text in (self.heading, *self.cells) for line in text.splitlines()]
        whole = max(map(cell_len, lines), default=0)
        if not self.wrapped:
            return whole
        words = [cell_len(word) for line in lines for word in line.split()]
        return min(whole, max(_NARROWEST_TEXT, *words, 0))


@dataclass(frozen=True)
class Fitted:
    """A table that fits."""

    table: Table
    width: int
    """Characters that it needs."""
    columns: int
    left_out: int
    """Numbers of its columns, and of those among them that found no place."""


def least_width(columns: Sequence[Column]) -> int:
    """Return the characters that columns need beside each other."""
    return sum(column.least_width for column in columns) + _GAP * (len(columns) - 1)


def fitted(
    columns: Sequence[Column], width: int | None, title: str | None = None, caption: str = ""
) -> Fitted:
    """Return the columns that fit as a table; the first by rank is always among them.

    Parameters
    ----------
    columns : sequence of Column
        Not empty, with as many cells each.
    width : int or None
        Characters that there are; by default, enough.
    """
    by_rank = sorted(range(len(columns)), key=lambda place: (columns[place].rank, place))
    kept = len(columns)
    while kept > 1 and width is not None and least_width([columns[each] for each in by_rank[:kept]]) > width:
        kept -= 1
    shown = [columns[each] for each in sorted(by_rank[:kept])]
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        show_header=any(column.heading for column in columns),
        title=None if title is None else Text(title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
    )
    for column in shown:
        fits = width is None or column.least_width <= width
        table.add_column(
            Text(column.heading),
            justify="right" if column.numeric else "left",
            no_wrap=fits and not column.wrapped,
            overflow="fold",
            min_width=column.least_width if fits else width,
        )
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(Text, cells))
    return Fitted(table, least_width(shown), len(columns), len(columns) - kept)
