"""Files that exist whole or not at all, and are recorded when they are written; CSV tables."""

import csv
import errno
import gzip
import hashlib
import io
import json
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dprec.errors import InputError, RunError, accepted_by, shown

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomically(path: Path, content: str | bytes | Iterable[str | bytes], *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old one or the new one, even after a crash.

    ``mode``: permissions of the file.
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
    """Write files to a folder, which is made if there is none; raises InputError, RunError as `unusable`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise unusable(folder, error) from None


def unusable(path: Path, error: OSError) -> InputError | RunError:
    """Return the error to raise for a path that cannot be read or written.

    ``path``: named if the error names no file of its own.
    A full disk is no mistake in what was typed.
    """
    name, reason = str(error.filename or path), str(error.strerror)
    if error.errno in _FULL:
        return RunError(f"{name}: {reason}")
    return InputError(name, reason, "a directory that can be read and written")


FROM_RUN = "a file that `dprec run` wrote"


class Document(BaseModel):
    """A JSON object, or part of one, with known keys and types."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Stamped(Document):
    """A whole file, which says its format, and which dprec wrote it; see `dprec.formats`."""

    schema_version: int | None = Field(default=None, alias="schema")
    dprec: str | None = None


Count = Annotated[int, Field(ge=0)]


class FileSummary(Document):
    """A file beside the summary, at the time it was written."""

    rows: Count | None = Field(description="Lines without the header; null for a file without lines.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of its bytes, in hexadecimal.")


_DocumentT = TypeVar("_DocumentT", bound=Document)


def read_text(path: Path, accepted: str = FROM_RUN) -> str:
    """Read a text file; raises InputError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None
    except UnicodeDecodeError:
        raise InputError(str(path), "not UTF-8 text", accepted) from None


def parse_document(model: type[_DocumentT], text: str, where: str) -> _DocumentT:
    """Parse a JSON object.

    ``where``: the file, and the line if the file holds several objects.
    Raises InputError naming the first key that is missing, unknown or of another type.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
    kind, context = first["type"], first.get("ctx", {})
    if kind == "json_invalid":
        raise InputError(where, str(context["error"]), "a JSON object")
    key = f"{where}: {'.'.join(map(str, first['loc']))}" if first["loc"] else where
    if kind == "missing":
        raise InputError(key, "missing", "the key, as `dprec run` writes it")
    if kind == "extra_forbidden":
        raise InputError(key, "an unknown key", "the keys that `dprec run` writes")
    accepted = _ACCEPTED[kind].format(**context) if kind in _ACCEPTED else accepted_by(first)
    raise InputError(key, shown(json.dumps(first["input"])), accepted)


_ACCEPTED = {
    "dict_type": "a mapping",
    "model_type": "a JSON object",
    "too_short": "a list of at least {min_length}",
}
"""What is accepted, by pydantic's type of error, where JSON has another word for it."""


def write_recorded(path: Path, content: Iterable[str | bytes], rows: int | None) -> FileSummary:
    """Write a file, and return its entry for the summary.

    ``rows``: number of lines without the header; None for a file without lines.
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

    Raises InputError naming the file, and its number of lines if that differs.
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
    rows = None if recorded.rows is None else _lines_of(path)
    if recorded.rows is None or rows is None or rows == recorded.rows:
        raise InputError(str(path), "changed since it was written", accepted)
    raise InputError(str(path), _in_words(rows), f"{_in_words(recorded.rows)}, {accepted}")


def _lines_of(path: Path) -> int | None:
    """Count the lines of a file, without the header of a table; None if they cannot be told apart."""
    if path.suffix == ".gz":
        return None
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        if path.suffix != ".csv":
            return sum(1 for _ in file)
        try:
            return max(0, sum(1 for _ in csv.reader(file)) - 1)
        except csv.Error:
            return None


def _in_words(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def write_archive(path: Path, arrays: Mapping[str, NDArray[Any]]) -> FileSummary:
    """Write named arrays to one compressed file, and return its entry for the summary."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return write_recorded(path, [buffer.getvalue()], None)


def read_archive(path: Path, accepted: str) -> dict[str, NDArray[Any]]:
    """Read what `write_archive` wrote.

    ``accepted``: what the file should hold, for errors.
    Raises InputError when the file is missing, cannot be read or is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", accepted) from None
    except (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise InputError(str(path), "truncated or damaged", accepted) from None


Row = dict[str, Any]
"""One line of a table, by column."""

Columns = dict[str, NDArray[Any]]
"""A table by column; all columns have the same length."""

Line = tuple[str, list[str]]
"""The place of a line, as an error names it, and its cells."""

_LINES_AT_ONCE = 1 << 16

_LONGEST_LINE = 1 << 20
"""Characters of the longest line that is read."""

_MOST_EXPANSION = 100
"""How many times the size of its file a compressed table may have; those of runs have three to ten."""


def csv_of_columns(columns: Columns) -> Iterator[str]:
    """Yield a table as CSV, many lines at a time; numbers that are not finite become empty cells."""
    rows = len(next(iter(columns.values())))
    parts = (
        zip(*(_cells(column[at : at + _LINES_AT_ONCE]) for column in columns.values()), strict=True)
        for at in range(0, rows, _LINES_AT_ONCE)
    )
    return _csv(list(columns), chain.from_iterable(parts))


def csv_of_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table as CSV with the columns of all rows; a value that a row lacks becomes an empty cell."""
    header = list(dict.fromkeys(column for row in rows for column in row))
    return _csv(header, (["" if row.get(name) is None else row[name] for name in header] for row in rows))


def gzipped(content: Iterable[str]) -> Iterator[bytes]:
    """Yield a text as a gzip file that says nothing of when, where and as what it was written."""
    # The digits of predictions are random: level 6 takes five times as long, for 8 % less.
    compressor = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    yield from (compressor.compress(text.encode()) for text in content)
    yield compressor.flush()


def read_lines(path: Path, needed: Sequence[str], accepted: str) -> Iterator[Line]:
    """Yield the header of a CSV file and then its lines; each has as many cells as the header.

    ``path``: a file whose name ends with .gz is decompressed as it is read.
    ``needed``: columns that the table must have.
    ``accepted``: what file is expected, for errors.
    Raises InputError when the file cannot be read or is not such a table; it names the line.
    """
    try:
        with _opened(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            reader = csv.reader(_lines(text))
            header = next(reader, [])
            missing = [column for column in needed if column not in header]
            if missing:
                raise InputError(str(path), f"no column {missing[0]}", accepted)
            yield str(path), header
            for cells in reader:
                where = f"{path}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise InputError(where, f"{len(cells)} cells", f"{len(header)}, one per column")
                yield where, cells
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(str(path), "truncated or damaged", accepted) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(str(path), str(reason), accepted) from None


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return _Decompressed(path) if path.suffix == ".gz" else path.open("rb")


class _Decompressed(gzip.GzipFile):
    """A compressed file, of which no more is decompressed than a table can have."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._left = _MOST_EXPANSION * path.stat().st_size

    def read1(self, size: int | None = -1) -> bytes:
        """Read some of it."""
        some = super().read1(-1 if size is None else size)
        self._left -= len(some)
        if self._left < 0:
            raise csv.Error(f"more than {_MOST_EXPANSION} times its size when decompressed")
        return some


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise csv.Error(f"a line of more than {_LONGEST_LINE:,} characters")
        yield line


def read_columns(path: Path, types: Mapping[str, type[np.generic]], accepted: str) -> Columns:
    """Read columns of numbers or texts from a CSV file.

    ``types``: the columns, and the NumPy type of each; an empty cell of a column of floats is NaN.
    ``accepted``: as for `read_lines`.
    Raises InputError.
    """
    lines = read_lines(path, list(types), accepted)
    _, header = next(lines)
    places = [header.index(name) for name in types]
    parts = {name: [np.empty(0, dtype)] for name, dtype in types.items()}
    # Texts take many times the memory of numbers.
    while some := [cells for _, cells in islice(lines, _LINES_AT_ONCE)]:
        for (name, dtype), place in zip(types.items(), places, strict=True):
            parts[name].append(_numbers([cells[place] for cells in some], dtype, f"{path}: {name}"))
    return {name: np.concatenate(own) for name, own in parts.items()}


def _numbers(texts: list[str], dtype: type[np.generic], where: str) -> NDArray[Any]:
    empty = "nan" if issubclass(dtype, np.floating) else ""
    try:
        return np.array([text or empty for text in texts], dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise InputError(where, str(error), "numbers") from None


def _csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    waiting = chain([header], lines)
    while some := list(islice(waiting, _LINES_AT_ONCE)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(some)
        yield text.getvalue()


def _cells(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [value if math.isfinite(value) else "" for value in values]
    return values
