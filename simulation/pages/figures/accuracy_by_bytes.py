"""Accuracy of protocols against bytes per user, in total and round by round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.measures import Measure
from simulation.analysis.numbers import loss, size
from simulation.analysis.selection import frontier
from simulation.analysis.settings import Setting, by_protocol
from simulation.pages.figures.accuracy_axis import accuracy_axis, means
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.colours import INK, REFERENCE, SURFACE, ramp
from simulation.pages.figures.floor_lines import draw_floors, floor_handles, floor_lines
from simulation.pages.figures.hovering import show_on_hover
from simulation.pages.figures.labels import PointLabel, direct_labels, legend_below
from simulation.pages.figures.looks import DASHES, Look, Looks, legend_handle, marked, trust_handles
from simulation.pages.figures.panels import Style, axis_labels, panels, printable, shortened
from simulation.pages.figures.point_words import label_points, setting_in_words


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
    log_axis(ax, [spent for setting in competing if (spent := setting.bytes_per_user)], in_bytes=True)
    protocols = by_protocol(competing)
    reached = means(protocols, measure)
    accuracy_axis(ax, style, measure, reached | {floor.name: [floor.value] for floor in floors})
    right = ax.get_xlim()[1]
    floor_ends = draw_floors(ax, settings, measure, floors)
    ends = [] if style.narrow else floor_ends
    on_frontiers: list[Setting] = []
    for label, colour, dashes, group in _by_budget(competing):
        best = frontier(group, measure)
        for setting in group:
            _point(ax, setting, measure, looks[setting.name], filled=setting in best)
        if not best:
            continue
        on_frontiers += best
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
        ends.append(PointLabel(right, best_values[-1], label, INK if dashes == "solid" else REFERENCE))
    axis_labels(ax, style, x="bytes per user, both directions")
    direct_labels(ax, style, ends)
    first = sorted(competing, key=lambda setting: setting not in on_frontiers)
    _label(ax, style, first, measure, looks)
    handles = [
        legend_handle(marked(name, points), looks[name], line=False) for name, points in protocols.items()
    ]
    floors_below = floor_handles(floors) if style.narrow else []
    legend_below(figure, style, [*trust_handles(looks), *handles, *floors_below])
    return figure


def _label(ax: Axes, style: Style, settings: Sequence[Setting], measure: Measure, looks: Looks) -> None:
    """Write epsilons beside points, the first ones first, and have every point show its figures."""
    placed = [
        (setting, spent, mean)
        for setting in settings
        if (spent := setting.bytes_per_user) and (mean := setting.mean(measure.column)) is not None
    ]
    # A single budget is written at the end of its frontier.
    several = len({setting.budget for setting in settings if setting.budget}) > 1
    numbers = [
        PointLabel(spent, mean, loss(setting.budget) if setting.budget else "", looks[setting.name].colour)
        for setting, spent, mean in placed
    ]
    label_points(ax, style, numbers if several else [])
    show_on_hover(ax, ((spent, mean, setting_in_words(setting, measure)) for setting, spent, mean in placed))


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
        ends.append(PointLabel(*end, shortened(trace.label), look.colour))
    log_axis(ax, np.concatenate([trace.bytes_per_user for trace in traces]).tolist(), in_bytes=True)
    floors = floor_lines(settings, measure, looks)
    reached = {shortened(trace.label): trace.accuracy.tolist() for trace in traces}
    accuracy_axis(ax, style, measure, reached | {floor.name: [floor.value] for floor in floors})
    ends += draw_floors(ax, settings, measure, floors)
    axis_labels(ax, style, x="bytes per user so far, both directions")
    show_on_hover(ax, (place for trace in traces for place in _rounds_in_words(trace, measure)))
    if style.narrow or len(ends) > _MOST_LABELS:
        handles = [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
        legend_below(figure, style, [*trust_handles(looks), *handles, *floor_handles(floors)])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, trust_handles(looks))
    return figure


_MOST_LABELS = 12
"""Lines that have room for a label at their ends; more are named in a legend."""


def _rounds_in_words(trace: Trace, measure: Measure) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every evaluated round."""
    rounds = zip(trace.bytes_per_user.tolist(), trace.accuracy.tolist(), strict=True)
    for number, (spent, reached) in enumerate(rounds, start=1):
        of = "" if trace.accuracy.size == 1 else f", evaluated round {number} of {trace.accuracy.size}"
        words = f"{measure.label} {reached:.{measure.digits}f}, {size(spent)} per user so far"
        yield spent, reached, f"{printable(trace.label)}{of}: {words}"
