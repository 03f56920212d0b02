"""Accuracy of protocols against the number of users, with the crossings of nothing sent marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.floors import NOTHING_SENT
from simulation.analysis.measures import Measure
from simulation.analysis.populations import Course
from simulation.pages.figures.accuracy_axis import accuracy_axis
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.colours import INK, RULE, SURFACE
from simulation.pages.figures.hovering import show_on_hover
from simulation.pages.figures.labels import PointLabel, direct_labels, legend_below
from simulation.pages.figures.looks import FLOOR_LINES, Look, Looks, legend_handle, trust_handles
from simulation.pages.figures.panels import Style, axis_labels, panels, shortened
from simulation.pages.figures.point_words import setting_in_words


def draw_accuracy_against_users(
    style: Style, courses: Sequence[Course], measure: Measure, looks: Looks
) -> Figure:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat nothing sent.

    Parameters
    ----------
    style : Style
    courses : sequence of Course
        At one budget, on ratings of one kind.
    measure : Measure
    looks : mapping
        Of every protocol, by its name.
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
    show_on_hover(ax, _shown(courses, measure))
    rings = [_ring()] * any(course.crossing for course in courses)
    handles = [*trust_handles({course.name: looks[course.name] for course in courses}), *rings]
    if style.narrow:
        lines = [legend_handle(shortened(course.name), looks[course.name]) for course in courses]
        legend_below(figure, style, [*handles, *lines, _floor_handle()])
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


def _shown(courses: Sequence[Course], measure: Measure) -> Iterator[tuple[float, float, str]]:
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
