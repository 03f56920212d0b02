"""comparison.csv: one line per cell, readable without dprec, and its averages over folds and seeds."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprec.errors import InputError
from simulation.comparison.config import Cell
from simulation.config import flatten
from simulation.file_names import SUMMARY

Row = dict[str, Any]

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


def to_csv(rows: Sequence[Row]) -> str:
    """Return a CSV table with one line per row; what does not apply is empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if row.get(column) is None else row[column] for column in columns] for row in rows)
    return text.getvalue()


@dataclass(frozen=True)
class Average:
    """Mean and spread of one figure over the folds and seeds of a protocol at one epsilon.

    Parameters
    ----------
    mean : float
    deviation : float
        Standard deviation; 0 for a single cell.
    count : int
    """

    mean: float
    deviation: float
    count: int


def average(values: Iterable[Any]) -> Average | None:
    """Average the numbers among the values; None where there is none."""
    numbers = [float(value) for value in values if value not in (None, "")]
    numbers = [value for value in numbers if math.isfinite(value)]
    if not numbers:
        return None
    spread = statistics.stdev(numbers) if len(numbers) > 1 else 0.0
    return Average(statistics.fmean(numbers), spread, len(numbers))


def grouped(rows: Sequence[Row]) -> dict[tuple[str, float | None], list[Row]]:
    """Group the lines by protocol and epsilon, in the order of the lines."""
    groups: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        epsilon = row["epsilon"]
        groups.setdefault((row["name"], None if epsilon in (None, "") else float(epsilon)), []).append(row)
    return groups


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
