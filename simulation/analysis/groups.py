"""Who pays: the figures of groups of users in a comparison, over its folds and seeds, as in groups.csv."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprec.errors import InputError, one_line
from dprec.groups import MEANS, SUMS, group_figures, pooled
from simulation.analysis.vocabulary import grouped_by
from simulation.storage import directories
from simulation.storage.files import Columns, Row, read_columns
from simulation.storage.run_files import GROUP
from simulation.storage.summary import GroupSummary, Summary

IDENTITY = ("name", "epsilon", "panel", "population", "by")
"""Columns of groups.csv before the keys of a group in summary.json."""

_COUNTS = ("users", "test_ratings")


@dataclass(frozen=True)
class GroupedRun:
    """A run with groups: its fold and seed do not tell its users apart."""

    seed: object
    summary: Summary
    users: Columns
    """The columns of users.csv."""


@dataclass(frozen=True)
class GroupLine:
    """A group of users under a protocol at a budget: a line of groups.csv."""

    name: str
    epsilon: float | None
    by: str
    """What divides the users."""
    figures: GroupSummary


def over_folds(runs: Sequence[GroupedRun]) -> list[tuple[str, GroupSummary]]:
    """Return the figures of every group over runs of one protocol at one budget.

    Users' errors are added up over the folds of a seed, so that each rating that some fold tests counts once,
    and a user is worse off by all of them; coverage is the mean of the folds. Then seeds are averaged.
    """
    by_seed = grouped_by((run.seed, run) for run in runs)
    figures = [(key, by_name) for same in by_seed.values() for key, by_name in _of_seed(same)]
    lines = []
    for (by, group), of_group in grouped_by(figures).items():
        means = {name: _mean([by_name[name] for by_name in of_group]) for name in of_group[0]}
        counts = {name: round(means[name] or 0.0) for name in _COUNTS}
        lines.append((by, GroupSummary.model_validate({"group": group, **means, **counts})))
    order = list(dict.fromkeys(by for run in runs for by in run.summary.groups))
    return sorted(lines, key=lambda line: order.index(line[0]))


def _of_seed(runs: Sequence[GroupedRun]) -> list[tuple[tuple[str, str], dict[str, float | None]]]:
    """Return the figures of every group over the folds of one seed."""
    first, columns = pooled(
        [run.users["user"] for run in runs],
        [{name: run.users[name] for name in (*SUMS, *MEANS)} for run in runs],
    )
    covered = grouped_by(
        ((by, group_summary.group), group_summary.coverage)
        for run in runs
        for by, groups in run.summary.groups.items()
        for group_summary in groups
    )
    figures = []
    for by, group in covered:
        names = np.concatenate([run.users[f"{GROUP}{by}"] for run in runs])[first]
        by_name = group_figures(columns, names == group)
        figures.append(((by, group), {**by_name, "coverage": _mean(covered[by, group])}))
    return figures


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else None


def row_of(identity: Row, by: str, figures: GroupSummary) -> Row:
    """Return a line of groups.csv; the identity is that of a line of comparison.csv."""
    return {**{name: identity.get(name) for name in IDENTITY}, "by": by, **figures.model_dump()}


def read_groups(directory: Path) -> list[GroupLine]:
    """Read groups.csv of a comparison, without other populations; empty where there is none.

    Raises InputError naming what cannot be read.
    """
    path = directory / directories.GROUPS
    if not path.is_file():
        return []
    texts = ("name", "by", "group", "population")
    types: dict[str, type[np.generic]] = {
        **dict.fromkeys(GroupSummary.model_fields, np.float64),
        **dict.fromkeys(texts, np.str_),
        "epsilon": np.float64,
    }
    accepted = "a table that `dprec compare` wrote"
    columns = read_columns(path, types, accepted)
    lines = []
    try:
        for cells in zip(*(columns[name].tolist() for name in types), strict=True):
            row: dict[str, Any] = {
                name: None if isinstance(cell, float) and math.isnan(cell) else cell
                for name, cell in zip(types, cells, strict=True)
            }
            if row["population"] == "":
                counts = {name: int(row[name]) if row[name] is not None else -1 for name in _COUNTS}
                figures = {name: row[name] for name in GroupSummary.model_fields} | counts
                summary = GroupSummary.model_validate(figures)
                lines.append(GroupLine(row["name"], row["epsilon"], row["by"], summary))
    except (ValueError, OverflowError) as error:
        raise InputError(str(path), one_line(error), accepted) from None
    return lines
