"""CSV tables: one way to write them, by column or by row, and one way to read them, compressed or not."""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

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

_LONGEST_LINE = 1 << 20
"""Characters of the longest line that is read."""

_MOST_EXPANSION = 100
"""How many times the size of its file a compressed table may have; those of runs have three to ten."""


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


def gzipped(content: Iterable[str]) -> Iterator[bytes]:
    """Yield a text as a gzip file that says nothing of when, where and as what it was written."""
    compressor = zlib.compressobj(6, wbits=16 + zlib.MAX_WBITS)
    yield from (compressor.compress(text.encode()) for text in content)
    yield compressor.flush()


def read_lines(path: Path, needed: Sequence[str], accepted: str) -> Iterator[Line]:
    """Yield the header of a CSV file and then its lines; each has as many cells as the header.

    Parameters
    ----------
    path : Path
        A file whose name ends with .gz is decompressed as it is read.
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
        with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            reader = csv.reader(_lines(text))
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
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(str(path), "truncated or damaged", accepted) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(str(path), str(reason), accepted) from None


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return _Decompressed(path) if path.suffix == ".gz" else path.open("rb")


class _Decompressed(gzip.GzipFile):
    """A compressed file, of which no more is decompressed than a table can have."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._left = _MOST_EXPANSION * path.stat().st_size

    def read1(self, size: int | None = -1) -> bytes:
        """Read some of it."""
        some = super().read1(-1 if size is None else size)
        self._left -= len(some)
        if self._left < 0:
            raise csv.Error(f"more than {_MOST_EXPANSION} times its size when decompressed")
        return some


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise csv.Error(f"a line of more than {_LONGEST_LINE:,} characters")
        yield line


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
    parts = {name: [np.empty(0, dtype)] for name, dtype in types.items()}
    # Texts take many times the memory of numbers.
    while some := [cells for _, cells in islice(lines, _LINES_AT_ONCE)]:
        for (name, dtype), place in zip(types.items(), places, strict=True):
            parts[name].append(_numbers([cells[place] for cells in some], dtype, f"{path}: {name}"))
    return {name: np.concatenate(own) for name, own in parts.items()}


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
