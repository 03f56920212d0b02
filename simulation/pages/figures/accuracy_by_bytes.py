"""Accuracy of protocols against bytes per user, in total and round by round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.protocol_results import ProtocolResult, by_protocol, frontier
from simulation.analysis.vocabulary import Metric, loss, size
from simulation.pages.figures.axes import accuracy_axis, log_axis, means
from simulation.pages.figures.labels import (
    PointLabel,
    direct_labels,
    label_points,
    legend_below,
    result_in_words,
    show_on_hover,
)
from simulation.pages.figures.looks import (
    DASHES,
    Look,
    Looks,
    baseline_handles,
    baseline_lines,
    draw_baselines,
    legend_handle,
    marked,
    trust_handles,
)
from simulation.pages.figures.panels import (
    INK,
    REFERENCE,
    SURFACE,
    Style,
    axis_labels,
    panels,
    printable,
    ramp,
    shortened,
)


def draw_accuracy_against_bytes(
    style: Style, results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> Figure:
    """Draw accuracy against bytes per user, with the frontier of each budget as a line.

    Points on the frontier of their budget are filled, the others hollow. Baselines are horizontal lines,
    because nothing-sent has no place on a logarithmic axis of bytes.
    """
    figure, (ax,) = panels(style)
    competing = [result for result in results if result.baseline is None]
    baselines = baseline_lines(results, metric, looks)
    log_axis(ax, [spent for result in competing if (spent := result.bytes_per_user)], in_bytes=True)
    protocols = by_protocol(competing)
    reached = means(protocols, metric)
    accuracy_axis(ax, style, metric, reached | {baseline.name: [baseline.value] for baseline in baselines})
    right = ax.get_xlim()[1]
    baseline_ends = draw_baselines(ax, results, metric, baselines)
    ends = [] if style.narrow else baseline_ends
    on_frontiers: list[ProtocolResult] = []
    for label, colour, dashes, group in _by_budget(competing):
        best = frontier(group, metric)
        for result in group:
            _point(ax, result, metric, looks[result.name], filled=result in best)
        if not best:
            continue
        on_frontiers += best
        spent_on_best = [result.bytes_per_user or 0.0 for result in best]
        best_values = [result.mean(metric.column) or 0.0 for result in best]
        ax.plot(
            [*spent_on_best, right],
            [*best_values, best_values[-1]],
            drawstyle="steps-post",
            color=colour,
            linewidth=1.4,
            linestyle=dashes,
            zorder=1.5,
        )
        ends.append(PointLabel(right, best_values[-1], label, INK if dashes == "solid" else REFERENCE))
    axis_labels(ax, style, x="bytes per user, both directions")
    direct_labels(ax, style, ends)
    first = sorted(competing, key=lambda result: result not in on_frontiers)
    _label(ax, style, first, metric, looks)
    handles = [
        legend_handle(marked(name, points), looks[name], line=False) for name, points in protocols.items()
    ]
    baselines_below = baseline_handles(baselines) if style.narrow else []
    legend_below(figure, style, [*trust_handles(looks), *handles, *baselines_below])
    return figure


def _label(ax: Axes, style: Style, results: Sequence[ProtocolResult], metric: Metric, looks: Looks) -> None:
    """Write epsilons beside points, the first ones first, and have every point show its figures."""
    placed = [
        (result, spent, mean)
        for result in results
        if (spent := result.bytes_per_user) and (mean := result.mean(metric.column)) is not None
    ]
    # A single budget is written at the end of its frontier.
    several = len({result.budget for result in results if result.budget}) > 1
    numbers = [
        PointLabel(spent, mean, loss(result.budget) if result.budget else "", looks[result.name].colour)
        for result, spent, mean in placed
    ]
    label_points(ax, style, numbers if several else [])
    show_on_hover(ax, ((spent, mean, result_in_words(result, metric)) for result, spent, mean in placed))


def _by_budget(results: Sequence[ProtocolResult]) -> list[tuple[str, str, Any, list[ProtocolResult]]]:
    """Return label, colour, line style and settings of every budget, and of those without one."""
    budgets = sorted({result.budget for result in results if result.budget is not None})
    groups: list[tuple[str, str, Any, list[ProtocolResult]]] = [
        (f"ε {budget:g}", colour, "solid", [result for result in results if result.budget == budget])
        for budget, colour in zip(budgets, ramp(len(budgets)), strict=True)
    ]
    without = [result for result in results if result.budget is None]
    return [*groups, ("no budget", REFERENCE, DASHES[0], without)]


def _point(ax: Axes, result: ProtocolResult, metric: Metric, look: Look, *, filled: bool) -> None:
    spent, accuracy = result.bytes_per_user, result.average(metric.column)
    if not spent or accuracy is None:
        return
    ax.plot(
        [spent],
        [accuracy.mean],
        marker=look.marker,
        color=look.colour if filled else SURFACE,
        markeredgecolor=look.colour,
        markeredgewidth=1.2,
        markersize=6.5,
        linestyle="none",
    )


@dataclass(frozen=True, eq=False)
class Trace:
    """How the accuracy of a protocol developed with its bytes."""

    name: str
    label: str
    bytes_per_user: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    """Bytes are cumulative, both directions; shape (evaluated rounds,)."""


def draw_accuracy_by_round(
    style: Style, traces: Sequence[Trace], results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> Figure:
    """Draw iterative protocols as lines over their rounds, one-shot protocols as points, baselines across.

    Parameters
    ----------
    settings : sequence of Setting
        The baselines among them are drawn.
    """
    figure, (ax,) = panels(style)
    ends = []
    for trace in traces:
        look = looks[trace.name]
        ax.plot(
            trace.bytes_per_user,
            trace.accuracy,
            color=look.colour,
            linestyle=look.dashes,
            linewidth=1.5,
            marker=look.marker,
            markersize=6 if trace.accuracy.size == 1 else 3.5,
            markeredgecolor=SURFACE,
            markeredgewidth=0.6,
        )
        end = float(trace.bytes_per_user[-1]), float(trace.accuracy[-1])
        ends.append(PointLabel(*end, shortened(trace.label), look.colour))
    log_axis(ax, np.concatenate([trace.bytes_per_user for trace in traces]).tolist(), in_bytes=True)
    baselines = baseline_lines(results, metric, looks)
    reached = {shortened(trace.label): trace.accuracy.tolist() for trace in traces}
    accuracy_axis(ax, style, metric, reached | {baseline.name: [baseline.value] for baseline in baselines})
    ends += draw_baselines(ax, results, metric, baselines)
    axis_labels(ax, style, x="bytes per user so far, both directions")
    show_on_hover(ax, (place for trace in traces for place in _rounds_in_words(trace, metric)))
    if style.narrow or len(ends) > _MOST_LABELS:
        handles = [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
        legend_below(figure, style, [*trust_handles(looks), *handles, *baseline_handles(baselines)])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, trust_handles(looks))
    return figure


_MOST_LABELS = 12
"""Lines that have room for a label at their ends; more are named in a legend."""


def _rounds_in_words(trace: Trace, metric: Metric) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every evaluated round."""
    rounds = zip(trace.bytes_per_user.tolist(), trace.accuracy.tolist(), strict=True)
    for number, (spent, reached) in enumerate(rounds, start=1):
        of = "" if trace.accuracy.size == 1 else f", evaluated round {number} of {trace.accuracy.size}"
        words = f"{metric.label} {reached:.{metric.digits}f}, {size(spent)} per user so far"
        yield spent, reached, f"{printable(trace.label)}{of}: {words}"
