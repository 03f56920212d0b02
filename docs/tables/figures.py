"""Figures of the documents, from the committed summaries, as the page of a comparison draws them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.tables.results import RESULTS, summary
from simulation.analysis.protocol_results import by_evaluation
from simulation.pages.comparison_figures import EpsilonAxis, bytes_plot, epsilon_plot
from simulation.pages.drawing import render
from simulation.pages.looks import looks_of

DRAWN = "ml-100k-u1", "ml-100k-per-user"
"""The summaries that have figures."""


def figures() -> Iterator[tuple[Path, str]]:
    """Yield the files of the figures beside the summaries, and what they hold."""
    for name in DRAWN:
        held = summary(name)
        evaluation, results = next(iter(by_evaluation(held.results).items()))
        axes, looks = [EpsilonAxis(held.made.unit, asked=True)], looks_of(results)
        plots = (
            epsilon_plot(results, evaluation.metric, axes, looks, ""),
            bytes_plot(results, evaluation.metric, looks, ""),
        )
        for kind, plot in zip(("epsilon", "bytes"), plots, strict=True):
            if plot is not None:
                yield RESULTS / f"{name}-{kind}.svg", render(plot).svg
