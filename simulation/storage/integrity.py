"""The files beside a summary, recorded when they are written and checked before they are read.

A table that was truncated at the end of a line still looks like a table; only the summary reveals it.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dprec.errors import InputError
from simulation.storage.files import FROM_RUN, write_atomically
from simulation.storage.summary import FileSummary


def write_recorded(path: Path, content: Iterable[str | bytes], rows: int | None) -> FileSummary:
    """Write a file, and return its entry for the summary.

    Parameters
    ----------
    rows : int or None
        Number of lines without the header; None for a file without lines.
    """
    digest = hashlib.sha256()

    def chunks() -> Iterator[bytes]:
        for chunk in content:
            data = chunk.encode() if isinstance(chunk, str) else chunk
            digest.update(data)
            yield data

    write_atomically(path, chunks())
    return FileSummary(rows=rows, sha256=digest.hexdigest())


def check_recorded(path: Path, recorded: FileSummary | None) -> None:
    """Refuse a file that is not the one that was written with its summary.

    Raises
    ------
    InputError
        Naming the file, and its number of lines if that differs.
    """
    if recorded is None:
        raise InputError(str(path), "no record of it in the summary", FROM_RUN)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(str(path), str(error.strerror), FROM_RUN) from None
    if digest == recorded.sha256:
        return
    accepted = "the file that was written with the summary"
    rows = None if recorded.rows is None else _rows(path)
    if recorded.rows is None or rows is None or rows == recorded.rows:
        raise InputError(str(path), "changed since it was written", accepted)
    raise InputError(str(path), _in_words(rows), f"{_in_words(recorded.rows)}, {accepted}")


def _rows(path: Path) -> int | None:
    """Count the lines of a file, without the header of a table; None if a table cannot be parsed."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        if path.suffix != ".csv":
            return sum(1 for _ in file)
        try:
            return max(0, sum(1 for _ in csv.reader(file)) - 1)
        except csv.Error:
            return None


def _in_words(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
