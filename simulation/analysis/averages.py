"""Averages of a comparison's lines over folds and seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.storage.tables import Row


@dataclass(frozen=True)
class Spread:
    """How far a figure scatters when only one thing is changed."""

    deviation: float
    """Standard deviation, of a sample: with count - 1 in the denominator."""
    count: int
    """At least 2."""


@dataclass(frozen=True)
class Average:
    """Mean and spreads of one figure over the folds and seeds of a protocol at one epsilon."""

    mean: float
    """Over all runs."""
    count: int
    """Number of runs."""
    seeds: Spread | None = None
    folds: Spread | None = None
    """Over seeds, of the means over folds; and over folds, of the means over seeds. None for one only."""

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds, or over folds if there is one seed; 0 for a single run."""
        spread = self.seeds or self.folds
        return spread.deviation if spread else 0.0


def average(rows: Sequence[Row], column: str) -> Average | None:
    """Average the numbers of a column; None if there is none."""
    numbers: list[float] = []
    by_seed: dict[object, list[float]] = {}
    by_fold: dict[object, list[float]] = {}
    for row in rows:
        if (value := row.get(column)) in (None, "") or not math.isfinite(number := float(value)):
            continue
        numbers.append(number)
        by_seed.setdefault(row.get("seed"), []).append(number)
        by_fold.setdefault(row.get("fold"), []).append(number)
    if not numbers:
        return None
    seeds, folds = (_spread([statistics.fmean(own) for own in by.values()]) for by in (by_seed, by_fold))
    return Average(statistics.fmean(numbers), len(numbers), seeds, folds)


def _spread(means: Sequence[float]) -> Spread | None:
    return Spread(statistics.stdev(means), len(means)) if len(means) > 1 else None


def grouped(rows: Sequence[Row]) -> dict[tuple[str, float | None, str | None], list[Row]]:
    """Group the lines by protocol, epsilon and population, in the order of the lines."""
    groups: dict[tuple[str, float | None, str | None], list[Row]] = {}
    for row in rows:
        epsilon = None if row["epsilon"] in (None, "") else float(row["epsilon"])
        groups.setdefault((row["name"], epsilon, row.get("population") or None), []).append(row)
    return groups
