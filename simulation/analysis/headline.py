"""The headline of a comparison: one row per protocol, by accuracy, with what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dprec.accounting import ComparableUnit
from simulation.analysis.columns import (
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    SERVER_SEES,
    SettingColumn,
    composed_column,
    floor_columns,
    spread_column,
)
from simulation.analysis.floors import NOTHING_SENT, gain_digits
from simulation.analysis.measures import Measure
from simulation.analysis.numbers import DASH, loss
from simulation.analysis.selection import at_reference
from simulation.analysis.settings import Setting

MOST_ROWS = 10
"""Rows that are shown before the rest is unfolded."""


def headline_rows(settings: Sequence[Setting], measure: Measure) -> tuple[list[Setting], list[Setting]]:
    """Return one setting per protocol, at the reference budget or its nearest, the most accurate first.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    measure : Measure

    Returns
    -------
    tuple of list
        Those that are shown, nothing sent always among them, and the others.
    """
    known = [
        (measure.sort_key(accuracy), setting.name, setting)
        for setting in at_reference(settings)
        if (accuracy := setting.mean(measure.column)) is not None
    ]
    ordered = [setting for *_, setting in sorted(known, key=lambda entry: entry[:2])]
    floors = [setting for setting in ordered if setting.floor == NOTHING_SENT]
    others = [setting for setting in ordered if setting not in floors]
    shown = [*floors, *others[: MOST_ROWS - len(floors)]]
    return (
        [setting for setting in ordered if setting in shown],
        [setting for setting in ordered if setting not in shown],
    )


def headline_columns(
    settings: Sequence[Setting], measure: Measure, unit: ComparableUnit
) -> list[SettingColumn]:
    """Return the columns of the headline, after the name of the protocol.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    measure : Measure
    unit : {"rating", "user"}
        What the budgets are counted for.
    """
    rounded = replace(measure, digits=gain_digits(measure))
    return [
        SettingColumn("ε asked", f"per {unit}", _asked, lambda setting: _asked_in_words(setting, unit)),
        spread_column(rounded, settings),
        *floor_columns(measure, settings),
        replace(LOSSES[1], hint="sum"),
        replace(composed_column(settings), title="ε composed"),
        BYTES_UP[0],
        BYTES_DOWN[0],
        SERVER_SEES,
    ]


def _asked(setting: Setting) -> float | None:
    """Return the budget of a setting; 0 where nothing is spent."""
    return 0.0 if setting.budget is None and setting.epsilon("user") == 0 else setting.budget


def _asked_in_words(setting: Setting, unit: ComparableUnit) -> str:
    asked = _asked(setting)
    if asked is None:
        return DASH
    if not setting.falls_short:
        return f"{asked:g}"
    claimed = setting.claimed(unit)
    if claimed in (None, asked):
        return f"{asked:g} {setting.word}"
    return (
        f"{asked:g}, {setting.word} {loss(claimed)}"
        if setting.status == "declared"
        else (f"{asked:g}, claims {loss(claimed)}")
    )
