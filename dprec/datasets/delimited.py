"""Reading delimited text: one rating per line, columns between separators.

Tens of millions of lines are parsed in blocks, each column of a block as a whole. Every defect is
reported with its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.datasets.base import WHITESPACE, FileDataset, Layout, locate
from dprec.datasets.delimited import (
    cell_times,
    characters,
    cut_cells,
    identifiers,
    integers,
    numbers,
    words,
)
from dprec.datasets.files import Block, blocks, separated
from dprec.datasets.headers import column_place
from dprec.errors import InputError
from dprec.ratings import RatingRows, Ratings, RatingScale

Cells = Literal["identifier", "number", "number or nothing", "text or nothing", "time"]
"""What the cells of a column hold."""


@dataclass(frozen=True, kw_only=True)
class DelimitedDataset(FileDataset):
    """Base of the data sets that are one text file in a fixed layout."""

    file: ClassVar[str]
    layout: ClassVar[Layout]
    scale: ClassVar[RatingScale]

    def known_scale(self) -> RatingScale:
        """Return the scale that the distributor documents."""
        return self.scale

    def load(self) -> Ratings:
        """Return all ratings; an InputError names the file and line of what cannot be read."""
        return self._loaded(timed=False)

    def load_timed(self) -> Ratings:
        """Return all ratings with their times; see `Dataset.load_timed`."""
        return super().load_timed() if self.layout.timestamp is None else self._loaded(timed=True)

    def _loaded(self, *, timed: bool) -> Ratings:
        rows = read_rows(locate(self.path, self.file), self.layout, timed=timed)
        return Ratings.from_rows(rows, self.scale, duplicates=self.duplicates)


def read_rows(path: Path, layout: Layout, *, timed: bool = False) -> RatingRows:
    """Read the users, items and ratings of a file.

    Parameters
    ----------
    timed : bool
        Whether to read their times too, which the layout must have.

    Raises
    ------
    InputError
        When a line has too few or too many columns, an empty cell, an identifier that is not UTF-8
        or a rating that is not a finite number; when the file is missing, empty or binary.
    """
    wanted: list[tuple[str | int, Cells]]
    wanted = [(layout.user, "identifier"), (layout.item, "identifier"), (layout.rating, "number")]
    if timed and layout.timestamp is not None:
        wanted.append((layout.timestamp, "time"))
    users, items, values, *times = read_columns(path, layout, wanted)
    first_line = 2 if layout.header else 1
    return RatingRows(users, items, values, str(path), first_line, times=times[0] if times else None)


def first_cells(path: Path, separator: str) -> list[str]:
    """Return the cells of a file's first line."""
    for block in blocks(path):
        start = replace(block, text=block.text[: block.text.index(b"\n") + 1])
        if not start.text.strip():
            raise start.error(0, "an empty line", "one row per line")
        line, mark = separated(start, separator)
        return line.text[:-1].decode().split(mark)
    raise InputError(str(path), "an empty file", "one row per line")


def first_lines(path: Path, most: int = 20) -> list[str]:
    """Return the first lines of a file, without their ends; none of an empty file."""
    for block in blocks(path):
        return [line.decode() for line in block.text.split(b"\n", most)[:most] if line]
    return []


def read_columns(
    path: Path,
    layout: Layout,
    wanted: Sequence[tuple[str | int, Cells]],
) -> list[NDArray[Any]]:
    """Read columns of a file.

    Parameters
    ----------
    layout : Layout
        Its separator, header and width are used; `wanted` states which columns are read.
    wanted : sequence of (column, what its cells hold)
        A column is a name in the header or a position counted from 1.

    Returns
    -------
    list of ndarray, each of shape (rows,)
        float64 for times and for numbers, NaN for nothing; str for text; int64 for identifiers that are all
        integers, else str.

    Raises
    ------
    InputError
        As for `read_rows`.
    """
    first = first_cells(path, layout.separator)
    width = layout.width or len(first)
    if width == 1:
        raise _unseparated(first[0], path, layout)
    columns = [_position(column, first, width, layout.header, str(path)) for column, _ in wanted]
    parts: list[list[NDArray[Any]]] = [[] for _ in wanted]
    for stretch in blocks(path):
        block = stretch
        if layout.header and stretch.line == 1:
            block = replace(stretch, text=stretch.text.partition(b"\n")[2], line=2)
        if not block.text:
            continue
        plain, mark = separated(block, layout.separator)
        starts, ends = cut_cells(plain, mark, width, layout)
        for (column, kind), position, values in zip(wanted, columns, parts, strict=True):
            name = column if isinstance(column, str) else f"column {column}"
            empty = kind.endswith("nothing")
            table = characters(plain, starts[:, position], ends[:, position], name, empty=empty)
            values.append(_read(plain, table, kind, name))
    if not parts[0]:
        raise InputError(str(path), "a header and nothing below it", "one row per line")
    return [_joined(values, kind) for values, (_, kind) in zip(parts, wanted, strict=True)]


def _read(block: Block, table: NDArray[np.uint8], kind: Cells, name: str) -> NDArray[Any]:
    """Return the cells of a column."""
    if kind == "identifier":
        return identifiers(table)
    if kind == "time":
        return cell_times(block, table, name)
    return words(table) if kind == "text or nothing" else numbers(block, table, name)


def _unseparated(line: str, path: Path, layout: Layout) -> InputError:
    """Return the error for a first line of only one column, with the separator that it seems to have."""
    likeliest = max((",", ";", "\t", "::", "|", " "), key=line.count)
    name = {" ": repr(WHITESPACE), "\t": "'tab'"}.get(likeliest, repr(likeliest))
    hint = f"; here the separator seems to be {name}" if likeliest in line else ""
    accepted = f"columns separated by {layout.described_separator}{hint}"
    return InputError(f"{path}, line 1", "1 column", accepted)


def _joined(parts: list[NDArray[Any]], kind: Cells) -> NDArray[Any]:
    """Return a column from its parts: all strings if any identifier is not a number."""
    if any(part.dtype.kind == "U" for part in parts):
        # This restores what was read, as only integers in their shortest form became numbers.
        parts = [part.astype(np.str_) for part in parts]
    whole: NDArray[Any] = np.concatenate(parts)
    return integers(whole) if kind == "identifier" and whole.dtype.kind == "U" else whole


def _position(column: str | int, first: list[str], width: int, header: bool, source: str) -> int:
    if isinstance(column, str) and not header:
        raise InputError("column", repr(column), "a position counted from 1, as the file has no header")
    return column_place(column, first if header else [""] * width, f"{source}, line 1")
