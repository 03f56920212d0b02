"""The headline of a comparison's page: a row per protocol, which is a card where the page is narrow."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from simulation.analysis.columns import ResultColumn, headline_columns, headline_rows
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.vocabulary import number
from simulation.pages.comparison_tables import heading, named_cell, result_cell
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.page import Cell, Column, render_template


def headline_table(part: EvaluationPart) -> Markup:
    """Return the headline of one evaluation; rows after the first ten are folded."""
    shown, others = headline_rows(part.results, part.metric)
    columns = headline_columns(part.results, part.metric, part.files.matched_unit)
    budget = reference_budget(part.results)
    at = "" if budget is None else f" at ε = {budget:g} per {part.files.matched_unit}, or the nearest it has"
    return render_template(
        "headline.html",
        caption=f"Each protocol{at}; the most accurate first",
        columns=[Column("protocol", numeric=False), *map(heading, columns)],
        shown=[_row(result, columns, part) for result in shown],
        others=[_row(result, columns, part) for result in others],
        summary=_summary(others, part) if others else "",
        table=f"table{part.suffix}",
    )


def _row(
    result: ProtocolResult, columns: Sequence[ResultColumn], part: EvaluationPart
) -> tuple[str, str, list[Cell]]:
    """Return the kind of a row in words and for its style, and its cells."""
    words = "baseline" if result.baseline else "no privacy" if result.reference else ""
    style = "base" if result.baseline == NOTHING_SENT else ""
    cells = [result_cell(column, result) for column in columns]
    return words, style, [named_cell(result, part.looks, part.links), *cells]


def _summary(results: Sequence[ProtocolResult], part: EvaluationPart) -> str:
    """Say what is folded."""
    metric = part.metric
    first, last = (number(results[place].mean(metric.column), metric.digits - 1) for place in (0, -1))
    return f"{len(results)} more, {metric.label} {first} to {last}"
