"""Files that exist whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, content: str | bytes | Iterable[str | bytes], *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old one or the new one, even after a crash.

    Parameters
    ----------
    path : Path
    content : str, bytes or iterable of either
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
