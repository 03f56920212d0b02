"""Figures of the documents, from the committed summaries, as the page of a comparison draws them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from docs.tables.field import field_figure
from docs.tables.frontier import ingredients_figure
from docs.tables.results import RESULTS, summary
from simulation.analysis.protocol_results import at_reference, by_evaluation
from simulation.pages.comparison_figures import (
    SPENT,
    EpsilonAxis,
    draw_accuracy_against_bytes,
    draw_accuracy_against_epsilon,
)
from simulation.pages.drawing import Panel, Plot, render
from simulation.pages.looks import looks_of

DRAWN = "ml-100k-u1", "ml-100k-per-user"
"""The summaries that have figures."""

FIELD, AT = "field", 1.0
"""The summary of the field's systems, and the budget at which it is drawn."""


def figures() -> Iterator[tuple[Path, str]]:
    """Yield the files of the figures beside the summaries, and what they hold."""
    for name in DRAWN:
        held = summary(name)
        evaluation, results = next(iter(by_evaluation(held.results).items()))
        # Where budgets are matched per rating, protocols that protect whole users stand beside the others.
        axis = EpsilonAxis(held.made.unit, requested=True, mixed=held.made.unit == "rating")
        looks = looks_of(results)
        draw: dict[str, Any] = {"metric": evaluation.metric, "looks": looks}
        shown: dict[str, list[Panel]] = {
            "epsilon": [partial(draw_accuracy_against_epsilon, results=results, axis=axis, **draw)],
            "bytes": [
                partial(draw_accuracy_against_bytes, results=at_reference(results), what=what, **draw)
                for what in SPENT
            ],
        }
        for kind, panels in shown.items():
            yield RESULTS / f"{name}-{kind}.svg", render(Plot(f"accuracy-{kind}", "", "", "", panels)).svg
    for name, panels, height in (
        ("field-bytes", field_figure(FIELD, AT), 230.0),
        ("frontier-ingredients", ingredients_figure("frontier"), 260.0),
    ):
        yield RESULTS / f"{name}.svg", render(Plot(name, "", "", "", panels, height=height)).svg
