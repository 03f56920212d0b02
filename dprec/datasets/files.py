"""Files as they are distributed: plain, or packed into one gz, bz2, xz or zip file, by their first bytes.

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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from dprec.datasets.base import WHITESPACE
from dprec.errors import InputError

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
    UTF-16 or UTF-32; also as `dprec.datasets.files.opened`.
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
    lines = block.text.decode().split("\n")[:-1]
    # Some write a quote inside quotes as \" in place of "".
    escape = "\\" if b'\\"' in block.text else None
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
