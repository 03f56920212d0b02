"""Writes that survive a crash: the bytes, and the entry of their folder, are on disk when a call returns."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

OWNER_ONLY = 0o600
"""Permissions of what says something about the user."""

PART = ".part-"
"""How the name of a file begins that is not written yet."""


def write_durably(path: Path, contents: bytes) -> None:
    """Replace a file as a whole.

    Raises
    ------
    OSError
        When it cannot be written; the old contents remain.
    """
    # The mode of such a file is that of `OWNER_ONLY`.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync_folder(path.parent)


def append_durably(path: Path, contents: bytes, *, after: int) -> None:
    """Write the end of a file.

    Parameters
    ----------
    path : Path
        Made if there is none.
    contents : bytes
    after : int
        Bytes to keep; what follows them is replaced.

    Raises
    ------
    OSError
        When it cannot be written; part of it may be.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(after)
        file.seek(after)
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to disk: without it, a new file may have no name after a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
