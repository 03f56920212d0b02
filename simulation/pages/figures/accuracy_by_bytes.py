"""Accuracy of protocols against bytes per user, in total and round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.measures import Measure
from simulation.analysis.selection import frontier
from simulation.analysis.settings import Setting, by_protocol
from simulation.pages.figures.axes import accuracy_axis, log_axis
from simulation.pages.figures.colours import INK, REFERENCE, SURFACE, ramp
from simulation.pages.figures.floor_lines import draw_floors, floor_handles, floor_lines
from simulation.pages.figures.labels import LineEnd, direct_labels, legend_below, note_off_scale
from simulation.pages.figures.looks import DASHES, Look, Looks, legend_handle, marked, trust_handles
from simulation.pages.figures.panels import Style, axis_labels, panels, shortened


def draw_accuracy_against_bytes(
    style: Style, settings: Sequence[Setting], measure: Measure, looks: Looks
) -> Figure:
    """Draw accuracy against bytes per user, with the frontier of each budget as a line.

    Points on the frontier of their budget are filled, the others hollow. Floors are horizontal lines, because
    nothing-sent has no place on a logarithmic axis of bytes.
    """
    figure, (ax,) = panels(style)
    competing = [setting for setting in settings if setting.floor is None]
    floors = floor_lines(settings, measure, looks)
    known = [
        (spent, accuracy.mean)
        for setting in competing
        if (spent := setting.bytes_per_user) and (accuracy := setting.average(measure.column))
    ]
    log_axis(ax, [spent for spent, _ in known], in_bytes=True)
    accuracy_axis(ax, [*(value for _, value in known), *(floor.value for floor in floors)])
    protocols = by_protocol(competing)
    note_off_scale(ax, style, _means(protocols, measure))
    right = ax.get_xlim()[1]
    floor_ends = draw_floors(ax, settings, measure, floors)
    ends = [] if style.narrow else floor_ends
    for label, colour, dashes, group in _by_budget(competing):
        best = frontier(group, measure)
        for setting in group:
            _point(ax, setting, measure, looks[setting.name], filled=setting in best)
        if not best:
            continue
        spent_on_best = [setting.bytes_per_user or 0.0 for setting in best]
        best_values = [setting.mean(measure.column) or 0.0 for setting in best]
        ax.plot(
            [*spent_on_best, right],
            [*best_values, best_values[-1]],
            drawstyle="steps-post",
            color=colour,
            linewidth=1.4,
            linestyle=dashes,
            zorder=1.5,
        )
        ends.append(LineEnd(right, best_values[-1], label, INK if dashes == "solid" else REFERENCE))
    axis_labels(ax, style, x="bytes per user, both directions", y=measure.heading)
    direct_labels(ax, style, ends)
    handles = [
        legend_handle(marked(name, points), looks[name], line=False) for name, points in protocols.items()
    ]
    floors_below = floor_handles(floors) if style.narrow else []
    legend_below(figure, style, [*trust_handles(looks), *handles, *floors_below])
    return figure


def _means(protocols: Mapping[str, Sequence[Setting]], measure: Measure) -> dict[str, list[float]]:
    """Return the accuracies of every protocol, by its name."""
    return {
        name: [mean for setting in each if (mean := setting.mean(measure.column)) is not None]
        for name, each in protocols.items()
    }


def _by_budget(settings: Sequence[Setting]) -> list[tuple[str, str, Any, list[Setting]]]:
    """Return label, colour, line style and settings of every budget, and of those without one."""
    budgets = sorted({setting.budget for setting in settings if setting.budget is not None})
    groups: list[tuple[str, str, Any, list[Setting]]] = [
        (f"ε {budget:g}", colour, "solid", [setting for setting in settings if setting.budget == budget])
        for budget, colour in zip(budgets, ramp(len(budgets)), strict=True)
    ]
    without = [setting for setting in settings if setting.budget is None]
    return [*groups, ("no budget", REFERENCE, DASHES[0], without)]


def _point(ax: Axes, setting: Setting, measure: Measure, look: Look, *, filled: bool) -> None:
    spent, accuracy = setting.bytes_per_user, setting.average(measure.column)
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
    """How the accuracy of a protocol developed with its bytes.

    Parameters
    ----------
    name : str
    label : str
    bytes_per_user, accuracy : ndarray, shape (evaluated rounds,)
        Bytes are cumulative, both directions.
    """

    name: str
    label: str
    bytes_per_user: NDArray[np.float64]
    accuracy: NDArray[np.float64]


def draw_accuracy_by_round(
    style: Style, traces: Sequence[Trace], settings: Sequence[Setting], measure: Measure, looks: Looks
) -> Figure:
    """Draw iterative protocols as lines over their rounds, one-shot protocols as points, floors across.

    Parameters
    ----------
    style : Style
    traces : sequence of Trace
    settings : sequence of Setting
        The floors among them are drawn.
    measure : Measure
    looks : mapping
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
        ends.append(LineEnd(*end, shortened(trace.label), look.colour))
    log_axis(ax, np.concatenate([trace.bytes_per_user for trace in traces]).tolist(), in_bytes=True)
    floors = floor_lines(settings, measure, looks)
    reached = np.concatenate([trace.accuracy for trace in traces]).tolist()
    accuracy_axis(ax, [*reached, *(floor.value for floor in floors)])
    ends += draw_floors(ax, settings, measure, floors)
    axis_labels(ax, style, x="bytes per user so far, both directions", y=measure.heading)
    if style.narrow:
        handles = [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
        legend_below(figure, style, [*trust_handles(looks), *handles, *floor_handles(floors)])
    else:
        direct_labels(ax, style, ends)
        if trusts := trust_handles(looks):
            legend_below(figure, style, trusts)
    return figure
