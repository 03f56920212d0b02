"""The tables of a comparison, from what is finished of it; and how two runs or two comparisons differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

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
    Gain,
    Pairs,
    gain_columns,
    nothing_sent,
    paired_rows,
    plain_nothing_sent,
    rivals,
)
from simulation.analysis.groups import GroupedRun, over_folds, row_of
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation, read_comparison, results_of
from simulation.analysis.vocabulary import METRICS, Metric, grouped_by
from simulation.comparison.templates import Cell
from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.columns import PER_DEVICE, figures_of
from simulation.storage.directories import CELLS, CONFIG, GROUPS, SUMMARY, TABLE, TIMINGS, cell_key
from simulation.storage.files import Columns, Row, csv_of_rows, write_atomically
from simulation.storage.run_files import RANK, holds_comparison, read_predictions, read_users
from simulation.storage.summary import read_summary


def table_rows(cell: Cell, folder: Path) -> tuple[Row, Row]:
    """Return a finished cell's lines of comparison.csv and of timing.csv, which is never the same twice.

    Raises InputError when its summary is damaged.
    """
    with _damaged(folder / cell.key):
        summary = read_summary(folder / cell.key)
    contents, identity = summary.as_json(), _identity(cell)
    low, high = summary.dataset.scale or (None, None)
    further: Row = {
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
    "mae": lambda totals: totals[..., 2] / totals[..., 0],
    "sign_accuracy": lambda totals: totals[..., 3] / totals[..., 0],
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
            own = [of(hits) for of in METRICS_OF_LISTS.values()]
            return cls(users, np.stack([np.ones(users.size), *own], axis=1))
        rating, prediction = predictions["rating"], predictions["prediction"]
        errors = prediction - rating
        parts = (np.ones_like(errors), errors**2, np.abs(errors), (prediction >= 0) == (rating > 0))
        return cls(users, np.stack([np.bincount(rows, part, users.size) for part in parts], axis=1))

    def among(self, users: NDArray[np.str_]) -> NDArray[np.float64]:
        """Return the sums with a row for each of some users, ascending; zeros for those without ratings."""
        placed = np.zeros((users.size, self.sums.shape[1]))
        placed[np.searchsorted(users, self.users)] = self.sums
        return placed


_DIGITS = 10
"""Decimals of a difference: fewer than the order of a sum over users can change."""


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
        compared = [each for each in _compared_results(results, evaluation.metric) if each.pairs]
        used = {_key(row) for each in compared for two in each.both for row in two}
        if used:
            drawn = DrawnUsers.of({key: errors(key) for key in sorted(used)})
            for each in compared:
                for row in each.result.rows:
                    added.setdefault(_key(row), {}).update(each.columns(drawn))
                if each.names == BEHIND:
                    for row in each.other.rows:
                        added.setdefault(_key(row), {})[BEST] = each.other.name
    return [{**row, **added.get(_key(row), {})} for row in rows]


def _compared_results(results: Sequence[ProtocolResult], main: Metric) -> Iterator[_Pairing]:
    """Yield which results that predict the same are held against which, and in which metric."""
    for base, plain in ((nothing_sent(results), False), (plain_nothing_sent(results), True)):
        for own in results:
            knows = plain and (own.baseline == NOTHING_SENT or own.has(PUBLIC))
            if base is None or own is base or knows:
                continue
            if plain and main.column in METRICS_OF_USERS:
                yield _Pairing(own, base, main, PLAIN[0], PLAIN[1:])
            elif not plain:
                has = [
                    each for each in METRICS if each.column in METRICS_OF_USERS and own.average(each.column)
                ]
                metrics: Sequence[Metric | None] = has or [None]
                for metric in metrics:
                    yield _Pairing(own, base, metric, AGAINST, gain_columns(metric) if metric else ())
    if main.column in METRICS_OF_USERS:
        for best, others in rivals(results, main):
            for own in others:
                yield _Pairing(own, best, main, BEST, BEHIND)


def _key(row: Row) -> str:
    return cell_key(row["name"], row["epsilon"], row["fold"], row["seed"], row.get("population"))


@dataclass(frozen=True, eq=False)
class DrawnUsers:
    """Totals of runs over their users, and over users who are drawn again, the same for all runs."""

    places: dict[str, int]
    observed: _Totals
    replicated: _Totals

    @classmethod
    def of(cls, errors: Mapping[str, UserErrors]) -> DrawnUsers:
        """Draw the users of runs again, given their errors by the runs' keys."""
        users = np.unique(np.concatenate([own.users for own in errors.values()]))
        sums = np.concatenate([own.among(users) for own in errors.values()], axis=1)
        places = {key: place for place, key in enumerate(errors)}
        observed, replicated = sums.sum(axis=0), resampled_sums(sums)
        of_each = len(places), sums.shape[1] // len(places)
        return cls(places, observed.reshape(1, *of_each), replicated.reshape(-1, *of_each))

    def better_by(
        self, metric: Metric, pairs: Sequence[tuple[str, str]], weights: NDArray[np.float64]
    ) -> tuple[float, float, float]:
        """Return how much better the first run of each pair is than the second, and the interval's ends.

        ``pairs``: keys of runs on the same ratings.
        ``weights``, shape (pairs,): of the pairs in the mean.
        """
        sign, of_totals = (1 if metric.lower_is_better else -1), METRICS_OF_USERS[metric.column]
        own, base = ([self.places[key] for key in keys] for keys in zip(*pairs, strict=True))
        with np.errstate(invalid="ignore"):
            # Of a few users, none may be drawn, which leaves no rating to measure.
            mean, gains = (
                sign * (of_totals(totals[:, base]) - of_totals(totals[:, own])) @ weights
                for totals in (self.observed, self.replicated)
            )
        low, high = interval(gains)
        return round(float(mean[0]), _DIGITS), round(low, _DIGITS), round(high, _DIGITS)


@dataclass(frozen=True)
class _Pairing:
    """A result and what it is held against, with their lines on the same ratings."""

    result: ProtocolResult
    other: ProtocolResult
    metric: Metric | None
    """None where nothing follows from sums over users."""
    base: str
    names: Sequence[str]
    """Columns of the other's name, and of the difference and the ends of its interval."""

    @cached_property
    def pairs(self) -> Pairs:
        """Their lines on the same ratings, by fold."""
        return paired_rows(self.result, self.other)

    @property
    def both(self) -> list[tuple[Row, Row]]:
        """The pairs of lines of all folds."""
        return [pair for same in self.pairs.values() for pair in same]

    def columns(self, drawn: DrawnUsers) -> Row:
        """Return the columns that hold the result against the other; behind the best, more is worse."""
        if self.metric is None:
            return {self.base: self.other.name}
        weights = np.concatenate(
            [np.full(len(same), 1 / len(self.pairs) / len(same)) for same in self.pairs.values()]
        )
        keys = [(_key(own), _key(other)) for own, other in self.both]
        mean, low, high = drawn.better_by(self.metric, keys, weights)
        figures = (-mean, -high, -low) if self.names == BEHIND else (mean, low, high)
        return {self.base: self.other.name, **dict(zip(self.names, figures, strict=True))}


class Tabulation:
    """Writes comparison.csv and timing.csv; what was read of a cell is kept for the next time.

    ``cells``: all of the comparison, in the order of its table.
    ``finished``: keys of the cells that the tables hold.
    """

    def __init__(self, cells: Collection[Cell], directory: Path) -> None:
        self.cells, self.directory = cells, directory
        self.finished: set[str] = set()
        self._errors = cache(self._read_errors)
        self._rows = cache(lambda cell: table_rows(cell, directory / CELLS))
        self._grouped = cache(self._read_users)

    def write(self) -> tuple[list[Row], list[Row]]:
        """Write the tables of the cells that are finished, and return their lines.

        Raises InputError when what a cell has stored is damaged.
        """
        pairs = [self._rows(cell) for cell in self.cells if cell.key in self.finished]
        rows = with_user_intervals([row for row, _ in pairs], self._errors)
        timings = [timing for _, timing in pairs]
        if rows:
            groups = self._groups()
            for name, table in ((TABLE, rows), (TIMINGS, timings), *(((GROUPS, groups),) if groups else ())):
                write_atomically(self.directory / name, csv_of_rows(table))
        return rows, timings

    def _groups(self) -> list[Row]:
        """Return the lines of groups.csv: every group under each protocol at each budget."""
        ended = [cell for cell in self.cells if cell.key in self.finished and cell.config.evaluation.groups]
        by_result = grouped_by(
            ((cell.protocol, cell.epsilon, cell.panel, cell.population), cell) for cell in ended
        )
        return [
            row_of(_identity(cells[0]), by, figures)
            for cells in by_result.values()
            for by, figures in over_folds([self._grouped(cell) for cell in cells])
        ]

    def _read_errors(self, key: str) -> UserErrors:
        with _damaged(directory := self.directory / CELLS / key):
            return UserErrors.of(read_predictions(directory, read_summary(directory)))

    def _read_users(self, cell: Cell) -> GroupedRun:
        with _damaged(directory := self.directory / CELLS / cell.key):
            summary = read_summary(directory)
            return GroupedRun(cell.seed, summary, read_users(directory, summary))


_DERIVED = "cells"
"""Part of a comparison's configuration that follows from the others."""


@dataclass(frozen=True)
class Figure:
    """A figure that differs."""

    of: str
    """The protocol at its budget; empty for runs."""
    name: str
    """Its column in comparison.csv."""
    first: float | str | bool | None
    second: float | str | bool | None
    """None where it does not apply, or is not there."""


@dataclass(frozen=True)
class Difference:
    """In what two runs or comparisons differ."""

    first: Path
    second: Path
    settings: dict[str, tuple[Any, Any]]
    """Both values of every setting that differs, by dotted key; None where it is not set."""
    figures: tuple[Figure, ...]
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    """Protocols at budgets that only one of two comparisons has."""
    gains: dict[str, Gain] = field(default_factory=dict)
    """How much better the second of two runs on the same test ratings predicts, by the metric's column."""
    same_ratings: bool | None = None
    """Whether two runs have the same test ratings; None for comparisons."""

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        gains = {
            name: {"better_by": own.mean, "low": own.low, "high": own.high, "significant": own.significant}
            for name, own in self.gains.items()
        }
        return {**asdict(self), "first": str(self.first), "second": str(self.second), "gains": gains}


def differences(first: Path, second: Path) -> Difference:
    """Compare two directories; see `dprec.diff`."""
    compared = holds_comparison(first)
    if holds_comparison(second) != compared:
        kind = "comparison" if compared else "run"
        raise InputError(str(second), f"not a {kind}", f"a {kind}, as {first} is")
    return _of_comparisons(first, second) if compared else _of_runs(first, second)


def _of_runs(first: Path, second: Path) -> Difference:
    summaries = read_summary(first), read_summary(second)
    figures = _unequal(*(figures_of(summary.as_json()) for summary in summaries))
    one, other = read_predictions(first, summaries[0]), read_predictions(second, summaries[1])
    same = all(np.array_equal(one[name], other[name]) for name in ("user", "item"))
    same = same and np.array_equal(one["rating"], other["rating"], equal_nan=True)
    gains = {}
    if same:
        drawn = DrawnUsers.of({"first": UserErrors.of(one), "second": UserErrors.of(other)})
        measured = [summary.accuracy.metrics() for summary in summaries]
        for metric in METRICS:
            name, both = metric.column, [own.get(metric.column) for own in measured]
            if name in METRICS_OF_USERS and None not in both:
                gain = drawn.better_by(metric, [("second", "first")], np.ones(1))
                gains[name] = Gain(*gain, metric.digits, str(first))
    return Difference(
        first,
        second,
        _settings(read_yaml(first / CONFIG), read_yaml(second / CONFIG)),
        tuple(Figure("", name, *both) for name, both in figures.items()),
        gains=gains,
        same_ratings=same,
    )


def _of_comparisons(first: Path, second: Path) -> Difference:
    files = read_comparison(first), read_comparison(second)
    one, other = ({_label(each): each for each in [*own.results, *own.populations]} for own in files)
    figures = [
        Figure(label, name, *both)
        for label in one
        if label in other
        for name, both in _unequal(_means(one[label]), _means(other[label])).items()
    ]
    settings = _settings(*(own.config for own in files))
    only_first = tuple(label for label in one if label not in other)
    only_second = tuple(label for label in other if label not in one)
    return Difference(first, second, settings, tuple(figures), only_first, only_second)


def _label(result: ProtocolResult) -> str:
    budget = "" if result.budget is None else f", budget {result.budget:g}"
    return f"{result.name}{budget}" + ("" if result.population is None else f", {result.population} users")


def _means(result: ProtocolResult) -> dict[str, float | str | bool | None]:
    """Return the means of a result that two comparisons are compared by."""
    evaluation = result.evaluation
    measured = {} if evaluation is None else {evaluation.metric.column: result.mean(evaluation.metric.column)}
    return {
        **measured,
        "epsilon_per_rating": result.epsilon("rating"),
        "epsilon_per_user_max": result.epsilon("user"),
        "epsilon_composed_max": result.composed,
        "message_bytes_per_user": result.bytes_per_user,
        "network_bytes_per_user": result.network_bytes_per_user,
    }


def _settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    own = ({key: value for key, value in each.items() if key != _DERIVED} for each in (one, other))
    return _unequal(*map(flatten, own))


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return both values of what differs, by key, in the order of the first."""
    return {
        key: (one.get(key), other.get(key))
        for key in {**one, **other}
        if not _same(one.get(key), other.get(key))
    }


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # Sums over users differ in their last bits with the order of their terms.
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return one == other
