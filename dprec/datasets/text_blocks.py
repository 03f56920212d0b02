"""Text files in blocks of whole lines, with one character between the cells.

Anything else (quoted cells, separators of several characters) is rewritten into that form, block by
block.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.datasets.base import WHITESPACE
from dprec.datasets.files import decoded, opened
from dprec.errors import InputError

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

    Raises
    ------
    InputError
        When the file cannot be read, or is no text in UTF-8, or with a byte order mark in UTF-16 or UTF-32;
        also as `dprec.datasets.files.opened`.
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
