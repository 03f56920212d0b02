"""Folders that last as long as the process that made them; those of a killed process, the next one deletes.

Each folder holds a mark, a file that its owner keeps locked. The system releases the lock when the process
ends, however it ends, so a folder whose mark can be locked has no owner left. Unlike a process id, a lock
cannot be reused or come from another container.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PREFIX = "dprec-"
MARK = ".owner"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that is deleted at the end; first delete those whose owner is gone.

    Its name holds the id of this process, for people who look at the folders.
    """
    clear_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    with _marked(folder):
        try:
            yield folder
        finally:
            _delete(folder)


def clear_abandoned() -> None:
    """Delete the folders whose owner is gone; others may do so at the same time."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # A problem with a folder that nobody needs must not stop a run.
        with suppress(OSError):
            if _is_own_folder(folder):
                with (folder / MARK).open("rb") as mark:
                    fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _delete(folder)


def _marked(folder: Path) -> BinaryIO:
    """Mark a folder as owned by this process, for as long as the file that is returned is open."""
    # Locked before it gets its name, so that a visible mark is always locked.
    mark = (folder / f"{MARK}.new").open("wb")
    fcntl.flock(mark, fcntl.LOCK_EX)
    Path(mark.name).rename(folder / MARK)
    return mark


def _is_own_folder(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _delete(folder: Path) -> None:
    """Delete a folder, its mark last, so that the next process can finish an interrupted deletion."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != MARK:
            entry.unlink()
    shutil.rmtree(folder)
