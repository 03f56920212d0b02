"""Averages of a comparison's lines over folds and seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.storage.tables import Row


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
    """Average the numbers among the values; None if there is none."""
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
