"""Files as they are distributed: plain, or packed into one gz, bz2, xz or zip file, by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

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


class Readable(Protocol):
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
def opened(path: Path) -> Iterator[Readable]:
    """Open a file, unpacked if it is packed.

    Raises
    ------
    InputError
        When it is a spreadsheet, an archive of several files, damaged, or unpacks to more than 100 times its
        size and 256 MiB.
    OSError
        When it cannot be opened.
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
