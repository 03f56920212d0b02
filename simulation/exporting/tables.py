"""The tables of a run as frames, and frames as the contents of files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.directories import CONFIG
from simulation.storage.files import Columns, finite
from simulation.storage.run_files import (
    line_of,
    read_lists,
    read_predictions,
    read_rounds,
    read_traffic,
    read_users,
    writes_lists,
)
from simulation.storage.summary import Summary

if TYPE_CHECKING:
    import polars

_ROWS_AT_ONCE = 1 << 20


def run_tables(directory: Path, summary: Summary) -> dict[str, polars.DataFrame]:
    """Return all tables of a run by their names: users and lists where there are any, rounds if there were.

    Raises InputError when a file cannot be read or does not fit the summary.
    """
    import polars

    listed = writes_lists(read_yaml(directory / CONFIG), summary)
    tables = {
        "predictions": frame_of(read_predictions(directory, summary, relevant=listed)),
        "traffic": frame_of(read_traffic(directory, summary, users=True)),
    }
    if listed:
        tables["lists"] = frame_of(read_lists(directory))
    if summary.groups:
        tables["users"] = frame_of(read_users(directory, summary))
    if rounds := read_rounds(directory, summary):
        tables["rounds"] = polars.DataFrame(
            [flatten(line_of(record)) for record in rounds], infer_schema_length=None
        )
    return tables


def frame_of(columns: Columns) -> polars.DataFrame:
    """Return columns as a frame, in which numbers that are not finite are missing."""
    import polars

    return polars.DataFrame({name: finite(column) for name, column in columns.items()}, nan_to_null=True)


def as_csv(frame: polars.DataFrame, **written: Any) -> Iterator[bytes]:
    """Yield a frame as CSV, part by part; ``written``: how, as polars takes it."""
    for start in range(0, max(frame.height, 1), _ROWS_AT_ONCE):
        part = io.BytesIO()
        frame.slice(start, _ROWS_AT_ONCE).write_csv(part, **{"include_header": start == 0, **written})
        yield part.getvalue()


def as_parquet(frame: polars.DataFrame) -> Iterator[bytes]:
    """Yield a frame as Parquet."""
    content = io.BytesIO()
    frame.write_parquet(content)
    yield content.getvalue()
