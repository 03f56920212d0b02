"""The figures of a comparison, each a pure function of its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dprec.privacy.device_channel import DeviceChannel
from dprec.privacy.units import ComparableUnit
from simulation.analysis.measures import Measure
from simulation.analysis.numbers import short, size
from simulation.analysis.settings import Setting, frontier
from simulation.pages.channel_figures import draw_expected
from simulation.pages.style import (
    INK,
    MARKERS,
    REFERENCE,
    RULE,
    SERIES,
    SURFACE,
    Style,
    axis_labels,
    direct_labels,
    legend_below,
    log_axis,
    panels,
    plain_axis,
    ramp,
    shortened,
    title,
)

_DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (7, 2, 1.5, 2)), (0, (1, 1.5)))
QUANTILES = (0, 5, 25, 50, 75, 95, 100)

_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy from which on their axis is logarithmic."""

Looks = Mapping[str, "Look"]


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn, the same in every figure of a page.

    Parameters
    ----------
    colour, marker : str
    dashes : tuple or str
        Line style.
    private : bool
        Whether it has a budget or a privacy loss; one without is a reference.
    """

    colour: str
    marker: str
    dashes: Any
    private: bool


def looks_of(settings: Sequence[Setting]) -> dict[str, Look]:
    """Give every protocol its look, in the order in which they come."""
    private = list(dict.fromkeys(setting.name for setting in settings if not setting.reference))
    looks = {
        name: Look(
            SERIES[place % len(SERIES)],
            MARKERS[place % len(MARKERS)],
            "solid" if place < len(SERIES) else _DASHES[0],
            True,
        )
        for place, name in enumerate(private)
    }
    references = dict.fromkeys(setting.name for setting in settings if setting.name not in looks)
    for place, name in enumerate(references):
        looks[name] = Look(
            REFERENCE, MARKERS[-1 - place % len(MARKERS)], _DASHES[place % len(_DASHES)], False
        )
    return looks


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
    ends: list[tuple[float, float, str, str]] = []
    labels: dict[str, str] = {}
    losses: list[float] = []
    values: list[float] = []
    for name, points in by_protocol(settings).items():
        look = looks[name]
        drawn = [
            (loss, found.mean, found.deviation)
            for setting in points
            if (loss := axis.value(setting)) and (found := setting.average(measure.column))
        ]
        if not drawn:
            continue
        x, y, spread = (np.array(column) for column in zip(*sorted(drawn), strict=True))
        ax.errorbar(
            x,
            y,
            yerr=spread,
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
        losses += x.tolist()
        values += [*(y - spread).tolist(), *(y + spread).tolist()]
        mark = " †" if axis.asked and any(axis.falls_short(setting) for setting in points) else ""
        labels[name] = shortened(name) + mark
        ends.append((float(x[-1]), float(y[-1]), labels[name], look.colour))
    log_axis(ax, losses or [0.5, 2.0], ticks_at_values=True)
    right = ax.get_xlim()[1]
    for setting, mean in _references(settings, measure):
        look = looks[setting.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        values.append(mean)
        labels[setting.name] = shortened(setting.name)
        ends.append((right, mean, labels[setting.name], look.colour))
    _fit(ax, values)
    axis_labels(ax, style, x=axis.label, y=_labelled(measure))
    if style.narrow:
        legend_below(figure, style, [_handle(label, looks[name]) for name, label in labels.items()])
    else:
        direct_labels(ax, style, ends)
    return figure


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
        ("no budget", REFERENCE, _DASHES[0], [setting for setting in settings if setting.budget is None])
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
        figure, style, [_handle(shortened(name), looks[name], line=False) for name in by_protocol(settings)]
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
        legend_below(figure, style, [_handle(shortened(trace.label), looks[trace.name]) for trace in traces])
    else:
        direct_labels(ax, style, ends)
    return figure


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol.

    Parameters
    ----------
    name : str
    label : str
    quantiles : ndarray, shape (7,)
        At `QUANTILES` per cent.
    """

    name: str
    label: str
    quantiles: NDArray[np.float64]


def draw_spreads(
    style: Style, spreads: Sequence[Spread], heading: str, axis: str, looks: Looks, *, in_bytes: bool
) -> Figure:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median."""
    height = 0.28 + 0.118 * max(2, len(spreads))
    figure, (ax,) = panels(style, aspect=max(0.55, height))
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        least, p5, p25, median, p75, p95, most = spread.quantiles.tolist()
        ax.hlines(row, least, most, color=colour, linewidth=0.9, alpha=0.6)
        ax.hlines(row, p5, p95, color=colour, linewidth=4, alpha=0.4)
        ax.hlines(row, p25, p75, color=colour, linewidth=8, alpha=0.55)
        ax.plot([median], [row], "o", color=colour, markersize=6, markeredgecolor=SURFACE)
        measured = size(median) if in_bytes else f"ε {short(median)}"
        ax.text(
            0.0,
            row + 0.38,
            f"{shortened(spread.label)}, median {measured}",
            transform=ax.get_yaxis_transform(),
            color=INK,
            fontsize=style.points - 0.5,
            va="center",
            parse_math=False,
        )
    everything = np.concatenate([spread.quantiles for spread in spreads])
    log_axis(ax, everything[everything > 0].tolist() or [1.0], in_bytes=in_bytes)
    ax.set_ylim(-0.55, len(ordered) - 0.3)
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    title(ax, heading, style)
    axis_labels(ax, style, x=axis)
    return figure


def draw_mechanisms(style: Style, mechanisms: Sequence[tuple[str, DeviceChannel]]) -> Figure:
    """Draw E[r* | r] of the mechanisms of a comparison."""
    figure, (ax,) = panels(style)
    draw_expected(ax, style, mechanisms)
    title(ax, "Mean of what is sent, E[r*|r]", style)
    if style.narrow:
        handles = [
            Line2D(
                [],
                [],
                color=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                label=shortened(label),
            )
            for place, (label, _) in enumerate(mechanisms)
        ]
        legend_below(figure, style, handles, columns=1)
    return figure


def by_protocol(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    """Group settings by protocol, in the order in which they come."""
    groups: dict[str, list[Setting]] = {}
    for setting in settings:
        groups.setdefault(setting.name, []).append(setting)
    return groups


def _references(settings: Sequence[Setting], measure: Measure) -> list[tuple[Setting, float]]:
    return [
        (setting, mean)
        for setting in settings
        if setting.reference and (mean := setting.mean(measure.column)) is not None
    ]


def _handle(label: str, look: Look, *, line: bool = True) -> Line2D:
    return Line2D(
        [],
        [],
        color=look.colour,
        marker=look.marker if look.private or not line else "none",
        linestyle=look.dashes if line else "none",
        markersize=5.5,
        label=label,
    )


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
