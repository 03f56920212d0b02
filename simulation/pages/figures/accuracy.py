"""Accuracy against what it costs: against epsilon, against bytes and by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dprec.privacy.units import ComparableUnit
from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting, by_protocol, frontier
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.colours import INK, REFERENCE, SURFACE, ramp
from simulation.pages.figures.labels import direct_labels, legend_below
from simulation.pages.figures.looks import DASHES, Look, Looks, legend_handle
from simulation.pages.figures.panels import Style, axis_labels, panels, shortened


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were asked for.

    Parameters
    ----------
    unit : {"rating", "user"}
    asked : bool
        Whether it is the budget; the unit is the one in which budgets were matched then.
    """

    unit: ComparableUnit
    asked: bool = False

    def value(self, setting: Setting) -> float | None:
        """Return where a setting stands; None where it has no place."""
        return setting.budget if self.asked else setting.epsilon(self.unit)

    def falls_short(self, setting: Setting) -> bool:
        """Return whether a budget was asked for and the loss that holds is larger, or unknown."""
        loss = setting.epsilon(self.unit)
        return setting.budget is not None and (loss is None or loss > setting.budget * (1 + _SLACK))

    @property
    def name(self) -> str:
        """What it counts."""
        return f"ε per {self.unit}{' asked for' if self.asked else ''}"

    @property
    def label(self) -> str:
        """What stands below the axis."""
        most = ", largest of any user" if self.unit == "user" else ""
        return f"ε per {self.unit}{', as asked for' if self.asked else most}"


_SLACK = 1e-3
"""Whole draws and sums over rounds may exceed a budget by this share."""


def draw_accuracy_against_epsilon(
    style: Style, settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis, looks: Looks
) -> Figure:
    """Draw one line per protocol, with error bars; protocols without privacy are horizontal lines.

    Parameters
    ----------
    style : Style
    settings : sequence of Setting
    measure : Measure
    axis : EpsilonAxis
        Settings without a place on it are left out.
    looks : mapping
        By protocol.
    """
    figure, (ax,) = panels(style)
    curves = _curves(settings, measure, axis)
    ends = [_draw_curve(ax, curve, looks[curve.name]) for curve in curves]
    log_axis(
        ax, [loss for curve in curves for loss in curve.losses.tolist()] or [0.5, 2.0], ticks_at_values=True
    )
    right = ax.get_xlim()[1]
    references = _references(settings, measure)
    for setting, mean in references:
        look = looks[setting.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        ends.append((right, mean, shortened(setting.name), look.colour))
    ranges = [end for curve in curves for end in (*curve.low.tolist(), *curve.high.tolist())]
    _fit(ax, [*ranges, *(mean for _, mean in references)])
    axis_labels(ax, style, x=axis.label, y=_labelled(measure))
    if style.narrow:
        named = {curve.name: curve.label for curve in curves}
        named |= {setting.name: shortened(setting.name) for setting, _ in references}
        legend_below(figure, style, [legend_handle(label, looks[name]) for name, label in named.items()])
    else:
        direct_labels(ax, style, ends)
    return figure


@dataclass(frozen=True, eq=False)
class _Curve:
    """The accuracy of one protocol against epsilon: arrays of one entry per budget, by ascending epsilon."""

    name: str
    label: str
    losses: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @property
    def low(self) -> NDArray[np.float64]:
        return self.mean - self.deviation

    @property
    def high(self) -> NDArray[np.float64]:
        return self.mean + self.deviation


def _curves(settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis) -> list[_Curve]:
    curves = []
    for name, points in by_protocol(settings).items():
        known = [
            (loss, accuracy.mean, accuracy.deviation)
            for setting in points
            if (loss := axis.value(setting)) and (accuracy := setting.average(measure.column))
        ]
        if not known:
            continue
        mark = " †" if axis.asked and any(axis.falls_short(setting) for setting in points) else ""
        losses, mean, deviation = np.array(sorted(known)).T
        curves.append(_Curve(name, shortened(name) + mark, losses, mean, deviation))
    return curves


def _draw_curve(ax: Axes, curve: _Curve, look: Look) -> tuple[float, float, str, str]:
    """Draw a curve with error bars, and return where it ends, its label and its colour."""
    ax.errorbar(
        curve.losses,
        curve.mean,
        yerr=curve.deviation,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dashes,
        markersize=6,
        markeredgecolor=SURFACE,
        markeredgewidth=0.6,
        linewidth=1.6,
        elinewidth=1.1,
        capsize=2.5,
    )
    return float(curve.losses[-1]), float(curve.mean[-1]), curve.label, look.colour


def _references(settings: Sequence[Setting], measure: Measure) -> list[tuple[Setting, float]]:
    return [
        (setting, mean)
        for setting in settings
        if setting.reference and (mean := setting.mean(measure.column)) is not None
    ]


def draw_accuracy_against_bytes(
    style: Style, settings: Sequence[Setting], measure: Measure, looks: Looks
) -> Figure:
    """Draw accuracy against bytes per user, and for each budget the line that nothing beats.

    A point on the frontier of its budget is filled, the others are pale.
    """
    figure, (ax,) = panels(style)
    budgets = sorted({setting.budget for setting in settings if setting.budget is not None})
    known = [
        (spent, found.mean)
        for setting in settings
        if (spent := setting.bytes_per_user) and (found := setting.average(measure.column))
    ]
    log_axis(ax, [spent for spent, _ in known], in_bytes=True)
    _fit(ax, [value for _, value in known])
    right = ax.get_xlim()[1]
    groups: list[tuple[str, str, Any, list[Setting]]] = [
        (f"ε {budget:g}", colour, "solid", [setting for setting in settings if setting.budget == budget])
        for budget, colour in zip(budgets, ramp(len(budgets)) if budgets else [], strict=True)
    ]
    groups.append(
        ("no budget", REFERENCE, DASHES[0], [setting for setting in settings if setting.budget is None])
    )
    ends = []
    for label, colour, dashes, group in groups:
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
        ends.append((right, best_values[-1], label, INK if dashes == "solid" else REFERENCE))
    axis_labels(ax, style, x="bytes per user, both directions", y=_labelled(measure))
    direct_labels(ax, style, ends)
    legend_below(
        figure,
        style,
        [legend_handle(shortened(name), looks[name], line=False) for name in by_protocol(settings)],
    )
    return figure


def _point(ax: Axes, setting: Setting, measure: Measure, look: Look, *, filled: bool) -> None:
    spent, found = setting.bytes_per_user, setting.average(measure.column)
    if not spent or found is None:
        return
    ax.plot(
        [spent],
        [found.mean],
        marker=look.marker,
        color=look.colour if filled else SURFACE,
        markeredgecolor=look.colour,
        markeredgewidth=1.2,
        markersize=6.5,
        linestyle="none",
    )


@dataclass(frozen=True, eq=False)
class Trace:
    """How accuracy grew with the bytes of a protocol.

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


def draw_accuracy_by_round(style: Style, traces: Sequence[Trace], measure: Measure, looks: Looks) -> Figure:
    """Draw iterative protocols as lines over their rounds and one-shot protocols as points."""
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
        ends.append((*end, shortened(trace.label), look.colour))
    log_axis(ax, np.concatenate([trace.bytes_per_user for trace in traces]).tolist(), in_bytes=True)
    _fit(ax, np.concatenate([trace.accuracy for trace in traces]).tolist())
    axis_labels(ax, style, x="bytes per user so far, both directions", y=_labelled(measure))
    if style.narrow:
        legend_below(
            figure, style, [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
        )
    else:
        direct_labels(ax, style, ends)
    return figure


_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy from which on their axis is logarithmic."""


def _fit(ax: Axes, values: Sequence[float]) -> None:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if 0 < _WIDE_RANGE * low < high:
        log_axis(ax, values, which="y")
        return
    spread = (high - low) or 0.1 * abs(high) or 1.0
    ax.set_ylim(low - 0.07 * spread, high + 0.07 * spread)
    plain_axis(ax, which="y")


def _labelled(measure: Measure) -> str:
    return f"{measure.label} ({measure.direction})"
