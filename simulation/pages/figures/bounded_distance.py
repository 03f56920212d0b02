"""How far the reports of a mechanism are from the ratings: measured, and bounded by theory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.labels import legend_below
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import INK, SURFACE, Style, axis_labels, panels, shortened, title
from simulation.pages.figures.rendering import Plot

_BOUND, _MEASURED = "distance_bound", "distance_measured"

_LINES: tuple[tuple[str, str, Any], ...] = (
    (_BOUND, "bound", (0, (5, 2))),
    (_MEASURED, "measured", "solid"),
    ("rmse", "RMSE of the predictions", (0, (1, 1.5))),
)
"""Columns of comparison.csv, their labels and their line styles."""


def distance_plot(results: Sequence[ProtocolResult], looks: Looks) -> Plot | None:
    """Return the plot of the distances against epsilon; None if no protocol has a bound."""
    bounded = [result for result in results if result.epsilon("rating") and result.mean(_BOUND)]
    if not bounded:
        return None
    tolerance = bounded[0].mean("distance_tolerance")
    words = [
        f"{result.name} at {result.epsilon('rating'):.3g}: bound {result.mean(_BOUND):.3g}, "
        f"measured {_written(result.mean(_MEASURED))}"
        for result in bounded
    ]
    return Plot(
        "distance-epsilon",
        "Distance of what the server sees from the ratings",
        "Root mean square per cell, in rating units. Bound: Zheng's Theorem 3 on ‖P(Θ − Z)‖, divided by the "
        "root of the number of cells shown, true or made up; it holds with probability at least "
        f"{_written(None if tolerance is None else 1 - tolerance)}. "
        "Measured: what is shown minus the training rating, on the cells shown that are truly rated; a "
        "made-up cell has no known truth. Dotted: RMSE of the predictions.",
        f"Distances against epsilon per cell, both logarithmic. {'; '.join(words)}.",
        lambda style: draw_distances(style, bounded, looks),
    )


def draw_distances(style: Style, results: Sequence[ProtocolResult], looks: Looks) -> Figure:
    """Draw the bound, the distance measured and the RMSE of protocols against epsilon per cell."""
    figure, (ax,) = panels(style)
    losses: list[float] = []
    values: list[float] = []
    for name, points in by_protocol(results).items():
        look = looks[name]
        for column, _, dashes in _LINES:
            drawn = sorted(
                (loss, value)
                for result in points
                if (loss := result.epsilon("rating")) and (value := result.mean(column))
            )
            ax.plot(
                [loss for loss, _ in drawn],
                [value for _, value in drawn],
                color=look.colour,
                marker=look.marker,
                linestyle=dashes,
                linewidth=1.5,
                markersize=5,
                markeredgecolor=SURFACE,
                markeredgewidth=0.6,
            )
            losses += [loss for loss, _ in drawn]
            values += [value for _, value in drawn]
    log_axis(ax, losses, ticks_at_values=True)
    log_axis(ax, values, which="y")
    axis_labels(ax, style, x="ε per cell, rated or not")
    title(ax, "Root mean square per cell, in rating units", style)
    protocols = [
        Line2D([], [], color=looks[name].colour, marker=looks[name].marker, label=shortened(name))
        for name in by_protocol(results)
    ]
    lines = [Line2D([], [], color=INK, linestyle=dashes, label=words) for _, words, dashes in _LINES]
    legend_below(figure, style, [*protocols, *lines], columns=2 if style.narrow else 3)
    return figure


def _written(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
