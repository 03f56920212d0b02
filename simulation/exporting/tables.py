"""The tables of a run as frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.directories import CONFIG
from simulation.storage.files import frame_of
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


def run_tables(directory: Path, summary: Summary) -> dict[str, polars.DataFrame]:
    """Return all tables of a run by their names: users and lists where there are any, rounds if there were.

    Identifiers are text unless all of a kind are integers.

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
        lines = [flatten(line_of(record)) for record in rounds]
        table = polars.DataFrame(lines, infer_schema_length=None)
        # A figure that no round has is a number all the same.
        tables["rounds"] = table.cast({polars.Null: polars.Float64})
    for name in ("user", "item"):
        named = {key: frame for key, frame in tables.items() if name in frame.columns}
        # All tables or none, so that they can be joined.
        if all(_are_integers(frame[name]) for frame in named.values()):
            tables |= {key: frame.cast({name: polars.Int64}) for key, frame in named.items()}
    return tables


def _are_integers(identifiers: polars.Series) -> bool:
    """Return whether all identifiers are the text of their integer, which "007" is not."""
    import polars

    return identifiers.cast(polars.Int64, strict=False).cast(polars.String).equals(identifiers)
