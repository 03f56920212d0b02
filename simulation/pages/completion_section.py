"""The section of a run's page about its completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulation.analysis.vocabulary import DASH
from simulation.pages.figures.completions import cross_domain_plots, draw_completion, numbers
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Column, Section, figures, table, text_cell
from simulation.storage.run_files import RunFiles


def completion_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on the completion's diagnostics, with their figures, if it reports any."""
    diagnostics = run.summary.completion_diagnostics
    if not diagnostics:
        return []
    content: list[str] = []
    trace = numbers(diagnostics.get("log_likelihood"))
    pi, sigma = numbers(diagnostics.get("pi")), numbers(diagnostics.get("sigma"))
    drawn = len(trace) > 1 and len(pi) == len(sigma) > 0 and min(sigma) > 0
    if drawn:
        widest = max(range(len(pi)), key=pi.__getitem__)
        plot = Plot(
            "completion",
            "How the mixture was fitted",
            "The log-likelihood must never fall. The mixture is the completion's estimate of the noise.",
            f"Left: the log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps. "
            f"Right: {len(pi)} Gaussians around 0; the one with the largest share, {pi[widest]:.2f}, has a "
            f"standard deviation of {sigma[widest]:.2f}.",
            lambda style: draw_completion(style, trace, pi, sigma),
            full_width=True,
        )
        content.append(figures([draw(plot)]))
    plots = cross_domain_plots(_with_names(diagnostics, run.summary.item_names))
    if plots:
        content.append(figures([draw(plot) for plot in plots]))
    rows = [
        [text_cell(_label(key)), text_cell(_shown(value))]
        for key, value in diagnostics.items()
        if not (drawn and key == "log_likelihood") and not (plots and isinstance(value, dict))
    ]
    columns = [Column("diagnostic", numeric=False), Column("value", numeric=False)]
    content.append(table("Diagnostics", columns, rows, sortable=False))
    heading = f"What the completion learned ({run.summary.completion})"
    return [Section("completion-section", heading, tuple(content))]


def _with_names(diagnostics: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return diagnostics in which the items of an AlterEgo are called by their names."""
    ego = diagnostics.get("alter_ego")
    if not ego:
        return diagnostics
    named = {
        side: [[names.get(item, item), rating] for item, rating in ego[side]] for side in ("before", "after")
    }
    return {**diagnostics, "alter_ego": {**ego, **named}}


def _label(key: str) -> str:
    """Write the name of a diagnostic in words."""
    return key.replace("x_sim", "X-Sim").replace("_", " ")


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:8]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)
