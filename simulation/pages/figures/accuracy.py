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

from dprec.accounting import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.populations import Course
from simulation.analysis.protocol_results import ProtocolResult, by_protocol, frontier
from simulation.analysis.vocabulary import Metric, loss, loss_per, size
from simulation.pages.figures.axes import accuracy_axis, log_axis, means
from simulation.pages.figures.labels import (
    PointLabel,
    direct_labels,
    label_points,
    legend_below,
    result_in_words,
    show_on_hover,
    tall_enough,
)
from simulation.pages.figures.looks import (
    BASELINE_LINES,
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
    results : sequence of ProtocolResult
        The baselines among them are drawn.
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
    baselines = baseline_lines(results, metric, looks)
    reached = {shortened(trace.label): trace.accuracy.tolist() for trace in traces}
    accuracy_axis(ax, style, metric, reached | {baseline.name: [baseline.value] for baseline in baselines})
    ends += draw_baselines(ax, results, metric, baselines)
    axis_labels(ax, style, x="bytes per user so far, both directions")
    show_on_hover(ax, (place for trace in traces for place in _rounds_in_words(trace, metric)))
    handles = [legend_handle(shortened(trace.label), looks[trace.name]) for trace in traces]
    below = [*handles, *baseline_handles(baselines)]
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


def _rounds_in_words(trace: Trace, metric: Metric) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every evaluated round."""
    rounds = zip(trace.bytes_per_user.tolist(), trace.accuracy.tolist(), strict=True)
    for number, (spent, reached) in enumerate(rounds, start=1):
        of = "" if trace.accuracy.size == 1 else f", evaluated round {number} of {trace.accuracy.size}"
        words = f"{metric.label} {reached:.{metric.digits}f}, {size(spent)} per user so far"
        yield spent, reached, f"{printable(trace.label)}{of}: {words}"


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested."""

    unit: ComparableUnit
    delta: float | None = None
    """With which the losses per user hold, by composition; by default they are sums."""
    asked: bool = False
    """Whether it shows the requested budgets; the unit is then theirs."""

    def value(self, result: ProtocolResult) -> float | None:
        """Return a result's value on the axis; None if it has none."""
        if self.asked:
            return result.budget
        return result.epsilon(self.unit) if self.delta is None else result.composed

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
    style: Style, results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks
) -> Figure:
    """Draw one line per protocol, with error bars; protocols without privacy and baselines are horizontal.

    Parameters
    ----------
    axis : EpsilonAxis
        Results without a value on it are left out.
    """
    curves, references = _curves(results, metric, axis), _references(results, metric)
    baselines = baseline_lines(results, metric, looks)
    style = tall_enough(style, len(curves) + len(references) + len(baselines))
    figure, (ax,) = panels(style)
    ends = [_draw_curve(ax, curve, looks[curve.name]) for curve in curves]
    log_axis(
        ax, [loss for curve in curves for loss in curve.losses.tolist()] or [0.5, 2.0], ticks_at_values=True
    )
    right = ax.get_xlim()[1]
    for result, mean in references:
        look = looks[result.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        ends.append(PointLabel(right, mean, shortened(result.name), look.colour))
    bars = [(curve.mean - curve.deviation, curve.mean + curve.deviation) for curve in curves]
    ranges = [float(end) for both in bars for end in np.concatenate(both)]
    flat = {shortened(result.name): [mean] for result, mean in references}
    flat |= {baseline.name: [baseline.value] for baseline in baselines}
    reached = {curve.label: curve.mean.tolist() for curve in curves}
    accuracy_axis(ax, style, metric, reached | flat, ranges)
    ends += draw_baselines(ax, results, metric, baselines)
    axis_labels(ax, style, x=axis.label)
    show_on_hover(ax, _shown_by_epsilon(results, metric, axis))
    named = {curve.name: curve.label for curve in curves}
    named |= {result.name: shortened(result.name) for result, _ in references}
    handles = [legend_handle(label, looks[name]) for name, label in named.items()]
    _name_lines(ax, style, ends, trust_handles(looks), [*handles, *baseline_handles(baselines)])
    return figure


def _shown_by_epsilon(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis
) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for result in results:
        place, mean = axis.value(result), result.mean(metric.column)
        if not result.baseline and place and mean is not None:
            yield place, mean, result_in_words(result, metric)


class _Curve(NamedTuple):
    """The accuracy of one protocol against epsilon: arrays of one entry per budget, by ascending epsilon."""

    name: str
    label: str
    losses: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def _curves(results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis) -> list[_Curve]:
    curves = []
    for name, points in by_protocol([result for result in results if result.baseline is None]).items():
        known = [
            (loss, accuracy.mean, accuracy.deviation)
            for result in points
            if (loss := axis.value(result)) and (accuracy := result.average(metric.column))
        ]
        if known:
            label = marked(name, points) if axis.asked else shortened(name)
            curves.append(_Curve(name, label, *np.array(sorted(known)).T))
    return curves


def _draw_curve(ax: Axes, curve: _Curve, look: Look) -> PointLabel:
    """Draw a curve with error bars, and return its end."""
    ax.errorbar(curve.losses, curve.mean, yerr=curve.deviation, elinewidth=1.1, **look.line())
    return PointLabel(float(curve.losses[-1]), float(curve.mean[-1]), curve.label, look.colour)


def _references(results: Sequence[ProtocolResult], metric: Metric) -> list[tuple[ProtocolResult, float]]:
    return [
        (result, mean)
        for result in results
        if result.reference and (mean := result.mean(metric.column)) is not None
    ]


def draw_accuracy_against_users(
    style: Style, courses: Sequence[Course], metric: Metric, looks: Looks
) -> Figure:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat nothing sent.

    Parameters
    ----------
    courses : sequence of Course
        At one budget, on ratings of one kind.
    """
    figure, (ax,) = panels(style)
    baseline = _baseline(courses, metric)
    ends = [PointLabel(baseline[-1][0], baseline[-1][1], NOTHING_SENT, INK)]
    ends += [_draw_course(ax, course, looks[course.name]) for course in courses]
    every = {shortened(each.name): [point.accuracy for point in each.points] for each in courses}
    log_axis(ax, [users for users, _ in baseline], ticks_at_values=True)
    accuracy_axis(ax, style, metric, every | {NOTHING_SENT: [value for _, value in baseline]})
    _mark(ax, courses, baseline, metric)
    axis_labels(ax, style, x="users")
    show_on_hover(ax, _shown_by_users(courses, metric))
    rings = [_ring()] * any(course.crossing for course in courses)
    handles = [*trust_handles({course.name: looks[course.name] for course in courses}), *rings]
    lines = [legend_handle(shortened(course.name), looks[course.name]) for course in courses]
    _name_lines(ax, style, ends, handles, [*lines, _baseline_handle()])
    return figure


def _draw_course(ax: Axes, course: Course, look: Look) -> PointLabel:
    """Draw a line with a marker for every number of users, and return its end."""
    users, reached = zip(*((point.users, point.accuracy) for point in course.points), strict=True)
    ax.plot(users, reached, **look.line())
    return PointLabel(users[-1], reached[-1], shortened(course.name), look.colour)


def _shown_by_users(courses: Sequence[Course], metric: Metric) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for point in (point for course in courses for point in course.points):
        words = f"{point.users:,.0f} users, {result_in_words(point.result, metric)}"
        yield point.users, point.accuracy, words


def _baseline(courses: Sequence[Course], metric: Metric) -> list[tuple[float, float]]:
    """Return the numbers of users, ascending, with the accuracy of nothing sent."""
    sign = 1 if metric.lower_is_better else -1
    return sorted(
        {
            point.users: point.accuracy + sign * point.against.mean
            for course in courses
            for point in course.points
        }.items()
    )


def _mark(
    ax: Axes, courses: Sequence[Course], baseline: Sequence[tuple[float, float]], metric: Metric
) -> None:
    """Draw the baseline, shade what is worse, and ring the crossings, which lie on it."""
    users, reached = np.array(baseline).T
    worst = ax.get_ylim()[1 if metric.lower_is_better else 0]
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
    ax.plot(users, reached, color=INK, linestyle=BASELINE_LINES[NOTHING_SENT][1], linewidth=1.1)
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


def _baseline_handle() -> Line2D:
    return Line2D([], [], color=INK, linestyle=BASELINE_LINES[NOTHING_SENT][1], label=NOTHING_SENT)
