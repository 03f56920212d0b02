"""The headline of a comparison's page: a row per protocol, which is a card where the page is narrow."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from simulation.analysis.columns import SettingColumn
from simulation.analysis.floors import NOTHING_SENT
from simulation.analysis.headline import headline_columns, headline_rows
from simulation.analysis.numbers import number
from simulation.analysis.selection import reference_budget
from simulation.analysis.settings import Setting
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.markup import Cell, Column, render_template
from simulation.pages.setting_cells import heading, named_cell, setting_cell


def headline_table(part: EvaluationPart) -> Markup:
    """Return the headline of one evaluation; rows after the first ten are folded."""
    shown, others = headline_rows(part.settings, part.measure)
    columns = headline_columns(part.settings, part.measure, part.files.matched_unit)
    budget = reference_budget(part.settings)
    at = "" if budget is None else f" at ε = {budget:g} per {part.files.matched_unit}, or the nearest it has"
    return render_template(
        "headline.html",
        caption=f"Each protocol{at}; the most accurate first",
        columns=[Column("protocol", numeric=False), *map(heading, columns)],
        shown=[_row(setting, columns, part) for setting in shown],
        others=[_row(setting, columns, part) for setting in others],
        summary=_summary(others, part) if others else "",
        table=f"table{part.suffix}",
    )


def _row(
    setting: Setting, columns: Sequence[SettingColumn], part: EvaluationPart
) -> tuple[str, str, list[Cell]]:
    """Return the kind of a row in words and for its style, and its cells."""
    words = "floor" if setting.floor else "no privacy" if setting.reference else ""
    style = "base" if setting.floor == NOTHING_SENT else ""
    cells = [setting_cell(column, setting) for column in columns]
    return words, style, [named_cell(setting, part.looks, part.links), *cells]


def _summary(settings: Sequence[Setting], part: EvaluationPart) -> str:
    """Say what is folded."""
    measure = part.measure
    first, last = (number(settings[place].mean(measure.column), measure.digits - 1) for place in (0, -1))
    return f"{len(settings)} more, {measure.label} {first} to {last}"
