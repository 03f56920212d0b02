"""How much better every protocol is than nothing sent, with an interval over users.

The columns that this adds to comparison.csv are the same in all lines of a protocol at one epsilon: the
difference is averaged over its folds and seeds, and the interval is of that average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dprec.bootstrap import interval, resampled_sums
from simulation.analysis.floors import AGAINST, Pairs, gain_columns, nothing_sent, paired_rows
from simulation.analysis.measures import MEASURES
from simulation.analysis.settings import Setting, by_evaluation, settings_of
from simulation.comparison.user_errors import MEASURES_OF_USERS, SUMS, Totals, UserErrors
from simulation.storage.names import cell_key
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
        For the measures that are sums over users, with the columns of `gain_columns`. Lines without a run
        of nothing sent on the same ratings are as they were.
    """
    added: dict[str, Row] = {}
    for settings in by_evaluation(settings_of(rows)).values():
        floor = nothing_sent(settings)
        if floor is None:
            continue
        others = [setting for setting in settings if setting is not floor]
        pairs = [paired_rows(setting, floor) for setting in others]
        used = {_key(row) for own in pairs for same in own.values() for two in same for row in two}
        if not used:
            continue
        drawn = _Drawn.of({key: errors(key) for key in sorted(used)})
        for setting, own in zip(others, pairs, strict=True):
            columns = dict(_against(setting, floor, own, drawn))
            added |= {_key(row): columns for row in setting.rows}
    return [{**row, **added.get(_key(row), {})} for row in rows]


def _key(row: Row) -> str:
    return cell_key(row["name"], row["epsilon"], row["fold"], row["seed"])


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Totals of runs over their users, and over users who are drawn again, the same for all runs.

    Parameters
    ----------
    places : dict of str to int
        Place of every run, by its key.
    observed : ndarray of float64, shape (1, runs, 4)
    replicated : ndarray of float64, shape (replicates, runs, 4)
    """

    places: dict[str, int]
    observed: Totals
    replicated: Totals

    @classmethod
    def of(cls, errors: Mapping[str, UserErrors]) -> _Drawn:
        users = np.unique(np.concatenate([own.users for own in errors.values()]))
        sums = np.concatenate([own.among(users) for own in errors.values()], axis=1)
        places = {key: place for place, key in enumerate(errors)}
        observed, replicated = sums.sum(axis=0), resampled_sums(sums)
        return cls(places, observed.reshape(1, -1, SUMS), replicated.reshape(len(replicated), -1, SUMS))


def _against(
    setting: Setting, floor: Setting, pairs: Pairs, drawn: _Drawn
) -> Iterator[tuple[str, str | float]]:
    """Yield the columns that hold a setting against the floor."""
    if not pairs:
        return
    yield AGAINST, floor.name
    both = [pair for same in pairs.values() for pair in same]
    weights = np.concatenate([np.full(len(same), 1 / len(pairs) / len(same)) for same in pairs.values()])
    own, base = ([drawn.places[_key(row)] for row in rows] for rows in zip(*both, strict=True))
    for measure in MEASURES:
        if measure.column not in MEASURES_OF_USERS or not setting.average(measure.column):
            continue
        sign = 1 if measure.lower_is_better else -1
        of_totals = MEASURES_OF_USERS[measure.column]
        with np.errstate(invalid="ignore"):
            # Of a few users, none may be drawn, which leaves no rating to measure.
            observed, replicated = of_totals(drawn.observed), of_totals(drawn.replicated)
        gained, gains = (
            sign * (reached[:, base] - reached[:, own]) @ weights for reached in (observed, replicated)
        )
        figures = (float(gained[0]), *interval(gains))
        rounded = (round(figure, _DIGITS) for figure in figures)
        yield from zip(gain_columns(measure), rounded, strict=True)
