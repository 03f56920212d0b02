"""Reading delimited text: one rating per line, columns between separators.

Tens of millions of lines are parsed in blocks, each column of a block as a whole. Every defect is
reported with its line.

From a block of lines to columns: all cells are cut at once, without a Python object per line.

A column becomes a table of characters, with one row per position in a cell, which is converted to
numbers or strings at once.

Files as they are distributed: plain, or packed into one gz, bz2, xz or zip file, by their first bytes.

Anything else (quoted cells, separators of several characters) is rewritten into that form, block by
block.
"""

import bz2
import codecs
import csv
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyArray, Floats, Ints, Uint8s
from dprec.datasets.base import WHITESPACE, Layout, times_of
from dprec.datasets.columns import column_place
from dprec.errors import InputError
from dprec.ratings import RatingRows

_PARQUET, _OLE = b"PAR1", b"\xd0\xcf\x11\xe0"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_FREE_BYTES = 256 << 20
_LARGEST_RATIO = 100
"""Ratings as text take at most some ten times the space of the packed file."""

_DAMAGE = (
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)
_SPREADSHEET = "[Content_Types].xml"


class _Readable(Protocol):
    """A file that is read from its beginning."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


class _Unpacked:
    """What a packed file holds, up to a limit that no file of ratings reaches."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path
        self._left = _FREE_BYTES + _LARGEST_RATIO * path.stat().st_size

    def read(self, size: int, /) -> bytes:
        try:
            data = cast("bytes", self._file.read(size))
        except _DAMAGE as error:
            raise _damaged(self._path, error) from error
        self._left -= len(data)
        if self._left < 0:
            packed = self._path.stat().st_size
            found = f"{packed:,} bytes that unpack to more than {_FREE_BYTES + _LARGEST_RATIO * packed:,}"
            raise InputError(str(self._path), found, "a file of ratings; unpack it yourself if it is one")
        return data


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet table; False if it cannot be read."""
    return _beginning(path).startswith(_PARQUET)


@contextmanager
def opened(path: Path) -> Iterator[_Readable]:
    """Open a file, unpacked if it is packed.

    Raises InputError when it is a spreadsheet, an archive of several files, damaged, or unpacks to more than
    100 times its size and 256 MiB. Raises OSError when it cannot be opened.
    """
    start = _beginning(path)
    with ExitStack() as stack:
        if start.startswith(_OLE):
            raise _spreadsheet(path)
        if start.startswith(_ZIP):
            yield _Unpacked(stack.enter_context(_only_member(path, stack)), path)
        elif start.startswith(b"\x1f\x8b"):
            yield _Unpacked(stack.enter_context(gzip.open(path)), path)
        elif start.startswith(b"BZh") and start[4:] == b"1AY&SY":
            yield _Unpacked(stack.enter_context(bz2.open(path)), path)
        elif start.startswith(b"\xfd7zXZ\0"):
            yield _Unpacked(stack.enter_context(lzma.open(path)), path)
        else:
            yield stack.enter_context(path.open("rb"))


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(10)
    except OSError:
        return b""


def _only_member(path: Path, stack: ExitStack) -> Any:
    """Open the only file of a zip archive; what a Mac adds does not count."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        names = [
            member.filename
            for member in archive.infolist()
            if not member.is_dir() and not member.filename.startswith("__MACOSX/")
        ]
        if _SPREADSHEET in names:
            raise _spreadsheet(path)
        if len(names) != 1:
            listed = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
            found = f"an archive of {len(names)} files" + (f": {listed}" if names else "")
            raise InputError(str(path), found, "an archive of one; or unpack it, and the path of one of them")
        return archive.open(names[0])
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _spreadsheet(path: Path) -> InputError:
    accepted = "the sheet saved as .csv; for Jester's own file, kind: jester"
    return InputError(str(path), "a spreadsheet", accepted)


def _damaged(path: Path, error: BaseException) -> InputError:
    return InputError(
        str(path), f"a packed file that cannot be unpacked ({error})", "a whole one, without password"
    )


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The byte order marks by which such a file is known."""

_MARK_BYTES = 4


class _Begun:
    """A file of which the beginning was read already."""

    def __init__(self, beginning: bytes, file: _Readable) -> None:
        self._beginning, self._file = beginning, file

    def read(self, size: int, /) -> bytes:
        if self._beginning:
            beginning, self._beginning = self._beginning, b""
            return beginning + self._file.read(max(0, size - len(beginning)))
        return self._file.read(size)


class _Decoded:
    """A file in another encoding, as UTF-8."""

    def __init__(self, file: _Readable, encoding: str, source: str) -> None:
        self._file, self._encoding, self._source = file, encoding, source
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int, /) -> bytes:
        while True:
            data = self._file.read(size)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                found = f"a byte order mark of {self._encoding.upper()}, and then {error.reason}"
                raise InputError(self._source, found, "text in UTF-8") from error
            if text or not data:
                return text.encode()


def decoded(file: _Readable, source: str) -> _Readable:
    """Return a file as UTF-8, by its byte order mark; reading it raises InputError where it is not that."""
    beginning = file.read(_MARK_BYTES)
    begun = _Begun(beginning, file)
    encoding = next((name for mark, name in _MARKS if beginning.startswith(mark)), None)
    return begun if encoding is None else _Decoded(begun, encoding, source)


_BLOCK_BYTES = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNIT = "\x1f"  # The separator of rewritten blocks: ASCII's unit separator, which no table uses in a cell.

_WITHOUT_TEXTS = (
    "pandas.read_csv(FILE, usecols=['USER', 'ITEM', 'RATING']).to_csv('ratings.csv', index=False)"
)
"""What leaves out texts of several lines, such as reviews."""


@dataclass(frozen=True)
class Block:
    """Whole lines, each with its line end, and their place in the file."""

    text: bytes
    """UTF-8."""
    source: str
    """The file's name."""
    line: int
    """Number of the first line, counted from 1."""

    def error(self, row: int, found: str, accepted: str) -> InputError:
        """Return the error for a row, counted from 0, with its line in the file."""
        return InputError(f"{self.source}, line {self.line + row}", found, accepted)


def blocks(path: Path) -> Iterator[Block]:
    """Yield the lines of a file, unpacked; empty lines are dropped at its end, but not between ratings.

    Raises InputError when the file cannot be read, or is no text in UTF-8, or with a byte order mark in
    UTF-16 or UTF-32; also as `dprec.datasets.delimited.opened`.
    """
    source = str(path)
    try:
        with opened(path) as stored:
            file = decoded(stored, source)
            waiting, line = file.read(_BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK), 1
            while more := file.read(_BLOCK_BYTES):
                waiting += more
                # The last filled line waits, with the empty ones after it, which may end the file.
                end = waiting.rfind(b"\n", 0, len(waiting.rstrip())) + 1
                if end:
                    yield _decodable(Block(waiting[:end], source, line))
                    line += waiting.count(b"\n", 0, end)
                    waiting = waiting[end:]
                elif len(waiting.rstrip()) > 2 * _BLOCK_BYTES:
                    raise InputError(f"{source}, line {line}", "a line of megabytes", "one row per line")
            filled = len(waiting.rstrip())
            if filled:
                last = waiting[:filled] + waiting[filled:].partition(b"\n")[0] + b"\n"
                yield _decodable(Block(last, source, line))
    except OSError as error:
        reason = "a folder" if path.is_dir() else (error.strerror or str(error)).lower()
        raise InputError(source, reason, "a file that can be read") from error


def _decodable(block: Block) -> Block:
    """Return the block with plain line ends, after checking that it is text."""
    text = block.text
    if (position := text.find(b"\0")) >= 0:
        row = text.count(b"\n", 0, position)
        accepted = "text in UTF-8; this looks like a binary file, or like: iconv -f utf-16le -t utf-8 FILE"
        raise block.error(row, "a zero byte", accepted)
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            row = text.count(b"\n", 0, error.start)
            accepted = "text in UTF-8, such as: iconv -f latin1 -t utf-8 FILE"
            raise block.error(row, f"byte 0x{text[error.start]:02x}", accepted) from error
    return replace(block, text=text.replace(b"\r\n", b"\n")) if b"\r" in text else block


def separated(block: Block, separator: str) -> tuple[Block, str]:
    """Return the block without quotes around cells, and the one character between them."""
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


def _unquoted(block: Block, separator: str) -> bytes:
    try:
        return _reread(block, separator, None)
    except InputError:
        # Some write a quote inside quotes as \" in place of "".
        if b'\\"' not in block.text:
            raise
        return _reread(block, separator, "\\")


def _reread(block: Block, separator: str, escape: str | None) -> bytes:
    lines = block.text.decode().split("\n")[:-1]
    rows = csv.reader(lines, delimiter=separator, escapechar=escape, skipinitialspace=True, strict=True)
    plain: list[str] = []
    try:
        for row in rows:
            if rows.line_num != len(plain) + 1:
                raise csv.Error("line break inside quotes")
            plain.append(_UNIT.join(row) + "\n")
    except csv.Error as error:
        accepted = f"quoted cells that end on their line, as those of: {_WITHOUT_TEXTS}"
        raise block.error(len(plain), str(error), accepted) from error
    return "".join(plain).encode()


_CELL_BYTES = 255
_NEWLINE = ord("\n")
_BLANKS = np.frombuffer(b" \t\r", dtype=np.uint8)
_INT64_DIGITS = 18
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(?:\.0{1,9})?")
"""An integer in its shortest form, perhaps with decimals of zero."""


def _cut_cells(block: Block, mark: str, width: int, layout: Layout) -> tuple[Ints, Ints]:
    """Return where the cells of a block start and end, shape (rows, width) each."""
    data = np.frombuffer(block.text, dtype=np.uint8)
    marks = np.flatnonzero((data == ord(mark)) | (data == _NEWLINE))
    rows = block.text.count(b"\n")
    if marks.size != rows * width or np.any(data[marks[width - 1 :: width]] != _NEWLINE):
        for row, line in enumerate(block.text.split(b"\n")):
            columns = line.count(mark.encode()) + 1
            if columns != width or not line.strip():
                raise block.error(
                    row,
                    f"{columns} column{'s' if columns > 1 else ''}" if line.strip() else "an empty line",
                    f"{width} columns separated by {layout.described_separator}",
                )
    starts = np.concatenate([[0], marks[:-1] + 1])
    return starts.reshape(rows, width), marks.reshape(rows, width)


def characters(block: Block, starts: Ints, ends: Ints, name: str, *, empty: bool = False) -> Uint8s:
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
    if not empty and np.any(lengths == 0):
        raise block.error(int(np.argmin(lengths)), f"nothing in {name}", "a value in every line")
    table = np.zeros((max(1, int(lengths.max())), lengths.size), dtype=np.uint8)
    for place, places in enumerate(table):
        # Past a cell's end the index may point beyond the block; whatever is read there is cleared.
        np.multiply(data[np.minimum(starts + place, data.size - 1)], place < lengths, out=places)
    return table


def identifiers(table: Uint8s) -> AnyArray:
    """Return a column as int64 if every cell is an integer in its shortest form, else as strings."""
    if len(table) <= _INT64_DIGITS:
        numbers = np.zeros(table.shape[1], dtype=np.int64)
        # "007" and "7" are different identifiers, so one with a leading zero stays a string.
        whole = (table[0] != ord("0")) | (len(table) == 1 or table[1] == 0)
        for places in table:
            digits, inside = places - np.uint8(ord("0")), places != 0
            whole &= (digits <= 9) | ~inside
            numbers = np.where(inside, numbers * 10 + digits, numbers)
        if np.all(whole):
            return numbers
    texts = words(table)
    try:
        numbers = _as_bytes(table, len(table)).astype(np.int64)  # Negative or very long integers.
    except (ValueError, OverflowError):
        return texts
    return numbers if np.array_equal(numbers.astype(np.str_), texts) else texts


def integers(texts: NDArray[np.str_]) -> AnyArray:
    """Return identifiers as int64 if all are integers, some of them with decimals that are zero.

    So are written identifiers that a program took for measurements, as pandas does beside a missing one: 7.0
    is 7, whom another line may call so. Any other text stays as it is.
    """
    # Most columns of text are known by their first cell, before they are sorted.
    if not _WHOLE.fullmatch(str(texts[0])):
        return texts
    distinct, places = np.unique(texts, return_inverse=True)
    matches = [_WHOLE.fullmatch(text) for text in distinct.tolist()]
    if not all(matches):
        return texts
    return np.array([int(match[1]) for match in matches if match], dtype=np.int64)[places]


def words(table: Uint8s) -> NDArray[np.str_]:
    """Return a column as strings."""
    cells = _as_bytes(table, len(table))
    return np.asarray(cells.astype(np.str_) if np.all(table < 128) else np.char.decode(cells, "utf-8"))


def numbers(block: Block, table: Uint8s, name: str) -> Floats:
    """Return a column as numbers, NaN for an empty cell; each distinct text is converted once."""
    # Most ratings fit into eight characters, which are compared as one integer.
    short = len(table) <= 8
    cells = _as_bytes(table, 8).view(np.uint64) if short else _as_bytes(table, len(table))
    distinct = np.unique(cells)
    texts = distinct.view("S8") if short else distinct
    values = np.array([_finite(text) for text in texts.tolist()])
    column: Floats = values[np.searchsorted(distinct, cells)]
    unread = np.isnan(column) & (table[0] != 0)
    if np.any(unread):
        row = int(np.argmax(unread))
        text = table[:, row].tobytes().rstrip(b"\0").decode()
        point = ", with a point before the decimals" if "," in text else ""
        raise block.error(row, f"{text!r} in {name}", f"a finite number{point}")
    return column


def _cell_times(block: Block, table: Uint8s, name: str) -> Floats:
    """Return a column as times; see `dprec.datasets.base.times_of`."""
    try:
        return numbers(block, table, name)
    except InputError:
        return times_of(words(table), f"{block.source}, {name}")


def _finite(text: bytes) -> float:
    try:
        number = float(text) if b"_" not in text else np.nan
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _as_bytes(table: Uint8s, width: int) -> NDArray[np.bytes_]:
    padded = np.zeros((table.shape[1], width), dtype=np.uint8)
    padded[:, : len(table)] = table.T
    return padded.view(f"S{width}")[:, 0]


Cells = Literal["identifier", "number", "number or nothing", "text or nothing", "time"]
"""What the cells of a column hold."""


def read_rows(path: Path, layout: Layout, *, timed: bool = False) -> RatingRows:
    """Read the users, items, ratings and perhaps times of a file; pairs without ratings have NaN.

    Raises InputError when a line has too few or too many columns, an empty cell, an identifier that is not
    UTF-8 or a rating that is not a finite number; when the file is missing, empty or binary.
    """
    wanted: list[tuple[str | int, Cells]]
    wanted = [(layout.user, "identifier"), (layout.item, "identifier")]
    if layout.rating is not None:
        wanted.append((layout.rating, "number"))
    if timed and layout.timestamp is not None:
        wanted.append((layout.timestamp, "time"))
    users, items, *columns = read_columns(path, layout, wanted)
    values = np.full(users.size, np.nan) if layout.rating is None else columns.pop(0)
    times = columns
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


def opened_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, without their ends."""
    for block in blocks(path):
        yield from block.text.decode().splitlines()


def first_lines(path: Path, most: int = 20) -> list[str]:
    """Return the first lines of a file, without their ends; none of an empty file."""
    for block in blocks(path):
        return [line.decode() for line in block.text.split(b"\n", most)[:most] if line]
    return []


def read_columns(path: Path, layout: Layout, wanted: Sequence[tuple[str | int, Cells]]) -> list[AnyArray]:
    """Read columns of a file, by name or position from 1, shape (rows,).

    As float64 for times and for numbers, NaN for nothing; str for text; int64 for identifiers that are all
    integers, else str. Raises InputError as for `read_rows`.
    """
    first = first_cells(path, layout.separator)
    width = layout.width or len(first)
    if width == 1:
        raise _unseparated(first[0], path, layout)
    columns = [_position(column, first, width, layout.header, str(path)) for column, _ in wanted]
    parts: list[list[AnyArray]] = [[] for _ in wanted]
    for stretch in blocks(path):
        block = stretch
        if layout.header and stretch.line == 1:
            block = replace(stretch, text=stretch.text.partition(b"\n")[2], line=2)
        if not block.text:
            continue
        plain, mark = separated(block, layout.separator)
        starts, ends = _cut_cells(plain, mark, width, layout)
        for (column, kind), position, values in zip(wanted, columns, parts, strict=True):
            name = column if isinstance(column, str) else f"column {column}"
            empty = kind.endswith("nothing")
            table = characters(plain, starts[:, position], ends[:, position], name, empty=empty)
            values.append(_read(plain, table, kind, name))
    if not parts[0]:
        raise InputError(str(path), "a header and nothing below it", "one row per line")
    joined = [_joined(values, kind) for values, (_, kind) in zip(parts, wanted, strict=True)]
    for (column, kind), whole in zip(wanted, joined, strict=True):
        if kind == "identifier":
            _check_missing(whole, column, layout, str(path))
    return joined


def _read(block: Block, table: Uint8s, kind: Cells, name: str) -> AnyArray:
    if kind == "identifier":
        return identifiers(table)
    if kind == "time":
        return _cell_times(block, table, name)
    return words(table) if kind == "text or nothing" else numbers(block, table, name)


def _check_missing(ids: AnyArray, column: str | int, layout: Layout, source: str) -> None:
    """Refuse what stands for a missing number among identifiers that are integers otherwise."""
    if ids.dtype.kind != "U":
        return
    missing = (ids == "nan") | (ids == "NaN")
    if missing.any() and integers(np.append(ids[~missing], "0")[::-1]).dtype.kind == "i":
        row, name = int(missing.argmax()), column if isinstance(column, str) else f"column {column}"
        where = f"{source}, line {row + (2 if layout.header else 1)}"
        raise InputError(where, f"{str(ids[row])!r} in {name}", "an identifier in every line")


def _unseparated(line: str, path: Path, layout: Layout) -> InputError:
    """Return the error for a first line of only one column, with the separator that it seems to have."""
    likeliest = max((",", ";", "\t", "::", "|", " "), key=line.count)
    name = {" ": repr(WHITESPACE), "\t": "'tab'"}.get(likeliest, repr(likeliest))
    hint = f"; here the separator seems to be {name}" if likeliest in line else ""
    accepted = f"columns separated by {layout.described_separator}{hint}"
    return InputError(f"{path}, line 1", "1 column", accepted)


def _joined(parts: list[AnyArray], kind: Cells) -> AnyArray:
    if any(part.dtype.kind == "U" for part in parts):
        # This restores what was read, as only integers in their shortest form became numbers.
        parts = [part.astype(np.str_) for part in parts]
    whole: AnyArray = np.concatenate(parts)
    return integers(whole) if kind == "identifier" and whole.dtype.kind == "U" else whole


def _position(column: str | int, first: list[str], width: int, header: bool, source: str) -> int:
    if isinstance(column, str) and not header:
        raise InputError("column", repr(column), "a position counted from 1, as the file has no header")
    return column_place(column, first if header else [""] * width, f"{source}, line 1")
