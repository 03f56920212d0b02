"""One user whose predictions a page shows, and the names of the items that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from dprec.ratings import Ratings
from simulation.storage.files import FROM_RUN
from simulation.storage.tables import read_lines

LEAST_RATINGS, MOST_RATINGS = 5, 10
"""Test ratings that the user has at least, and of which more are not shown."""


@dataclass(frozen=True)
class ExampleUser:
    """The first user with at least five test ratings, and ten of them at most."""

    user: str
    predicted: tuple[tuple[str, float, float], ...]
    """Items with their true ratings and predictions."""


def read_example(path: Path) -> ExampleUser | None:
    """Read the example from the beginning of predictions.csv; None if there is no such user."""
    lines = read_lines(path, ("user", "item", "rating", "prediction"), FROM_RUN)
    _, header = next(lines)
    places = [header.index(name) for name in ("user", "item", "rating", "prediction")]
    rows = ([cells[place] for place in places] for _, cells in lines)
    for user, own in groupby(rows, key=lambda row: row[0]):
        first = list(islice(own, MOST_RATINGS))
        if len(first) >= LEAST_RATINGS:
            predicted = ((item, _number(rated), _number(said)) for _, item, rated, said in first)
            return ExampleUser(user, tuple(predicted))
    return None


def _number(cell: str) -> float:
    return float(cell or "nan")


def shown_names(names: Mapping[str, str], test: Ratings, diagnostics: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the items that a page shows: those of the example and of an AlterEgo.

    Parameters
    ----------
    names : mapping
        Those of all items, by identifier.
    diagnostics : mapping
        As in summary.json.
    """
    shown: list[str] = []
    users = np.flatnonzero(test.counts >= LEAST_RATINGS)
    if users.size:
        start = test.indptr[users[0]]
        stop = min(test.indptr[users[0] + 1], start + MOST_RATINGS)
        shown += map(str, test.item_ids[test.items[start:stop]].tolist())
    ego = diagnostics.get("alter_ego") or {}
    shown += [item for side in ("before", "after") for item, _ in ego.get(side, ())]
    return {item: names[item] for item in shown if item in names}
