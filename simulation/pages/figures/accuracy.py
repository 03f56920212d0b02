"""Accuracy of protocols against epsilon, bytes per user and the number of users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dprec.privacy.units import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.populations import Course
from simulation.analysis.settings import Setting, by_protocol, frontier
from simulation.analysis.vocabulary import Measure, loss, loss_per, size
from simulation.pages.figures.axes import accuracy_axis, log_axis, means
from simulation.pages.figures.labels import (
    PointLabel,
    direct_labels,
    label_points,
    legend_below,
    setting_in_words,
    show_on_hover,
    tall_enough,
)
from simulation.pages.figures.looks import (
    DASHES,
    FLOOR_LINES,
    Look,
    Looks,
    draw_floors,
    floor_handles,
    floor_lines,
    legend_handle,
    marked,
    trust_handles,
)
from simulation.pages.figures.panels import (
    INK,
    REFERENCE,
    RULE,
    SURFACE,
    Style,
    axis_labels,
    panels,
    printable,
    ramp,
    shortened,
)


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
    settings : sequence of Setting
        The floors among them are drawn.
    """
    figure, (ax,) = panels(style)
    ends = []
    for trace in traces:
        look = looks[trace.name]
        drawn = look.line(linewidth=1.5, markersize=6 if trace.accuracy.size == 1 else 3.5)
        ax.plot(trace.bytes_per_user, trace.accuracy, **drawn)
        end = float(trace.bytes_per_user[-1]), float(trace.accuracy[-1])
        ends.append(PointLabel(*end, shortened(trace.label), look.colour))
    log_axis(ax, np.concatenate([trace.bytes_per_user for trace in traces]).tolist(), in_bytes=True)
    floors = floor_lines(settings, measure, looks)
    reached = {shortened(trace.label): trace.accuracy.tolist() for trace in traces}
    accuracy_axis(ax, style, measure, reached | {floor.name: [floor.value] for floor in floors})
    ends += draw_floors(ax, settings, measure, floors)
    axis_labels(ax, style, x="bytes per user so far, both directions")
    show_on_hover(ax, (place for trace in traces for place in _rounds_in_words(trace, measure)))
    handles = [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
    below = [*handles, *floor_handles(floors)]
    _name_lines(ax, style, ends, trust_handles(looks), below, crowded=len(ends) > _MOST_LABELS)
    return figure


_MOST_LABELS = 12
"""Lines that have room for a label at their ends; more are named in a legend."""


def _name_lines(
    ax: Axes,
    style: Style,
    ends: Sequence[PointLabel],
    always: Sequence[Line2D],
    below: Sequence[Line2D],
    *,
    crowded: bool = False,
) -> None:
    """Name lines at their ends, or in the legend if there is no room, which has some entries anyway."""
    figure = ax.figure
    assert isinstance(figure, Figure)
    if style.narrow or crowded:
        legend_below(figure, style, [*always, *below])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, always)


def _rounds_in_words(trace: Trace, measure: Measure) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every evaluated round."""
    rounds = zip(trace.bytes_per_user.tolist(), trace.accuracy.tolist(), strict=True)
    for number, (spent, reached) in enumerate(rounds, start=1):
        of = "" if trace.accuracy.size == 1 else f", evaluated round {number} of {trace.accuracy.size}"
        words = f"{measure.label} {reached:.{measure.digits}f}, {size(spent)} per user so far"
        yield spent, reached, f"{printable(trace.label)}{of}: {words}"


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested.

    Parameters
    ----------
    unit : {"rating", "user"}
    delta : float, optional
        With which the losses per user hold, by composition; by default they are sums.
    asked : bool
        Whether it shows the requested budgets; the unit is then theirs.
    """

    unit: ComparableUnit
    delta: float | None = None
    asked: bool = False

    def value(self, setting: Setting) -> float | None:
        """Return a setting's place on the axis; None if it has none."""
        if self.asked:
            return setting.budget
        return setting.epsilon(self.unit) if self.delta is None else setting.composed

    @property
    def name(self) -> str:
        """What it counts."""
        return f"{'requested ' if self.asked else ''}{loss_per(self.unit)}"

    @property
    def label(self) -> str:
        """What is written below the axis."""
        most = ", largest of any user" if self.unit == "user" else ""
        at = "" if self.delta is None else f" at δ = {self.delta:g}"
        return f"{loss_per(self.unit)}{at}{', as requested' if self.asked else most}"


def draw_accuracy_against_epsilon(
    style: Style, settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis, looks: Looks
) -> Figure:
    """Draw one line per protocol, with error bars; protocols without privacy and floors are horizontal.

    Parameters
    ----------
    axis : EpsilonAxis
        Settings without a place on it are left out.
    """
    curves, references = _curves(settings, measure, axis), _references(settings, measure)
    floors = floor_lines(settings, measure, looks)
    style = tall_enough(style, len(curves) + len(references) + len(floors))
    figure, (ax,) = panels(style)
    ends = [_draw_curve(ax, curve, looks[curve.name]) for curve in curves]
    log_axis(
        ax, [loss for curve in curves for loss in curve.losses.tolist()] or [0.5, 2.0], ticks_at_values=True
    )
    right = ax.get_xlim()[1]
    for setting, mean in references:
        look = looks[setting.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        ends.append(PointLabel(right, mean, shortened(setting.name), look.colour))
    bars = [(curve.mean - curve.deviation, curve.mean + curve.deviation) for curve in curves]
    ranges = [float(end) for both in bars for end in np.concatenate(both)]
    flat = {shortened(setting.name): [mean] for setting, mean in references}
    flat |= {floor.name: [floor.value] for floor in floors}
    reached = {curve.label: curve.mean.tolist() for curve in curves}
    accuracy_axis(ax, style, measure, reached | flat, ranges)
    ends += draw_floors(ax, settings, measure, floors)
    axis_labels(ax, style, x=axis.label)
    show_on_hover(ax, _shown_by_epsilon(settings, measure, axis))
    named = {curve.name: curve.label for curve in curves}
    named |= {setting.name: shortened(setting.name) for setting, _ in references}
    handles = [legend_handle(label, looks[name]) for name, label in named.items()]
    _name_lines(ax, style, ends, trust_handles(looks), [*handles, *floor_handles(floors)])
    return figure


def _shown_by_epsilon(
    settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis
) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for setting in settings:
        place, mean = axis.value(setting), setting.mean(measure.column)
        if not setting.floor and place and mean is not None:
            yield place, mean, setting_in_words(setting, measure)


class _Curve(NamedTuple):
    """The accuracy of one protocol against epsilon: arrays of one entry per budget, by ascending epsilon."""

    name: str
    label: str
    losses: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def _curves(settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis) -> list[_Curve]:
    curves = []
    for name, points in by_protocol([setting for setting in settings if setting.floor is None]).items():
        known = [
            (loss, accuracy.mean, accuracy.deviation)
            for setting in points
            if (loss := axis.value(setting)) and (accuracy := setting.average(measure.column))
        ]
        if known:
            label = marked(name, points) if axis.asked else shortened(name)
            curves.append(_Curve(name, label, *np.array(sorted(known)).T))
    return curves


def _draw_curve(ax: Axes, curve: _Curve, look: Look) -> PointLabel:
    """Draw a curve with error bars, and return its end."""
    ax.errorbar(curve.losses, curve.mean, yerr=curve.deviation, elinewidth=1.1, **look.line())
    return PointLabel(float(curve.losses[-1]), float(curve.mean[-1]), curve.label, look.colour)


def _references(settings: Sequence[Setting], measure: Measure) -> list[tuple[Setting, float]]:
    return [
        (setting, mean)
        for setting in settings
        if setting.reference and (mean := setting.mean(measure.column)) is not None
    ]


def draw_accuracy_against_users(
    style: Style, courses: Sequence[Course], measure: Measure, looks: Looks
) -> Figure:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat nothing sent.

    Parameters
    ----------
    courses : sequence of Course
        At one budget, on ratings of one kind.
    """
    figure, (ax,) = panels(style)
    floor = _floor(courses, measure)
    ends = [PointLabel(floor[-1][0], floor[-1][1], NOTHING_SENT, INK)]
    ends += [_draw_course(ax, course, looks[course.name]) for course in courses]
    every = {shortened(each.name): [point.accuracy for point in each.points] for each in courses}
    log_axis(ax, [users for users, _ in floor], ticks_at_values=True)
    accuracy_axis(ax, style, measure, every | {NOTHING_SENT: [value for _, value in floor]})
    _mark(ax, courses, floor, measure)
    axis_labels(ax, style, x="users")
    show_on_hover(ax, _shown_by_users(courses, measure))
    rings = [_ring()] * any(course.crossing for course in courses)
    handles = [*trust_handles({course.name: looks[course.name] for course in courses}), *rings]
    lines = [legend_handle(shortened(course.name), looks[course.name]) for course in courses]
    _name_lines(ax, style, ends, handles, [*lines, _floor_handle()])
    return figure


def _draw_course(ax: Axes, course: Course, look: Look) -> PointLabel:
    """Draw a line with a marker for every number of users, and return its end."""
    users, reached = zip(*((point.users, point.accuracy) for point in course.points), strict=True)
    ax.plot(users, reached, **look.line())
    return PointLabel(users[-1], reached[-1], shortened(course.name), look.colour)


def _shown_by_users(courses: Sequence[Course], measure: Measure) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for point in (point for course in courses for point in course.points):
        words = f"{point.users:,.0f} users, {setting_in_words(point.setting, measure)}"
        yield point.users, point.accuracy, words


def _floor(courses: Sequence[Course], measure: Measure) -> list[tuple[float, float]]:
    """Return the numbers of users, ascending, with the accuracy of nothing sent."""
    sign = 1 if measure.lower_is_better else -1
    return sorted(
        {
            point.users: point.accuracy + sign * point.against.mean
            for course in courses
            for point in course.points
        }.items()
    )


def _mark(
    ax: Axes, courses: Sequence[Course], floor: Sequence[tuple[float, float]], measure: Measure
) -> None:
    """Draw the floor, shade what is worse, and ring the crossings, which lie on it."""
    users, reached = np.array(floor).T
    worst = ax.get_ylim()[1 if measure.lower_is_better else 0]
    low, high = ax.get_xlim()
    ax.fill_between(
        [low, *users, high],
        [reached[0], *reached, reached[-1]],
        worst,
        facecolor=RULE,
        alpha=0.4,
        linewidth=0,
        zorder=0,
    )
    ax.plot(users, reached, color=INK, linestyle=FLOOR_LINES[NOTHING_SENT][1], linewidth=1.1)
    crossings = [course.crossing for course in courses if course.crossing]
    ax.add_line(_ring(crossings, np.interp(np.log(crossings), np.log(users), reached).tolist()))


def _ring(x: Sequence[float] = (), y: Sequence[float] = ()) -> Line2D:
    """Return rings at some places; without any, what stands for them in a legend."""
    return Line2D(
        x,
        y,
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=1.2,
        linestyle="none",
        zorder=4,
        label="begins to beat nothing sent",
    )


def _floor_handle() -> Line2D:
    return Line2D([], [], color=INK, linestyle=FLOOR_LINES[NOTHING_SENT][1], label=NOTHING_SENT)
