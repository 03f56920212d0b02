"""comparison.csv: one line per cell, readable without dprec."""

from __future__ import annotations

import json
from pathlib import Path

from dprec.errors import InputError
from simulation.comparison.planning import Cell
from simulation.configuration.dotted_keys import flatten
from simulation.storage.names import SUMMARY
from simulation.storage.tables import Row

_LEFT_OUT = (
    "schema",
    "name",
    "time",
    "peak_memory_mb",
    "environment",
    "completion_diagnostics",
    "privacy.notes",
)
"""Not figures of a protocol, or not the same from one machine to the next."""

TIMING = ("time.total_s", "time.startup_s", "time.clients_s", "time.server_s", "peak_memory_mb")


def lines(cell: Cell, folder: Path) -> tuple[Row, Row]:
    """Return the figures of a finished cell, and what it took.

    Raises
    ------
    InputError
        When its summary is damaged.
    """
    path = folder / cell.key / SUMMARY
    try:
        summary = flatten(json.loads(path.read_text(encoding="utf-8")))
        return _figures(cell, summary), _timing(cell, summary)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        accepted = "that of a finished run; without it, --resume runs the cell again"
        raise InputError(str(path), "a damaged summary", accepted) from None


def _figures(cell: Cell, summary: Row) -> Row:
    kept = {key: value for key, value in summary.items() if not key.startswith(_LEFT_OUT)}
    row = {_column(key): value for key, value in kept.items() if not isinstance(value, list)}
    row["scale_low"], row["scale_high"] = summary["dataset.scale"]
    row["total_message_bytes"] = (
        summary["traffic.uplink.message_bytes"] + summary["traffic.downlink.message_bytes"]
    )
    return {**_identity(cell), **row}


def _timing(cell: Cell, summary: Row) -> Row:
    """Return what a cell took; never the same twice, hence a table of its own."""
    users = summary["dataset.users"]
    seconds = {_column(key): summary[key] for key in TIMING}
    return {**_identity(cell), **seconds, "device_s_per_user": summary["time.clients_s"] / users}


def _identity(cell: Cell) -> Row:
    row = {"name": cell.protocol, "epsilon": cell.epsilon, "fold": cell.fold, "seed": cell.seed}
    return row if cell.panel is None else {**row, "panel": cell.panel}


def _column(key: str) -> str:
    """Name a column after the last parts of a summary's key."""
    for prefix in ("accuracy.", "privacy.", "traffic.", "dataset.", "time."):
        if key.startswith(prefix):
            key = key.removeprefix(prefix)
            return "dataset" if prefix == "dataset." and key == "kind" else key.replace(".", "_")
    return key.replace(".", "_")
