"""The tables of a comparison, from what is finished of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.metrics import LONGEST_LIST, METRICS_OF_LISTS, Hits, interval, resampled_sums
from simulation.analysis.gains import (
    AGAINST,
    BEHIND,
    BEST,
    NOTHING_SENT,
    PLAIN,
    PUBLIC,
    gain_columns,
    nothing_sent,
    paired_rows,
    plain_nothing_sent,
    rivals,
)
from simulation.analysis.groups import GroupedRun, over_folds, row_of
from simulation.analysis.protocol_results import NEEDED_TRUST, ProtocolResult, by_evaluation, results_of
from simulation.analysis.vocabulary import METRICS, Metric, grouped_by
from simulation.comparison.templates import Cell
from simulation.storage.columns import PER_DEVICE, figures_of
from simulation.storage.directories import CELLS, GROUPS, SUMMARY, TABLE, TIMINGS, cell_key
from simulation.storage.files import Columns, Row, csv_of_rows, write_atomically
from simulation.storage.run_files import RANK, read_predictions, read_users
from simulation.storage.summary import read_summary


def table_rows(cell: Cell, folder: Path) -> tuple[Row, Row]:
    """Return a finished cell's lines of comparison.csv and of timing.csv, which is never the same twice.

    Raises InputError when its summary is damaged.
    """
    with _damaged(folder / cell.key):
        summary = read_summary(folder / cell.key)
    contents, identity = summary.as_json(), _identity(cell)
    low, high = summary.dataset.scale or (None, None)
    needed = summary.privacy.trust
    further: Row = {
        "per": None,
        "item_set": "hidden" if summary.privacy.hides_rated_items else "revealed",
        **cell.stated,
        **({NEEDED_TRUST: needed} if cell.stated.get("trust", needed) != needed else {}),
        "scale_low": low,
        "scale_high": high,
        "total_message_bytes": summary.traffic.total_message_bytes,
        "baseline": cell.baseline,
        **({PUBLIC: cell.public} if cell.public else {}),
    }
    timing = figures_of(contents, timing=True)
    a_device = summary.time.clients_s / summary.traffic.users
    return {**identity, **figures_of(contents), **further}, {**identity, **timing, PER_DEVICE.name: a_device}


@contextmanager
def _damaged(directory: Path) -> Iterator[None]:
    """Say of a damaged cell how to go on."""
    try:
        yield
    except InputError as error:
        again = f"{error.accepted}; without {directory / SUMMARY}, --resume runs the cell again"
        raise InputError(error.where, error.found, again) from None


def _identity(cell: Cell) -> Row:
    row = {"name": cell.protocol, "epsilon": cell.epsilon, "fold": cell.fold, "seed": cell.seed}
    row |= {"quick": True} if cell.quick else {}
    row |= {} if cell.panel is None else {"panel": cell.panel}
    return row if cell.population is None else {**row, "population": cell.population}


_Totals = NDArray[np.float64]
"""Sums over users; the last axis is that of `UserErrors.sums`."""


def _share(place: int, totals: _Totals) -> NDArray[np.float64]:
    return np.asarray(totals[..., place] / totals[..., 0])


METRICS_OF_USERS: dict[str, Callable[[_Totals], NDArray[np.float64]]] = {
    "rmse": lambda totals: np.sqrt(totals[..., 1] / totals[..., 0]),
    "mae": partial(_share, 2),
    "sign_accuracy": partial(_share, 3),
    **{name: partial(_share, place) for place, name in enumerate(METRICS_OF_LISTS, start=1)},
}
"""The metrics that follow from such sums, by their columns in comparison.csv."""


@dataclass(frozen=True, eq=False)
class UserErrors:
    """Sums of the users of one run's test ratings."""

    users: NDArray[np.str_]
    """Identifiers, ascending; shape (users,)."""
    sums: NDArray[np.float64]
    """Ratings, squared errors, absolute errors, signs that are right; or, where lists are judged, 1 and the
    `METRICS_OF_LISTS`; shape (users, sums).
    """

    @classmethod
    def of(cls, predictions: Columns) -> UserErrors:
        """Add up the columns of predictions.csv.gz."""
        users, rows = np.unique(predictions["user"], return_inverse=True)
        if RANK in predictions:
            hits = Hits.at(predictions[RANK], rows, LONGEST_LIST)
            metrics = [metric(hits) for metric in METRICS_OF_LISTS.values()]
            return cls(users, np.stack([np.ones(users.size), *metrics], axis=1))
        rating, prediction = predictions["rating"], predictions["prediction"]
        errors = prediction - rating
        parts = (np.ones_like(errors), errors**2, np.abs(errors), (prediction >= 0) == (rating > 0))
        return cls(users, np.stack([np.bincount(rows, part, users.size) for part in parts], axis=1))


_DIGITS = 10
"""Decimals of a difference: fewer than the order of a sum over users can change."""


_LEAST_USERS = 10
"""With test ratings, for an interval."""


class DrawnUsers:
    """Totals of runs over their users, and over users who are drawn again, the same for all runs.

    ``errors``: of the runs, by their keys.
    """

    def __init__(self, errors: Mapping[str, UserErrors]) -> None:
        users = np.unique(np.concatenate([run_errors.users for run_errors in errors.values()]))
        self._users = users.size
        self._places = {key: place for place, key in enumerate(errors)}
        width = next(iter(errors.values())).sums.shape[1]
        sums = np.zeros((users.size, len(errors), width))
        for place, run_errors in enumerate(errors.values()):
            sums[np.searchsorted(users, run_errors.users), place] = run_errors.sums
        flat = sums.reshape(users.size, -1)
        observed, replicated = flat.sum(axis=0), resampled_sums(flat)
        self._totals = [totals.reshape(-1, len(errors), width) for totals in (observed, replicated)]

    def better_by(
        self, metric: Metric, pairs: Sequence[tuple[str, str]], weights: NDArray[np.float64]
    ) -> tuple[float, float | None, float | None]:
        """Return how much better the first run of each pair is than the second, and the interval's ends.

        Of fewer than ten users there is no interval: those drawn again are nearly always the same.

        ``pairs``: keys of runs on the same ratings.
        ``weights``, shape (pairs,): of the pairs in the mean.
        """
        sign, of_totals = (1 if metric.lower_is_better else -1), METRICS_OF_USERS[metric.column]
        places, base_places = ([self._places[key] for key in keys] for keys in zip(*pairs, strict=True))
        with np.errstate(invalid="ignore"):
            # Of a few users, none may be drawn, which leaves no rating to measure.
            mean, gains = (
                sign * (of_totals(totals[:, base_places]) - of_totals(totals[:, places])) @ weights
                for totals in self._totals
            )
        better = round(float(mean[0]), _DIGITS)
        if self._users < _LEAST_USERS:
            return better, None, None
        low, high = interval(gains)
        return better, round(low, _DIGITS), round(high, _DIGITS)


class _Pairing(NamedTuple):
    """A result and what it is held against."""

    result: ProtocolResult
    reference: ProtocolResult
    metric: Metric | None
    """None where nothing follows from sums over users."""
    base: str
    names: Sequence[str]
    """Columns of the reference's name, and of the difference and the ends of its interval."""


def with_user_intervals(rows: Sequence[Row], errors: Callable[[str], UserErrors]) -> list[Row]:
    """Return the lines of a comparison with the columns that hold them against others.

    ``rows``: the lines of comparison.csv.
    ``errors``: returns the errors of a line, given the key of its cell; called for lines that are compared.
    With the columns of `gain_columns` for the metrics that are sums over users, where nothing sent was run on
    the same ratings; and with those of `simulation.analysis.gains` for the main metric, where several
    protocols were, and for lines that know less of the items than nothing sent. Other lines are as they were.
    """
    added: dict[str, Row] = {}
    for evaluation, results in by_evaluation(results_of(rows)).items():
        compared = []
        for pairing in _pairings(results, evaluation.metric):
            # Their lines on the same ratings. Every fold counts once, however many seeds it has.
            folds = list(paired_rows(pairing.result, pairing.reference).values())
            keys = [(_key(row), _key(base_row)) for same in folds for row, base_row in same]
            weights = np.concatenate(
                [np.empty(0), *(np.full(len(same), 1 / len(folds) / len(same)) for same in folds)]
            )
            if keys:
                compared.append((pairing, keys, weights))
        used = sorted({key for _, keys, _ in compared for pair in keys for key in pair})
        resampled = DrawnUsers({key: errors(key) for key in used}) if used else None
        for (result, reference, metric, base, names), keys, weights in compared:
            columns: Row = {base: reference.name}
            if metric is not None and resampled is not None:
                mean, low, high = resampled.better_by(metric, keys, weights)
                # Behind the best, more is worse.
                behind = (-mean, *(None if end is None else -end for end in (high, low)))
                figures = behind if names == BEHIND else (mean, low, high)
                columns |= zip(names, figures, strict=True)
            for row in result.rows:
                added.setdefault(_key(row), {}).update(columns)
            for row in reference.rows if names == BEHIND else ():
                added.setdefault(_key(row), {})[BEST] = reference.name
    return [{**row, **added.get(_key(row), {})} for row in rows]


def _pairings(results: Sequence[ProtocolResult], main: Metric) -> Iterator[_Pairing]:
    """Yield which results that predict the same are held against which, and in which metric."""
    sums = [metric for metric in METRICS if metric.column in METRICS_OF_USERS]
    base, plain = nothing_sent(results), plain_nothing_sent(results)
    for result in results:
        if base is not None and result is not base:
            metrics: list[Metric | None] = [metric for metric in sums if result.average(metric.column)]
            for metric in metrics or [None]:
                yield _Pairing(result, base, metric, AGAINST, gain_columns(metric) if metric else ())
    if main.column not in METRICS_OF_USERS:
        return
    for result in results:
        knows = result.baseline == NOTHING_SENT or result.has(PUBLIC)
        if plain is not None and result is not plain and not knows:
            yield _Pairing(result, plain, main, PLAIN[0], PLAIN[1:])
    for best, others in rivals(results, main):
        for rival in others:
            yield _Pairing(rival, best, main, BEST, BEHIND)


def _key(row: Row) -> str:
    return cell_key(row["name"], row["epsilon"], row["fold"], row["seed"], row.get("population"))


class Tabulation:
    """Writes comparison.csv and timing.csv; what was read of a cell is kept for the next time.

    ``cells``: all of the comparison, in the order of its table.
    ``finished``: keys of the cells that the tables hold.
    """

    def __init__(self, cells: Sequence[Cell], directory: Path) -> None:
        self.cells, self.directory, self.finished = cells, directory, set[str]()
        self._errors = cache(self._read_errors)
        self._rows = cache(lambda cell: table_rows(cell, directory / CELLS))
        self._grouped = cache(self._read_users)

    def write(self) -> tuple[list[Row], list[Row]]:
        """Write the tables of the cells that are finished, and return their lines.

        Raises InputError when what a cell has stored is damaged.
        """
        ended = [cell for cell in self.cells if cell.key in self.finished]
        pairs = [self._rows(cell) for cell in ended]
        rows, timings = (
            with_user_intervals([row for row, _ in pairs], self._errors),
            [timing for _, timing in pairs],
        )
        # Every group under each protocol at each budget.
        by_result = grouped_by(
            ((cell.protocol, cell.epsilon, cell.panel, cell.population), cell)
            for cell in ended
            if cell.config.evaluation.groups
        )
        groups = [
            row_of(_identity(cells[0]), by, figures)
            for cells in by_result.values()
            for by, figures in over_folds([self._grouped(cell) for cell in cells])
        ]
        for name, table in ((TABLE, rows), (TIMINGS, timings), (GROUPS, groups)):
            if table:
                write_atomically(self.directory / name, csv_of_rows(table))
        return rows, timings

    def _read_errors(self, key: str) -> UserErrors:
        with _damaged(directory := self.directory / CELLS / key):
            return UserErrors.of(read_predictions(directory, read_summary(directory)))

    def _read_users(self, cell: Cell) -> GroupedRun:
        with _damaged(directory := self.directory / CELLS / cell.key):
            summary = read_summary(directory)
            return GroupedRun(cell.seed, summary, read_users(directory, summary))
