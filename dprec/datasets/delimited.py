"""Reading delimited text: one rating per line, columns between separators.

Tens of millions of lines are parsed without a Python object per line: a block of bytes is cut at its
separators, and each column becomes a table of characters that is turned into numbers as a whole. What
does not fit that mould (quoted cells, separators of several characters) is first rewritten, block by
block, so that it does. Every defect is reported with the line it stands on.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.datasets.base import FileDataset, locate
from dprec.errors import InputError
from dprec.ratings import Duplicates, Ratings, RatingScale

WHITESPACE = "whitespace"
"""The separator that stands for any run of blanks and tabs."""

_BLOCK_BYTES = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CELL_BYTES = 255
_NEWLINE = ord("\n")
_UNIT = "\x1f"  # The separator of rewritten blocks: ASCII's own, which no table uses in a cell.
_BLANKS = np.frombuffer(b" \t\r", dtype=np.uint8)
_INT64_DIGITS = 18


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are laid out.

    Parameters
    ----------
    separator : str
        One character, several ("::"), or `WHITESPACE`. Quoted cells are understood with one
        character.
    header : bool
        True when the first line names the columns.
    width : int, optional
        Number of columns; by default that of the first line.
    user, item, rating : str or int
        The columns of the three: a name of the header, or a position counted from 1.
    """

    separator: str = ","
    header: bool = False
    width: int | None = None
    user: str | int = 1
    item: str | int = 2
    rating: str | int = 3

    def __post_init__(self) -> None:
        if self.separator != WHITESPACE and not re.fullmatch(r'[^"\n\r\w.+-]+', self.separator):
            raise InputError(
                "separator", repr(self.separator), f"such as ',', ';', a tab, '::' or {WHITESPACE!r}"
            )

    @property
    def described_separator(self) -> str:
        """The separator in words, for error messages."""
        return {"\t": "a tab", WHITESPACE: "blanks"}.get(self.separator, repr(self.separator))


@dataclass(frozen=True, eq=False)
class Triples:
    """The rows of a file, before they are put on a rating scale.

    Parameters
    ----------
    users, items : ndarray of int64 or str, shape (rows,)
        Numbers when every identifier of the column is one.
    values : ndarray of float64, shape (rows,)
    source : str
        The file's name.
    first_line : int
        Line of the first row.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    values: NDArray[np.float64]
    source: str
    first_line: int

    def ratings(
        self,
        scale: RatingScale,
        duplicates: Duplicates,
        *,
        user_ids: NDArray[Any] | None = None,
        item_ids: NDArray[Any] | None = None,
    ) -> Ratings:
        """Return the rows as ratings; see `Ratings.from_triples` for the arguments and errors."""
        return Ratings.from_triples(
            self.users,
            self.items,
            self.values,
            scale,
            duplicates=duplicates,
            user_ids=user_ids,
            item_ids=item_ids,
            source=self.source,
            first_line=self.first_line,
        )


@dataclass(frozen=True, kw_only=True)
class DelimitedDataset(FileDataset):
    """Base of the data sets that are one text file in a layout of their own."""

    file: ClassVar[str]
    layout: ClassVar[Layout]
    scale: ClassVar[RatingScale]

    def load(self) -> Ratings:
        """Return all ratings; InputError names the file and line of what cannot be read."""
        return read_triples(locate(self.path, self.file), self.layout).ratings(self.scale, self.duplicates)


def read_triples(path: Path, layout: Layout) -> Triples:
    """Read the users, items and ratings of a file.

    Raises
    ------
    InputError
        When a line has too few or too many columns, an empty cell, an identifier that is not UTF-8
        or a rating that is not a finite number; when the file is missing, empty or binary.
    """
    users, items, values = read_columns(
        path, layout, [(layout.user, "identifier"), (layout.item, "identifier"), (layout.rating, "number")]
    )
    return Triples(users, items, values, str(path), 2 if layout.header else 1)


def read_fold(
    train: Triples, test: Triples, scale: RatingScale, duplicates: Duplicates
) -> tuple[Ratings, Ratings]:
    """Put two files on one space of users and items.

    Raises
    ------
    InputError
        When they have no user in common, or a test rating is also a train rating.
    """
    user_ids, train_users, test_users = _united(train.users, test.users)
    item_ids, train_items, test_items = _united(train.items, test.items)
    train = replace(train, users=train_users, items=train_items)
    test = replace(test, users=test_users, items=test_items)
    learnt = train.ratings(scale, duplicates, user_ids=user_ids, item_ids=item_ids)
    tested = test.ratings(scale, duplicates, user_ids=user_ids, item_ids=item_ids)
    if not np.any((learnt.counts > 0) & (tested.counts > 0)):
        raise InputError(
            test.source, f"not one of the users of {train.source}", "a test file of the same users"
        )
    leaks = np.flatnonzero(np.isin(rated_cells(tested), rated_cells(learnt)))
    if leaks.size:
        user, item = user_ids[tested.users[leaks[0]]], item_ids[tested.items[leaks[0]]]
        row = int(np.flatnonzero((test.users == user) & (test.items == item))[0])
        raise InputError(
            f"{test.source}, line {row + test.first_line}",
            f"user {user} and item {item} are in {train.source} too",
            "test ratings that are not for training",
        )
    return learnt, tested


def _united(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the identifiers of both columns, and the columns in one type."""
    if first.dtype.kind != second.dtype.kind:
        first, second = first.astype(np.str_), second.astype(np.str_)
    return np.union1d(first, second), first, second


def rated_cells(ratings: Ratings) -> NDArray[np.int64]:
    """Return the row-major position of every rating in the matrix, ascending, shape (ratings,)."""
    return ratings.users.astype(np.int64) * ratings.n_items + ratings.items


def first_cells(path: Path, separator: str) -> list[str]:
    """Return the cells of a file's first line."""
    for block in _blocks(path):
        start = replace(block, text=block.text[: block.text.index(b"\n") + 1])
        if not start.text.strip():
            raise start.error(0, "an empty line", "one rating per line")
        line, mark = _separated(start, separator)
        return line.text[:-1].decode().split(mark)
    raise InputError(str(path), "an empty file", "one rating per line")


def read_columns(
    path: Path,
    layout: Layout,
    wanted: Sequence[tuple[str | int, Literal["identifier", "number"]]],
) -> list[NDArray[Any]]:
    """Read columns of a file.

    Parameters
    ----------
    path : Path
    layout : Layout
        Its separator, header and width; which columns are read is told by `wanted`.
    wanted : sequence of (column, "identifier" or "number")
        A column is a name of the header or a position counted from 1.

    Returns
    -------
    list of ndarray, each of shape (rows,)
        float64 for numbers; int64 for identifiers that are all integers, else str.

    Raises
    ------
    InputError
        As `read_triples`.
    """
    first = first_cells(path, layout.separator)
    width = layout.width or len(first)
    if width == 1:
        raise _unseparated(first[0], path, layout)
    columns = [_position(column, first, width, layout.header, str(path)) for column, _ in wanted]
    parts: list[list[NDArray[Any]]] = [[] for _ in wanted]
    for stretch in _blocks(path):
        block = stretch
        if layout.header and stretch.line == 1:
            block = replace(stretch, text=stretch.text.partition(b"\n")[2], line=2)
        if not block.text:
            continue
        plain, mark = _separated(block, layout.separator)
        starts, ends = _cut(plain, mark, width, layout)
        for (column, kind), position, values in zip(wanted, columns, parts, strict=True):
            name = column if isinstance(column, str) else f"column {column}"
            table = _characters(plain, starts[:, position], ends[:, position], name)
            values.append(_identifiers(table) if kind == "identifier" else _numbers(plain, table, name))
    if not parts[0]:
        raise InputError(str(path), "a header and nothing below it", "one rating per line")
    return [_joined(values) for values in parts]


def _unseparated(line: str, path: Path, layout: Layout) -> InputError:
    """Return the error of a first line that is one column, with the separator that it seems to have."""
    found = max((",", ";", "\t", "::", "|", " "), key=line.count)
    seems = {" ": repr(WHITESPACE), "\t": "a tab"}.get(found, repr(found))
    hint = f"; here the separator seems to be {seems}" if found in line else ""
    accepted = f"columns separated by {layout.described_separator}{hint}"
    return InputError(f"{path}, line 1", "1 column", accepted)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return a column: strings throughout as soon as one identifier is not a number."""
    if any(part.dtype.kind == "U" for part in parts):
        # This gives back what was read, as only integers in their shortest form became numbers.
        parts = [part.astype(np.str_) for part in parts]
    return np.concatenate(parts)


def _position(column: str | int, first: list[str], width: int, header: bool, source: str) -> int:
    if isinstance(column, int):
        if not 1 <= column <= width:
            raise InputError(f"{source}, line 1", f"no column {column} among {width}", f"1 to {width}")
        return column - 1
    if not header:
        raise InputError("column", repr(column), "a position counted from 1, as the file has no header")
    names = [name.strip() for name in first]
    if names.count(column) != 1:
        found = f"{names.count(column)} columns {column!r}" if column in names else f"no column {column!r}"
        told = textwrap.shorten("one of " + ", ".join(sorted(set(names))), 200, placeholder=" ...")
        raise InputError(f"{source}, line 1", found, told)
    return names.index(column)


@dataclass(frozen=True)
class _Block:
    """Whole lines, each with its end, and where they stand."""

    text: bytes
    source: str
    line: int

    def error(self, row: int, found: str, accepted: str) -> InputError:
        return InputError(f"{self.source}, line {self.line + row}", found, accepted)


def _blocks(path: Path) -> Iterator[_Block]:
    """Yield the lines of a file; empty ones at its end are dropped, those between ratings are not."""
    source = str(path)
    try:
        with path.open("rb") as file:
            waiting, line = file.read(_BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK), 1
            while more := file.read(_BLOCK_BYTES):
                waiting += more
                # The last filled line waits, and with it the empty ones that nothing may follow.
                end = waiting.rfind(b"\n", 0, len(waiting.rstrip())) + 1
                if end:
                    yield _decodable(_Block(waiting[:end], source, line))
                    line += waiting.count(b"\n", 0, end)
                    waiting = waiting[end:]
                elif len(waiting.rstrip()) > 2 * _BLOCK_BYTES:
                    raise InputError(f"{source}, line {line}", "a line of megabytes", "one rating per line")
            filled = len(waiting.rstrip())
            if filled:
                last = waiting[:filled] + waiting[filled:].partition(b"\n")[0] + b"\n"
                yield _decodable(_Block(last, source, line))
    except OSError as error:
        reason = "a folder" if path.is_dir() else (error.strerror or str(error)).lower()
        raise InputError(source, reason, "a file that can be read") from error


def _decodable(block: _Block) -> _Block:
    """Return the block with plain line ends once it is known to be text."""
    text = block.text
    if (position := text.find(b"\0")) >= 0:
        row = text.count(b"\n", 0, position)
        raise block.error(row, "a zero byte", "text; this looks like a binary file")
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            row = text.count(b"\n", 0, error.start)
            raise block.error(row, f"byte 0x{text[error.start]:02x}", "text in UTF-8") from error
    return replace(block, text=text.replace(b"\r\n", b"\n")) if b"\r" in text else block


def _separated(block: _Block, separator: str) -> tuple[_Block, str]:
    """Return the block with cells that need no quotes, and the one character between them."""
    text, mark = block.text, _UNIT
    if separator == WHITESPACE:
        bare = re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", text)
        text = re.sub(rb"[ \t]+", _UNIT.encode(), bare)
    elif len(separator.encode()) > 1:
        text = text.replace(separator.encode(), _UNIT.encode())
    elif b'"' in text:
        text = _unquoted(block, separator)
    else:
        mark = separator
    return replace(block, text=text), mark


def _unquoted(block: _Block, separator: str) -> bytes:
    lines = block.text.decode().split("\n")[:-1]
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    plain: list[str] = []
    try:
        for row in rows:
            if rows.line_num != len(plain) + 1:
                raise csv.Error("line break inside quotes")
            plain.append(_UNIT.join(row) + "\n")
    except csv.Error as error:
        raise block.error(len(plain), str(error), "quoted cells that end on their line") from error
    return "".join(plain).encode()


def _cut(block: _Block, mark: str, width: int, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the cells of a block start and end, shape (rows, width) each."""
    data = np.frombuffer(block.text, dtype=np.uint8)
    marks = np.flatnonzero((data == ord(mark)) | (data == _NEWLINE))
    rows = block.text.count(b"\n")
    if marks.size != rows * width or np.any(data[marks[width - 1 :: width]] != _NEWLINE):
        for row, line in enumerate(block.text.split(b"\n")):
            found = line.count(mark.encode()) + 1
            if found != width or not line.strip():
                raise block.error(
                    row,
                    f"{found} column{'s' if found > 1 else ''}" if line.strip() else "an empty line",
                    f"{width} columns separated by {layout.described_separator}",
                )
    starts = np.concatenate([[0], marks[:-1] + 1])
    return starts.reshape(rows, width), marks.reshape(rows, width)


def _characters(
    block: _Block, starts: NDArray[np.int64], ends: NDArray[np.int64], name: str
) -> NDArray[np.uint8]:
    """Return the trimmed cells of a column, shape (longest cell, rows), padded with zeros."""
    data = np.frombuffer(block.text, dtype=np.uint8)
    starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
    too_long = np.flatnonzero(ends - starts > _CELL_BYTES)
    if too_long.size:
        row = int(too_long[0])
        raise block.error(row, f"{ends[row] - starts[row]} bytes in {name}", f"at most {_CELL_BYTES}")
    while np.any(blank := (starts < ends) & np.isin(data[starts], _BLANKS)):
        starts = starts + blank
    while np.any(blank := (starts < ends) & np.isin(data[ends - 1], _BLANKS)):
        ends = ends - blank
    lengths = ends - starts
    if np.any(lengths == 0):
        raise block.error(int(np.argmin(lengths)), f"nothing in {name}", "a value in every line")
    table = np.zeros((int(lengths.max()), lengths.size), dtype=np.uint8)
    for place, characters in enumerate(table):
        # Past a cell's end the index may point beyond the block; what it reads there is cleared.
        np.multiply(data[np.minimum(starts + place, data.size - 1)], place < lengths, out=characters)
    return table


def _identifiers(table: NDArray[np.uint8]) -> NDArray[Any]:
    """Return a column as int64 where every cell is an integer in its shortest form, else as strings."""
    if len(table) <= _INT64_DIGITS:
        numbers = np.zeros(table.shape[1], dtype=np.int64)
        # "007" and "7" are different identifiers, so a leading zero makes a string.
        whole = (table[0] != ord("0")) | (len(table) == 1 or table[1] == 0)
        for characters in table:
            digits, inside = characters - np.uint8(ord("0")), characters != 0
            whole &= (digits <= 9) | ~inside
            numbers = np.where(inside, numbers * 10 + digits, numbers)
        if np.all(whole):
            return numbers
    cells = _as_bytes(table, len(table))
    texts = np.asarray(cells.astype(np.str_) if np.all(table < 128) else np.char.decode(cells, "utf-8"))
    try:
        numbers = cells.astype(np.int64)  # Negative or very long ones.
    except (ValueError, OverflowError):
        return texts
    return numbers if np.array_equal(numbers.astype(np.str_), texts) else texts


def _numbers(block: _Block, table: NDArray[np.uint8], name: str) -> NDArray[np.float64]:
    """Return a column as numbers; each distinct text is converted once."""
    # Eight characters hold most ratings, and are compared as one integer.
    short = len(table) <= 8
    cells = _as_bytes(table, 8).view(np.uint64) if short else _as_bytes(table, len(table))
    distinct = np.unique(cells)
    texts = distinct.view("S8") if short else distinct
    values = np.array([_finite(text) for text in texts.tolist()])
    numbers: NDArray[np.float64] = values[np.searchsorted(distinct, cells)]
    if np.any(np.isnan(values)):
        row = int(np.flatnonzero(np.isnan(numbers))[0])
        text = table[:, row].tobytes().rstrip(b"\0").decode()
        raise block.error(row, f"{text!r} in {name}", "a finite number")
    return numbers


def _finite(text: bytes) -> float:
    """Return the number that a text is, or NaN."""
    try:
        number = float(text) if b"_" not in text else np.nan
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _as_bytes(table: NDArray[np.uint8], width: int) -> NDArray[np.bytes_]:
    padded = np.zeros((table.shape[1], width), dtype=np.uint8)
    padded[:, : len(table)] = table.T
    return padded.view(f"S{width}")[:, 0]
