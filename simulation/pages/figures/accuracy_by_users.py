"""Accuracy of protocols against the number of users, with the crossings of nothing sent marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.populations import Course
from simulation.analysis.vocabulary import Metric
from simulation.pages.figures.axes import accuracy_axis, log_axis
from simulation.pages.figures.labels import (
    PointLabel,
    direct_labels,
    legend_below,
    result_in_words,
    show_on_hover,
)
from simulation.pages.figures.looks import BASELINE_LINES, Look, Looks, legend_handle, trust_handles
from simulation.pages.figures.panels import INK, RULE, SURFACE, Style, axis_labels, panels, shortened


def draw_accuracy_against_users(
    style: Style, courses: Sequence[Course], metric: Metric, looks: Looks
) -> Figure:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat nothing sent.

    Parameters
    ----------
    courses : sequence of Course
        At one budget, on ratings of one kind.
    looks : mapping
        Of every protocol, by its name.
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
    show_on_hover(ax, _shown(courses, metric))
    rings = [_ring()] * any(course.crossing for course in courses)
    handles = [*trust_handles({course.name: looks[course.name] for course in courses}), *rings]
    if style.narrow:
        lines = [legend_handle(shortened(course.name), looks[course.name]) for course in courses]
        legend_below(figure, style, [*handles, *lines, _baseline_handle()])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, handles)
    return figure


def _draw_course(ax: Axes, course: Course, look: Look) -> PointLabel:
    """Draw a line with a marker for every number of users, and return its end."""
    users, reached = zip(*((point.users, point.accuracy) for point in course.points), strict=True)
    ax.plot(
        users,
        reached,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dashes,
        linewidth=1.6,
        markersize=6,
        markeredgecolor=SURFACE,
        markeredgewidth=0.6,
    )
    return PointLabel(users[-1], reached[-1], shortened(course.name), look.colour)


def _shown(courses: Sequence[Course], metric: Metric) -> Iterator[tuple[float, float, str]]:
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
