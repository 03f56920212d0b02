"""How much better every protocol is than nothing sent, and how much worse than the best of its budget.

Both differences are paired, with an interval over users. The columns that this adds to comparison.csv are the
same in all lines of a protocol at one epsilon: the difference is averaged over its folds and seeds, and the
interval is of that average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dprec.metrics import interval, resampled_sums
from simulation.analysis.gains import (
    AGAINST,
    BEHIND,
    BEST,
    Pairs,
    gain_columns,
    nothing_sent,
    paired_rows,
    rivals,
)
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation, results_of
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.comparison.tabulation import METRICS_OF_USERS, SUMS, Totals, UserErrors
from simulation.storage.directories import cell_key
from simulation.storage.tables import Row

_DIGITS = 10
"""Decimals of a difference: fewer than the order of a sum over users can change."""


def with_user_intervals(rows: Sequence[Row], errors: Callable[[str], UserErrors]) -> list[Row]:
    """Return the lines of a comparison with the columns that hold them against nothing sent.

    Parameters
    ----------
    rows : sequence of dict
        The lines of comparison.csv.
    errors : callable
        Returns the errors of a line, given the key of its cell; called for lines that are compared.

    Returns
    -------
    list of dict
        With the columns of `gain_columns` for the measures that are sums over users, where nothing sent was
        run on the same ratings; and with those of `simulation.analysis.gains` for the main measure, where
        several protocols were. Other lines are as they were.
    """
    added: dict[str, Row] = {}
    for evaluation, results in by_evaluation(results_of(rows)).items():
        measured = evaluation.metric.column in METRICS_OF_USERS
        baseline, groups = nothing_sent(results), rivals(results, evaluation.metric) if measured else []
        against = (
            [] if baseline is None else [_Pairing.of(own, baseline) for own in results if own is not baseline]
        )
        behind = [(best, [_Pairing.of(each, best) for each in others]) for best, others in groups]
        pairings = against + [pairing for _, own in behind for pairing in own]
        used = {_key(row) for pairing in pairings for two in pairing.both for row in two}
        if not used:
            continue
        drawn = _Drawn.of({key: errors(key) for key in sorted(used)})
        for pairing in against:
            pairing.add(added, _gains(pairing, drawn))
        for best, own in behind:
            if any(pairing.both for pairing in own):
                for row in best.rows:
                    added.setdefault(_key(row), {})[BEST] = best.name
            for pairing in own:
                pairing.add(added, _from_best(pairing, evaluation.metric, drawn))
    return [{**row, **added.get(_key(row), {})} for row in rows]


def _key(row: Row) -> str:
    return cell_key(row["name"], row["epsilon"], row["fold"], row["seed"], row.get("population"))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Totals of runs over their users, and over users who are drawn again, the same for all runs."""

    places: dict[str, int]
    """Place of every run, by its key."""
    observed: Totals
    """Shape (1, runs, 4)."""
    replicated: Totals
    """Shape (replicates, runs, 4)."""

    @classmethod
    def of(cls, errors: Mapping[str, UserErrors]) -> _Drawn:
        users = np.unique(np.concatenate([own.users for own in errors.values()]))
        sums = np.concatenate([own.among(users) for own in errors.values()], axis=1)
        places = {key: place for place, key in enumerate(errors)}
        observed, replicated = sums.sum(axis=0), resampled_sums(sums)
        return cls(places, observed.reshape(1, -1, SUMS), replicated.reshape(len(replicated), -1, SUMS))


@dataclass(frozen=True)
class _Pairing:
    """A setting and what it is held against, with their lines on the same ratings."""

    result: ProtocolResult
    other: ProtocolResult
    pairs: Pairs
    """As `paired_rows` returns them."""

    @classmethod
    def of(cls, result: ProtocolResult, other: ProtocolResult) -> _Pairing:
        return cls(result, other, paired_rows(result, other))

    @property
    def both(self) -> list[tuple[Row, Row]]:
        """The pairs of lines of all folds."""
        return [pair for same in self.pairs.values() for pair in same]

    def add(self, added: dict[str, Row], columns: Row) -> None:
        """Add columns to all lines of the setting."""
        for row in self.result.rows:
            added.setdefault(_key(row), {}).update(columns)

    def better_by(self, metric: Metric, drawn: _Drawn) -> tuple[float, float, float]:
        """Return how much better the setting is than the other, and the ends of the interval over users."""
        weights = np.concatenate(
            [np.full(len(same), 1 / len(self.pairs) / len(same)) for same in self.pairs.values()]
        )
        sign, of_totals = (1 if metric.lower_is_better else -1), METRICS_OF_USERS[metric.column]
        own, base = ([drawn.places[_key(row)] for row in rows] for rows in zip(*self.both, strict=True))
        with np.errstate(invalid="ignore"):
            # Of a few users, none may be drawn, which leaves no rating to measure.
            mean, gains = (
                sign * (of_totals(totals[:, base]) - of_totals(totals[:, own])) @ weights
                for totals in (drawn.observed, drawn.replicated)
            )
        low, high = interval(gains)
        return round(float(mean[0]), _DIGITS), round(low, _DIGITS), round(high, _DIGITS)


def _gains(pairing: _Pairing, drawn: _Drawn) -> Row:
    """Return the columns that hold a setting against nothing sent."""
    if not pairing.pairs:
        return {}
    columns: Row = {AGAINST: pairing.other.name}
    for metric in METRICS:
        if metric.column in METRICS_OF_USERS and pairing.result.average(metric.column):
            columns |= zip(gain_columns(metric), pairing.better_by(metric, drawn), strict=True)
    return columns


def _from_best(pairing: _Pairing, metric: Metric, drawn: _Drawn) -> Row:
    """Return the columns that hold a setting against the best of its budget."""
    if not pairing.pairs:
        return {}
    mean, low, high = pairing.better_by(metric, drawn)
    return {BEST: pairing.other.name, **dict(zip(BEHIND, (-mean, -high, -low), strict=True))}
