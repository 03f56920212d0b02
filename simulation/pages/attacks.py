"""The section on attacks: what is recovered of what was said, beside epsilon, and what liars move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from simulation.analysis.attacks import AttackedResult, names_of
from simulation.analysis.vocabulary import DASH, grouped_by, loss, number
from simulation.pages.drawing import Plot, curve, entry, legend, log_axis, percent, titled
from simulation.pages.looks import DOTTED, MUTED, SERIES, SURFACE, Look, Looks, shortened, told_apart
from simulation.pages.page import Cell, Section, bullets, cell, rows_table
from simulation.storage.attacked import AttackSummary, Reached
from simulation.storage.columns import column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORDS = (
    "Epsilon bounds what anybody can learn; this is what attacks did learn. Beside each figure stands what "
    "the same attack reaches by what is public alone, with nothing sent, and what epsilon allows: what it "
    "exceeds once in a million under the proved losses, with what chance adds to so few decisions. Where no "
    "theorem says so of all data, there is no bound. Of targets that liars promote, the baseline is without "
    "liars."
)

_DIGITS = 3


def attack_section(lines: Sequence[AttackedResult], looks: Looks, notes: Sequence[str] = ()) -> Section:
    """Return the section on attacks, if there were any.

    ``notes``: what a reader of the figures must know.
    """
    title = "What an attacker learns, and what liars move"
    if not lines:
        return Section("attacks", title, ())
    several = len({(line.name, line.budget) for line in lines}) > 1
    plots = [*_plots(lines, looks), *_plots_of_liars(lines, looks)]
    content = _WORDS, plots, _compared(lines) if several else _of_one(lines[0]), bullets(notes)
    return Section("attacks", title, content)


def _titled(name: str) -> str:
    title = column(name).title
    return title[:1].upper() + title[1:]


def _of_one(line: AttackedResult) -> Markup:
    """Return a table with a line for each figure."""
    rows: list[Sequence[Cell]] = [
        (_titled(name), *(cell(figure, _DIGITS) for figure in _figures(reached)))
        for name, reached in line.reached.items()
    ]
    return rows_table("What attacks reached", ("figure", "reached", "nothing sent", "ε allows"), rows)


def _compared(lines: Sequence[AttackedResult]) -> Markup:
    """Return a table with a line for each protocol at each budget, and a column for each figure."""
    names = names_of(lines)
    rows: list[Sequence[Cell]] = [
        (line.name, cell(line.budget, loss), *(_beside(line.reached.get(name)) for name in names))
        for line in lines
    ]
    caption = "What attacks reached; small: with nothing sent, and what ε allows"
    return rows_table(caption, ("protocol", "ε", *map(_titled, names)), rows)


def _beside(reached: Reached | None) -> tuple[float | None, str]:
    """Return a figure, and small what it is judged by."""
    if reached is None:
        return None, DASH
    others = [(reached.baseline, ""), (reached.bound, "≤ ")]
    small = " · ".join(f"{sign}{number(each, _DIGITS)}" for each, sign in others if each is not None)
    return reached.value, Markup("{}<br><small>{}</small>").format(number(reached.value, _DIGITS), small)


Courses = Mapping[str, Sequence[AttackedResult]]
"""Protocols, and what attacks reached at their budgets, from low to high."""


def _plots(lines: Sequence[AttackedResult], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of what any protocol reaches at several budgets."""
    every = {name: _courses(name, lines) for name in names_of(lines) if name in AttackSummary.model_fields}
    drawn = {name: courses for name, courses in every.items() if courses}
    said = (
        f"{_titled(name)}, {key} at ε = {loss(line.budget)}: {number(line.reached[name].value, _DIGITS)}"
        for name, courses in drawn.items()
        for key, own in courses.items()
        for line in own
    )
    if drawn:
        yield Plot(
            "attacks-epsilon",
            "What attacks reached, by ε",
            "Lines: reached. Rings: what ε allows. Fine dots: with nothing sent.",
            "; ".join(said),
            [partial(_draw, name=name, courses=courses, looks=looks) for name, courses in drawn.items()],
            full_width=True,
        )


def _courses(name: str, lines: Sequence[AttackedResult]) -> Courses:
    """Return the lines of each protocol that a figure has at several budgets."""
    known = [line for line in lines if name in line.reached and line.reached[name].value is not None]
    of_budgets = grouped_by((line.name, line) for line in known if line.budget is not None)
    return {
        key: sorted(own, key=lambda line: line.budget or 0.0)
        for key, own in of_budgets.items()
        if len(own) > 1
    }


def _draw(ax: Axes, name: str, courses: Courses, looks: Looks) -> None:
    """Draw what is reached at each budget, and thinner what ε allows and what nothing sent reaches."""
    log_axis(ax.xaxis, [line.budget or np.nan for own in courses.values() for line in own], at_values=True)
    figures = {
        key: np.array([_figures(line.reached[name]) for line in own], dtype=np.float64)
        for key, own in courses.items()
    }
    every = np.concatenate([*figures.values()])
    if name.endswith("_rank"):
        log_axis(ax.yaxis, np.maximum(every[np.isfinite(every)], 1.0))
    else:
        low, high = np.nanmin(every), np.nanmax(every)
        margin = 0.07 * (high - low) or 0.5
        ax.set_ylim(low - margin, high + margin)
    handles = []
    for key, look in told_apart(courses, looks).items():
        budgets = [line.budget or np.nan for line in courses[key]]
        reached, baseline, allowed = figures[key].T
        marker = look.marker or "o"
        ax.plot(budgets, baseline, color=look.colour, linewidth=1.0, linestyle=DOTTED, alpha=0.7)
        ax.plot(budgets, allowed, color=look.colour, linestyle="none", marker=marker, **_RING)
        words = [
            f"{key}, ε = {loss(x)}: {number(y, _DIGITS)}"
            for x, y in zip(budgets, reached.tolist(), strict=True)
        ]
        shown = replace(look, marker=marker)
        handles.append(curve(ax, budgets, reached, shown, shortened(key), words))
    titled(ax, _titled(name), x="ε")
    ring = entry("ε allows", Look(MUTED, "o"), line=False, **_RING)
    legend(ax, [*handles, ring, entry("nothing sent", Look(MUTED, "", DOTTED))])


def _figures(reached: Reached) -> tuple[float | None, ...]:
    return reached.value, reached.baseline, reached.bound


_RING: Any = {"markersize": 9, "markerfacecolor": SURFACE}


def _plots_of_liars(lines: Sequence[AttackedResult], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of ranks by the share of liars, where several were measured."""
    courses = {line.name: course for line in lines if line.main and (course := line.ranks_by_liars)}
    said = (words for name, course in courses.items() for words in _ranks_in_words(name, course))
    budgets = {line.budget for line in lines if line.name in courses and line.main} - {None}
    at = f", at ε = {loss(budgets.pop())}" if len(budgets) == 1 else ""
    if courses:
        yield Plot(
            "attacks-liars",
            f"Rank of the targets, by the share of liars{at}",
            "Among the items that an honest user has not rated; 1 is the first of its list.",
            "; ".join(said),
            [partial(_draw_liars, courses=courses, looks=looks)],
        )


def _ranks_in_words(name: str, course: Sequence[tuple[float, float]]) -> list[str]:
    return [f"{name}, {100 * share:g} % liars: {number(rank, 1)}" for share, rank in course]


def _draw_liars(ax: Axes, courses: Mapping[str, Sequence[tuple[float, float]]], looks: Looks) -> None:
    places = np.concatenate([*courses.values()])
    log_axis(ax.yaxis, [1.0, *np.maximum(places[:, 1], 1.0)])
    handles = []
    alone = Look(SERIES[0], "o")
    for name, look in told_apart(courses, {name: looks.get(name, alone) for name in courses}).items():
        shares, ranks = np.array(courses[name]).T
        shown, words = replace(look, marker=look.marker or "o"), _ranks_in_words(name, courses[name])
        handles.append(curve(ax, shares, ranks, shown, shortened(name), words))
    percent(ax.xaxis)
    titled(ax, "Median rank", x="share of liars")
    legend(ax, handles)
