"""Files that exist whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from dprec.errors import InputError, RunError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomically(path: Path, content: str | bytes | Iterable[str | bytes], *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old one or the new one, even after a crash.

    Parameters
    ----------
    mode : int
        Permissions of the file.
    """
    chunks = [content] if isinstance(content, str | bytes) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files to a folder, which is made if there is none.

    Raises
    ------
    InputError, RunError
        As `unusable`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise unusable(folder, error) from None


def unusable(path: Path, error: OSError) -> InputError | RunError:
    """Return the error to raise for a path that cannot be read or written.

    Parameters
    ----------
    path : Path
        Named if the error names no file of its own.

    Returns
    -------
    InputError or RunError
        A full disk is no mistake in what was typed.
    """
    name, reason = str(error.filename or path), str(error.strerror)
    if error.errno in _FULL:
        return RunError(f"{name}: {reason}")
    return InputError(name, reason, "a directory that can be read and written")
