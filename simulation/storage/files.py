"""Files that exist whole or not at all, are recorded when they are written, and read with one-line errors."""

import csv
import errno
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dprec.errors import InputError, RunError, accepted_by, shown

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


FROM_RUN = "a file that `dprec run` wrote"


class Document(BaseModel):
    """A JSON object, or part of one, with known keys and types."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


Count = Annotated[int, Field(ge=0)]


class FileSummary(Document):
    """A file beside the summary, at the time it was written."""

    rows: Count | None = Field(description="Lines without the header; null for a file without lines.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of its bytes, in hexadecimal.")


_DocumentT = TypeVar("_DocumentT", bound=Document)


def read_text(path: Path, accepted: str = FROM_RUN) -> str:
    """Read a text file.

    Raises
    ------
    InputError
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None
    except UnicodeDecodeError:
        raise InputError(str(path), "not UTF-8 text", accepted) from None


def parse_document(model: type[_DocumentT], text: str, where: str) -> _DocumentT:
    """Parse a JSON object.

    Parameters
    ----------
    where : str
        The file, and the line if the file holds several objects.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or of another type.
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

    Parameters
    ----------
    accepted : str
        What the file should hold, for errors.

    Raises
    ------
    InputError
        When the file is missing, cannot be read or is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", accepted) from None
    except (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise InputError(str(path), "truncated or damaged", accepted) from None
