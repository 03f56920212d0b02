"""The figure of what each ingredient of predicting on the device buys.

Every other protocol of the comparison is its first one with one thing changed; a row shows how much its error
then grows, at every budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from docs.tables.results import summary
from simulation.analysis.protocol_results import by_protocol
from simulation.analysis.vocabulary import METRICS
from simulation.pages.drawing import Panel, entry, legend, point, titled
from simulation.pages.looks import INK, Look, ramp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RMSE = METRICS[0]

_MARKERS = "os^D"


def ingredients_figure(name: str) -> list[Panel]:
    """Return the figure of a summary."""
    budgeted = [result for result in summary(name).results if result.budget is not None]
    errors = {
        protocol: {result.budget: error for result in own if (error := result.mean(RMSE.column)) is not None}
        for protocol, own in by_protocol(budgeted).items()
    }
    return [partial(_draw, errors=errors)]


def _draw(ax: Axes, errors: Mapping[str, Mapping[float | None, float]]) -> None:
    """Draw a row for each protocol but the first, the costliest on top, and a mark in it for each budget."""
    whole, *others = errors
    added = {
        name: {budget: error - errors[whole][budget] for budget, error in errors[name].items()}
        for name in others
    }
    changed = sorted(added, key=lambda name: -max(added[name].values()))
    ax.set_ylim(len(changed) - 0.5, -0.5)
    budgets, handles = list(errors[whole]), []
    for budget, marker, colour in zip(budgets, _MARKERS, ramp(len(budgets)), strict=True):
        more = {row: added[name][budget] for row, name in enumerate(changed) if budget in added[name]}
        words = [f"{changed[row]}, ε {budget:g}: {each:+.3f}" for row, each in more.items()]
        point(ax, list(more.values()), list(more), colour, words, marker=marker)
        handles.append(entry(f"ε = {budget:g} per rating", Look(colour, marker), line=False))
    ax.axvline(0, color=INK, linewidth=1.1)
    ax.set_yticks(range(len(changed)), changed)
    ax.grid(visible=True, axis="x")
    ax.locator_params("x", nbins=4)
    titled(ax, f"{RMSE.label} added to that of {whole}")
    legend(ax, handles)
