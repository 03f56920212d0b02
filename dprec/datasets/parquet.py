"""Ratings in a Parquet table, of which only the columns that are needed are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.datasets.held import as_texts
from dprec.errors import InputError


def column_names(path: Path) -> list[str]:
    """Return the names of a table's columns.

    Raises
    ------
    InputError
        When it is damaged, or pyarrow is missing.
    """
    return [str(name) for name in _file(path).schema_arrow.names]


def read_table(path: Path, places: Sequence[int]) -> list[NDArray[Any]]:
    """Return columns of a table, by their places from 0.

    Raises
    ------
    InputError
        When it cannot be read, or a value is missing.
    """
    file = _file(path)
    names = [file.schema_arrow.names[place] for place in places]
    try:
        table = file.read(columns=names)
    except Exception as error:  # A damaged file can raise anything of pyarrow.
        raise _damaged(path, error) from error
    return [_values(table.column(name), f"{path}, column {name!r}") for name in names]


def _file(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        accepted = "pip install dprec[parquet], or the table as .csv"
        raise InputError(str(path), "a Parquet table, but no pyarrow", accepted) from error
    try:
        return parquet.ParquetFile(path)
    except Exception as error:  # as above
        raise _damaged(path, error) from error


def _values(column: Any, where: str) -> NDArray[Any]:
    """Return a column as an array; each distinct text is converted once."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"{where}, row {row + 1}", "nothing", "a value in every row")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return np.asarray(column.to_numpy())
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    distinct = whole.dictionary.to_pylist()
    if all(isinstance(each, str) for each in distinct):
        return np.asarray(as_texts(np.array(distinct, dtype=object), where)[whole.indices.to_numpy()])
    return np.asarray(np.array(distinct)[whole.indices.to_numpy()])


def _damaged(path: Path, error: BaseException) -> InputError:
    return InputError(str(path), f"a Parquet table that cannot be read ({error})", "a whole one")
