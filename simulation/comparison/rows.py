"""comparison.csv: one line per cell, readable without dprec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dprec.errors import InputError
from simulation.comparison.tabulation import UserErrors
from simulation.comparison.templates import Cell
from simulation.configuration.strict_yaml import flatten
from simulation.storage.directories import SUMMARY
from simulation.storage.summary import Summary, read_summary
from simulation.storage.tables import Row

LEFT_OUT = (
    "schema",
    "name",
    "time",
    "peak_memory_mb",
    "environment",
    "completion_diagnostics",
    "item_names",
    "nothing_sent",
    "privacy.notes",
    "files",
)
"""Keys that are not figures of a protocol, or differ from one machine to the next.

What is reached with nothing sent is a line of its own.
"""

TIMING = ("time.total_s", "time.startup_s", "time.clients_s", "time.server_s", "peak_memory_mb")


def table_rows(cell: Cell, folder: Path) -> tuple[Row, Row]:
    """Return the figures of a finished cell, and its timing.

    Raises
    ------
    InputError
        When its summary is damaged.
    """
    with _damaged(folder / cell.key):
        summary = read_summary(folder / cell.key)
    return _figures(cell, summary), _timing(cell, summary)


def user_errors(directory: Path) -> UserErrors:
    """Return the errors of the predictions in a finished cell's directory, by user.

    Raises
    ------
    InputError
        When its summary or its predictions are damaged.
    """
    with _damaged(directory):
        return UserErrors.read(directory, read_summary(directory))


@contextmanager
def _damaged(directory: Path) -> Iterator[None]:
    """Say of a damaged cell how to go on."""
    try:
        yield
    except InputError as error:
        again = f"{error.accepted}; without {directory / SUMMARY}, --resume runs the cell again"
        raise InputError(error.where, error.found, again) from None


def _figures(cell: Cell, summary: Summary) -> Row:
    """Return a cell's line of comparison.csv; lists have no column."""
    figures = flatten(summary.as_json())
    included = {key: value for key, value in figures.items() if not key.startswith(LEFT_OUT)}
    row = {column_of(key): value for key, value in included.items() if not isinstance(value, list)}
    row["scale_low"], row["scale_high"] = summary.dataset.scale
    row["total_message_bytes"] = summary.traffic.total_message_bytes
    row["baseline"] = cell.baseline
    return {**_identity(cell), **row}


def _timing(cell: Cell, summary: Summary) -> Row:
    """Return the timing of a cell, which is never the same twice and has its own table."""
    figures = flatten(summary.as_json())
    seconds = {column_of(key): figures[key] for key in TIMING}
    return {
        **_identity(cell),
        **seconds,
        "device_s_per_user": summary.time.clients_s / summary.traffic.users,
    }


def _identity(cell: Cell) -> Row:
    row = {"name": cell.protocol, "epsilon": cell.epsilon, "fold": cell.fold, "seed": cell.seed}
    row |= {"quick": True} if cell.quick else {}
    row |= {} if cell.panel is None else {"panel": cell.panel}
    return row if cell.population is None else {**row, "population": cell.population}


def column_of(key: str) -> str:
    """Return the name of the column for a key of the summary."""
    for prefix in ("accuracy.", "privacy.", "traffic.", "dataset.", "time."):
        if key.startswith(prefix):
            key = key.removeprefix(prefix)
            return "dataset" if prefix == "dataset." and key == "kind" else key.replace(".", "_")
    return key.replace(".", "_")
