"""Files of devices and servers that survive a crash, and who may use them.

What is written is on disk when a call returns. A ledger or a journal is lines of JSON, each with a digest of
all before it: only the last one can have been cut off.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.places import sync_folder
from dprec.errors import InputError, RunError

OWNER_ONLY, OPEN = 0o600, 0o644
"""Permissions of what says something about a user, and of keys; and of other files."""

PART = ".part-"
"""How the name of a file begins that is not written yet."""

IGNORED = ".gitignore", b"*\n"
"""The name of a file, and what it says, by which Git adds nothing of its folder."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOOK_SECONDS = 0.5


class NamedFile:
    """An attribute of a folder: the path of a file in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: Any, owner: type | None = None) -> Path:
        """Return the path."""
        path: Path = folder.path / self._name
        return path


def read_bytes(path: Path, accepted: str) -> bytes:
    """Read a file; raises InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None


def read_text(path: Path, accepted: str) -> str:
    """Read a text file; raises InputError."""
    try:
        return read_bytes(path, accepted).decode()
    except UnicodeDecodeError:
        raise InputError(str(path), "no UTF-8", accepted) from None


def unusable(path: Path, error: OSError) -> InputError | RunError:
    """Return the error to raise for a path that cannot be used; a full disk is nobody's mistake."""
    name, reason = str(error.filename or path), str(error.strerror)
    if error.errno in _FULL:
        return RunError(f"{name}: {reason}")
    return InputError(name, reason, "a directory that can be read and written")


def write_durably(path: Path, contents: str | bytes, mode: int = OWNER_ONLY) -> None:
    """Replace a file as a whole; raises OSError when it cannot be written, and the old contents remain."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents.encode() if isinstance(contents, str) else contents)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync_folder(path.parent)


def append_durably(path: Path, contents: bytes, *, after: int) -> None:
    """Write the end of a file after some bytes; raises OSError when part of it may be missing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(after)
        file.seek(after)
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder, for its owner alone, that takes a place in the end: whole, or not at all."""
    place = folder.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        yield building
        os.rename(building, place)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


@contextmanager
def locked(path: Path, where: Path, accepted: str, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes out by a lock, which ends with the process, however it ends.

    ``where``: what is locked; ``patience``: for how many seconds another process is waited for. Raises
    InputError when that still has it, or there can be no lock.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    except OSError as error:
        raise unusable(path, error) from None
    with os.fdopen(descriptor):
        os.fchmod(descriptor, OWNER_ONLY)
        deadline = time.monotonic() + patience
        while not _taken(descriptor):
            if time.monotonic() >= deadline:
                raise InputError(str(where), "in use by another process", accepted)
            time.sleep(_LOOK_SECONDS)
        yield


def _taken(descriptor: int) -> bool:
    """Take a lock, and return whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class Chain:
    """The lines of a file up to one, each with a digest of all before it."""

    path: Path
    size: int = 0
    """Bytes."""
    digest: str = ""
    """Of all lines."""

    def line(self, entry: Mapping[str, Any]) -> bytes:
        """Return the line of an entry that follows."""
        return (json.dumps({**entry, "chain": self._with(entry)}) + "\n").encode()

    def after(self, line: bytes) -> tuple[dict[str, Any], "Chain"] | None:
        """Return what a line says, and the lines with it; None if it is damaged or does not follow."""
        try:
            entry = json.loads(line)
            del entry["chain"]
            if line != self.line(entry):
                return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return entry, Chain(self.path, self.size + len(line), self._with(entry))

    def append(self, line: bytes) -> "Chain":
        """Write a line that follows to disk, and return the lines with it; raises OSError."""
        read = self.after(line)
        assert read is not None, "a line that does not follow"
        append_durably(self.path, line, after=self.size)
        return read[1]

    def _with(self, entry: Mapping[str, Any]) -> str:
        return hashlib.sha256((self.digest + json.dumps(entry)).encode()).hexdigest()


_ADDRESS = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})", re.ASCII)
"""A name or an address of version 4, or one of version 6 in brackets; and the port."""


def check_address(address: str, where: str = "--superlink") -> None:
    """Raise InputError for what is no address."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise InputError(where, address, "HOST:PORT, such as recommend.example:443")
