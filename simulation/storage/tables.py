"""CSV tables: one way to write them, by column or by row, and one way to read them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError

Row = dict[str, Any]
"""One line of a table, by column."""

Columns = dict[str, NDArray[Any]]
"""A table by column; all columns have the same length."""

Line = tuple[str, list[str]]
"""The place of a line, as an error names it, and its cells."""

_LINES_AT_ONCE = 1 << 16


def csv_of_columns(columns: Columns) -> Iterator[str]:
    """Yield a table as CSV, many lines at a time; numbers that are not finite become empty cells."""
    rows = len(next(iter(columns.values())))
    parts = (
        zip(*(_cells(column[at : at + _LINES_AT_ONCE]) for column in columns.values()), strict=True)
        for at in range(0, rows, _LINES_AT_ONCE)
    )
    return _csv(list(columns), chain.from_iterable(parts))


def csv_of_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table as CSV with the columns of all rows; a value that a row lacks becomes an empty cell."""
    header = list(dict.fromkeys(column for row in rows for column in row))
    return _csv(header, (["" if row.get(name) is None else row[name] for name in header] for row in rows))


def read_lines(path: Path, needed: Sequence[str], accepted: str) -> Iterator[Line]:
    """Yield the header of a CSV file and then its lines; each has as many cells as the header.

    Parameters
    ----------
    needed : sequence of str
        Columns that the table must have.
    accepted : str
        What file is expected, for errors.

    Raises
    ------
    InputError
        When the file cannot be read or is not such a table; it names the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            missing = [column for column in needed if column not in header]
            if missing:
                raise InputError(str(path), f"no column {missing[0]}", accepted)
            yield str(path), header
            for cells in reader:
                where = f"{path}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise InputError(where, f"{len(cells)} cells", f"{len(header)}, one per column")
                yield where, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(str(path), str(reason), accepted) from None


def read_columns(path: Path, types: Mapping[str, type[np.generic]], accepted: str) -> Columns:
    """Read columns of numbers or texts from a CSV file.

    Parameters
    ----------
    types : mapping from str to type
        The columns, and the NumPy type of each; an empty cell of a column of floats is NaN.
    accepted : str
        As for `read_lines`.

    Raises
    ------
    InputError
    """
    lines = read_lines(path, list(types), accepted)
    _, header = next(lines)
    places = [header.index(name) for name in types]
    texts: list[list[str]] = [[] for _ in types]
    for _, cells in lines:
        for place, column in zip(places, texts, strict=True):
            column.append(cells[place])
    return {
        name: _numbers(column, dtype, f"{path}: {name}")
        for (name, dtype), column in zip(types.items(), texts, strict=True)
    }


def _numbers(texts: list[str], dtype: type[np.generic], where: str) -> NDArray[Any]:
    empty = "nan" if issubclass(dtype, np.floating) else ""
    try:
        return np.array([text or empty for text in texts], dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise InputError(where, str(error), "numbers") from None


def _csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    waiting = chain([header], lines)
    while some := list(islice(waiting, _LINES_AT_ONCE)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(some)
        yield text.getvalue()


def _cells(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [value if math.isfinite(value) else "" for value in values]
    return values
