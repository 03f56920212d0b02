"""Which committed figures moved when results were made anew last, from docs/moved.csv."""

from __future__ import annotations

import csv
from functools import cache

from docs.tables import table
from docs.tables.leaderboard import rounded
from docs.tables.results import MOVED, summary
from simulation.analysis.vocabulary import Metric, grouped_by, number

_Line = dict[str, str]


def moved() -> str:
    """Return a line for each table whose accuracy moved at the digits shown: how often, and where most."""
    with MOVED.open(encoding="utf-8", newline="") as file:
        tables = grouped_by((line["table"], line) for line in csv.DictReader(file))
    rows = []
    for name, lines in tables.items():
        kept = summary(name)
        metrics, count = _main_metrics(name), len(kept.results) + len(kept.populations)
        most = max(lines, key=_apart)
        metric = metrics[most["protocol"]]
        where = f"`{most['protocol']}`{' at ε = ' + most['epsilon'] if most['epsilon'] else ''}"
        before, after = (number(float(most[key]), metric.digits) for key in ("before", "after"))
        rows.append(
            [
                f"`{name}`",
                f"{len(lines)} of {count}",
                where,
                f"{metric.label} {before} → {after}",
            ]
        )
    return table(["table", "accuracies that moved", "most", "from and to"], rows)


@cache
def _main_metrics(name: str) -> dict[str, Metric]:
    """Return by what each protocol of a table is judged, as tables round it."""
    results = summary(name).results
    return {own.name: rounded(own.evaluation.metric) for own in results if own.evaluation}


def _apart(line: _Line) -> float:
    before, after = float(line["before"]), float(line["after"])
    return abs(after - before) / max(abs(before), abs(after))


def shows(line: _Line) -> bool:
    """Return whether a line is of a metric that moved at the digits that tables show."""
    metric = _main_metrics(line["table"]).get(line["protocol"])
    if metric is None or line["figure"] != metric.column:
        return False
    return number(float(line["before"]), metric.digits) != number(float(line["after"]), metric.digits)
