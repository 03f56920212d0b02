"""Files that exist whole or not at all, JSON documents, and tables: CSV, or Parquet if they are large."""

import csv
import errno
import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clients.places import sync_folder
from dprec import formats
from dprec.components import first_error
from dprec.errors import InputError, RunError, one_line

if TYPE_CHECKING:
    import polars

    SchemaNumber = int
else:
    SchemaNumber = Literal[formats.NUMBER]

UNFINISHED = ".dprec-"
"""Beginning of the names of files that are being written."""


@contextmanager
def written_atomically(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Yield a file to write to; readers see the old one or the new one, and after a crash the new one.

    ``mode``: permissions of the file.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{UNFINISHED}{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def write_atomically(
    path: Path, content: str | bytes | Iterable[str | bytes | memoryview], *, mode: int = 0o644
) -> None:
    """Write a file as `written_atomically` has it."""
    chunks = [content] if isinstance(content, str | bytes) else content
    with written_atomically(path, mode=mode) as file:
        file.writelines(chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks)


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
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"{name}: {reason}")
    return InputError(name, reason, "a directory that can be read and written")


FROM_RUN = "a file that `dprec run` wrote"


class Document(BaseModel):
    """A JSON object, or part of one, with known keys and types."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        defer_build=True,  # until the first document of the class
    )


class Stamped(Document):
    """A whole file, which says its format, and which dprec wrote it; see `dprec.formats`."""

    schema_version: SchemaNumber = Field(
        default=formats.NUMBER, alias="schema", description="Number of the formats."
    )
    dprec: str | None = Field(default=None, description="Version of dprec that wrote it.")


Count = Annotated[int, Field(ge=0)]

_DocumentT = TypeVar("_DocumentT", bound=Document)
_Made = TypeVar("_Made")


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
        first = first_error(error, model)
    raise InputError(f"{where}: {first.key}" if first.key else where, first.found, first.accepted)


def write_archive(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to one compressed file."""
    buffer = io.BytesIO()
    # As numpy.savez_compressed, which takes five times as long for two thirds of the size.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def read_archive(path: Path, make: Callable[[dict[str, NDArray[Any]]], _Made], accepted: str) -> _Made:
    """Return what ``make`` makes of the arrays that `write_archive` wrote.

    ``accepted``: what the file should hold, for errors.
    Raises InputError when the file is missing, cannot be read, is damaged or holds something else.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return make({name: file[name] for name in file.files})
    except InputError:
        raise
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", accepted) from None
    except (LookupError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise InputError(str(path), "truncated or damaged", accepted) from None


Row = dict[str, Any]
"""One line of a table, by column."""

Columns = dict[str, NDArray[Any]]
"""A table by column; all columns have the same length."""


@dataclass(frozen=True, eq=False)
class LookedUp:
    """A column of few different values, which are looked up where they are read: it takes less memory."""

    values: NDArray[Any]
    places: NDArray[np.integer[Any]]
    """The place of each row's value; shape (rows,)."""

    def __len__(self) -> int:
        return self.places.size

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        return self.values[self.places[rows]]


Table = Mapping[str, NDArray[Any] | LookedUp]
"""A table by column, some of which may be looked up."""


def whole(table: Table) -> Columns:
    """Return all columns as arrays."""
    return {name: column[:] for name, column in table.items()}


Line = tuple[str, list[str]]
"""The place of a line, as an error names it, and its cells."""

MOST_ROWS_OF_CSV = 5_000_000
"""A table with more is Parquet, which takes half of the time and of the space of compressed CSV."""

_PARQUET = ".parquet"


def table_name(name: str, rows: int) -> str:
    """Return how the file of a table of so many rows is called; ``name``: as CSV."""
    return name if rows <= MOST_ROWS_OF_CSV else name.partition(".")[0] + _PARQUET


def table_in(directory: Path, name: str) -> Path:
    """Return the file of a table in a directory, as Parquet if there is one; ``name``: as CSV."""
    large = directory / table_name(name, MOST_ROWS_OF_CSV + 1)
    return large if large.exists() else directory / name


_ROWS_AT_ONCE = 1 << 16

_ROWS_OF_A_GROUP = 1 << 20
"""Of Parquet, which are in memory together."""


def write_table(path: Path, columns: Table) -> None:
    """Write a table; numbers that are not finite become empty cells.

    ``path``: a name that ends with .parquet makes it Parquet, else it is CSV; one that ends with .gz is
    compressed, and says nothing of when it was.
    """
    rows = len(next(iter(columns.values())))

    def part_of(start: int, count: int) -> "polars.DataFrame":
        return frame_of({name: column[start : start + count] for name, column in columns.items()})

    if path.suffix == _PARQUET:
        with written_atomically(path) as file:
            _write_groups(file, rows, part_of)
        return
    # The digits of predictions are random: level 6 takes three times as long, for a third less.
    compression = "gzip" if path.suffix == ".gz" else "uncompressed"
    write_atomically(path, csv_parts(rows, part_of, compression=compression, compression_level=1))


PartOf = Callable[[int, int], "polars.DataFrame"]
"""Returns rows as a frame, given the first and how many."""


def _write_groups(file: BinaryIO, rows: int, part_of: PartOf) -> None:
    """Write so many rows as Parquet, a group at a time; raises OSError."""
    import polars
    from polars.io.plugins import register_io_source

    def parts(*_pushed_down: object) -> "Iterator[polars.DataFrame]":
        for start in range(0, rows, _ROWS_OF_A_GROUP):
            yield part_of(start, _ROWS_OF_A_GROUP)

    lazy = register_io_source(parts, schema=part_of(0, 1).schema)
    try:
        lazy.sink_parquet(file, compression="zstd", row_group_size=_ROWS_OF_A_GROUP)
    except polars.exceptions.PolarsError as error:  # the system's own are among them
        raise OSError(errno.EIO, one_line(error)) from error


def frame_of(columns: Columns) -> "polars.DataFrame":
    """Return columns as a frame, in which numbers that are not finite are missing."""
    import polars

    return polars.DataFrame({name: finite(column) for name, column in columns.items()}, nan_to_null=True)


def csv_parts(rows: int, part_of: PartOf, *, header: bool = True, **written: Any) -> Iterator[bytes]:
    """Yield so many rows as CSV, part by part, so that never all of them are text.

    ``written``: how, as polars takes it.
    """
    for start in range(0, max(rows, 1), _ROWS_AT_ONCE):
        content = io.BytesIO()
        part_of(start, _ROWS_AT_ONCE).write_csv(content, include_header=header and start == 0, **written)
        yield content.getvalue()


def parquet_of(frame: "polars.DataFrame", **written: Any) -> bytes:
    """Return a frame as Parquet; ``written``: as for `csv_parts`."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd", **written)
    return content.getvalue()


def finite(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column with NaN for every number that is not finite."""
    return np.where(np.isfinite(column), column, np.nan) if column.dtype.kind == "f" else column


def csv_of_rows(rows: Sequence[Row]) -> str:
    """Return a table as CSV with the columns of all rows; a value that a row lacks becomes an empty cell."""
    header = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows([row.get(name) for name in header] for row in rows)
    return text.getvalue()


def read_lines(path: Path, needed: Sequence[str], accepted: str) -> Iterator[Line]:
    """Yield the header of a CSV file and then its lines; each has as many cells as the header.

    ``needed``: columns that the table must have.
    ``accepted``: what file is expected, for errors.
    Raises InputError when the file cannot be read, is cut, or is not such a table; it names the line.
    """
    text = read_text(path, accepted)
    if text and not text.endswith("\n"):
        raise InputError(str(path), "a last line that does not end", accepted)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        if missing := [column for column in needed if column not in header]:
            raise InputError(str(path), f"no column {missing[0]}", accepted)
        yield str(path), header
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            if len(cells) != len(header):
                raise InputError(where, f"{len(cells)} cells", f"{len(header)}, one per column")
            yield where, cells
    except csv.Error as error:
        raise InputError(str(path), str(error), accepted) from None


def read_columns(
    path: Path, types: Mapping[str, type[np.generic]], accepted: str, most: int | None = None
) -> Columns:
    """Read columns of numbers or texts from a table that `write_table` wrote.

    ``types``: the columns, and the NumPy type of each; an empty cell of a column of floats is NaN.
    ``accepted``: as for `read_lines`.
    ``most``: lines, of those at the beginning; by default all.
    Raises InputError.
    """
    import polars

    kinds = ((np.str_, polars.String), (np.integer, polars.Int64), (np.floating, polars.Float64))
    read_as: dict[str, Any] = {
        name: next(kind for numpy_kind, kind in kinds if issubclass(dtype, numpy_kind))
        for name, dtype in types.items()
    }
    try:
        with path.open("rb") as file:
            file.seek(-min(1, path.stat().st_size), os.SEEK_END)
            if path.suffix not in (".gz", _PARQUET) and file.read() != b"\n":
                raise InputError(str(path), "a last line that does not end", accepted)
        if path.suffix == _PARQUET:
            frame = polars.read_parquet(path, columns=list(types), n_rows=most)
            frame = frame.cast(dict(read_as.items()))
        else:
            frame = polars.read_csv(
                path, columns=list(types), schema_overrides=read_as, infer_schema=False, n_rows=most
            )
        frame = frame.with_columns(polars.col(polars.String).fill_null(""))
    except (OSError, polars.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(str(path), reason or str(error).partition("\n")[0], accepted) from None
    for name, dtype in types.items():
        if issubclass(dtype, np.integer) and frame[name].null_count():
            raise InputError(f"{path}: {name}", "an empty cell", accepted)
    # One after the other, so that never all of them are in memory twice.
    return {name: frame.drop_in_place(name).to_numpy().astype(dtype) for name, dtype in types.items()}
