"""Accuracy of one run against its bytes, round by round."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulation.analysis.vocabulary import Metric, size
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.labels import show_on_hover
from simulation.pages.figures.panels import BACKING, INK, SERIES, Style, axis_labels, panels, title
from simulation.storage.run_files import RunFiles
from strategies.round_record import RoundRecord


def evaluated_rounds(rounds: Sequence[RoundRecord], metric: Metric) -> list[tuple[int, float, float]]:
    """Return number, cumulative bytes and accuracy of the rounds that were evaluated."""
    spent, evaluated = 0.0, []
    for record in rounds:
        spent += record.uplink_message_bytes + record.downlink_message_bytes
        value = (record.accuracy or {}).get(metric.column)
        if value is not None:
            evaluated.append((record.round, spent, value))
    return evaluated


def draw_rounds(ax: Axes, style: Style, run: RunFiles, metric: Metric) -> None:
    """Draw accuracy against the cumulative bytes per user, a point for every evaluated round."""
    rounds = evaluated_rounds(run.rounds, metric)
    users = run.summary.traffic.users
    spent = [total / users for _, total, _ in rounds]
    values = [value for _, _, value in rounds]
    ax.plot(spent, values, color=SERIES[0], marker="o", markersize=4, linewidth=1.5)
    spread = (max(values) - min(values)) or 0.1 * abs(values[0]) or 1.0
    ax.set_ylim(min(values) - 0.18 * spread, max(values) + 0.18 * spread)
    if min(spent) > 0:
        log_axis(ax, spent, in_bytes=True)
    plain_axis(ax, which="y")
    # Labels lie on the outer side of the curve, at its start and its end.
    outward = 1 if values[0] > values[-1] else -1
    for place, side, sign in ((0, "left", outward), (-1, "right", -outward)):
        ax.annotate(
            f"round {rounds[place][0]}",
            xy=(spent[place], values[place]),
            xytext=(0, 9 * sign),
            textcoords="offset points",
            ha=side,
            va="center",
            color=INK,
            fontsize=style.points - 1,
            bbox=BACKING,
        )
    axis_labels(ax, style, x="bytes per user so far, both directions", side=metric.label)
    shown = [
        (at, value, f"round {number}: {metric.label} {value:.{metric.digits}f}, {size(at)} per user so far")
        for at, (number, _, value) in zip(spent, rounds, strict=True)
    ]
    show_on_hover(ax, shown)


def draw_rounds_figure(style: Style, run: RunFiles, metric: Metric) -> Figure:
    """Draw `draw_rounds` as a separate figure."""
    figure, (ax,) = panels(style)
    draw_rounds(ax, style, run, metric)
    title(ax, metric.heading, style)
    return figure
