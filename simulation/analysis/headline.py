"""The headline of a comparison: one row per protocol, by accuracy, with what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dprec.privacy.units import ComparableUnit
from simulation.analysis.columns import (
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    SERVER_SEES,
    ResultColumn,
    baseline_columns,
    composed_column,
    spread_column,
)
from simulation.analysis.gains import NOTHING_SENT, gain_digits
from simulation.analysis.protocol_results import ProtocolResult, at_reference
from simulation.analysis.vocabulary import DASH, Metric, loss

MOST_ROWS = 10
"""Rows that are shown before the rest is unfolded."""


def headline_rows(
    results: Sequence[ProtocolResult], metric: Metric
) -> tuple[list[ProtocolResult], list[ProtocolResult]]:
    """Return one setting per protocol, at the reference budget or its nearest, the most accurate first.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.

    Returns
    -------
    tuple of list
        Those that are shown, nothing sent always among them, and the others.
    """
    known = [
        (metric.sort_key(accuracy), result.name, result)
        for result in at_reference(results)
        if (accuracy := result.mean(metric.column)) is not None
    ]
    ordered = [result for *_, result in sorted(known, key=lambda entry: entry[:2])]
    baselines = [result for result in ordered if result.baseline == NOTHING_SENT]
    others = [result for result in ordered if result not in baselines]
    shown = [*baselines, *others[: MOST_ROWS - len(baselines)]]
    return (
        [result for result in ordered if result in shown],
        [result for result in ordered if result not in shown],
    )


def headline_columns(
    results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit
) -> list[ResultColumn]:
    """Return the columns of the headline, after the name of the protocol.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    unit : {"rating", "user"}
        What the budgets are counted for.
    """
    rounded = replace(metric, digits=gain_digits(metric))
    return [
        ResultColumn("ε asked", f"per {unit}", _asked, lambda result: _asked_in_words(result, unit)),
        spread_column(rounded, results),
        *baseline_columns(metric, results),
        replace(LOSSES[1], hint="sum"),
        replace(composed_column(results), title="ε composed"),
        BYTES_UP[0],
        BYTES_DOWN[0],
        SERVER_SEES,
    ]


def _asked(result: ProtocolResult) -> float | None:
    """Return the budget of a setting; 0 where nothing is spent."""
    return 0.0 if result.budget is None and result.epsilon("user") == 0 else result.budget


def _asked_in_words(result: ProtocolResult, unit: ComparableUnit) -> str:
    asked = _asked(result)
    if asked is None:
        return DASH
    if not result.falls_short:
        return f"{asked:g}"
    claimed = result.claimed(unit)
    if claimed in (None, asked):
        return f"{asked:g} {result.word}"
    return (
        f"{asked:g}, {result.word} {loss(claimed)}"
        if result.status == "declared"
        else (f"{asked:g}, claims {loss(claimed)}")
    )
