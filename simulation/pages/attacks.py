"""The section on attacks: what is recovered of what was said, beside epsilon, and what liars move."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

import numpy as np
from markupsafe import Markup

from simulation.analysis.attacks import AttackedResult, names_of
from simulation.analysis.columns import figure_column, free_column, text_column, written_column
from simulation.analysis.vocabulary import DASH, grouped_by, loss, number
from simulation.pages.figures.marks import Axis, Line, log_axis, plain_axis
from simulation.pages.figures.panels import (
    MUTED,
    SERIES,
    SURFACE,
    Entry,
    Look,
    Looks,
    Panel,
    chart,
    shortened,
    told_apart,
)
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Section, figures, paragraph, table
from simulation.storage.attacked import AttackSummary, Reached
from simulation.storage.column import Column
from simulation.storage.columns import column

_WORDS = (
    "Epsilon bounds what anybody can learn; this is what attacks did learn. Beside each figure stands what "
    "the same attack reaches by what is public alone, with nothing sent, and what epsilon allows: what it "
    "exceeds once in a million under the proved losses, with what chance adds to so few decisions. Where no "
    "theorem says so of all data, there is no bound. Of targets that liars promote, the baseline is without "
    "liars."
)

_DIGITS = 3

_RANKS = "_rank"
"""How the names of figures end that are ranks, which are drawn on a logarithmic axis."""


def attack_sections(
    lines: Sequence[AttackedResult], looks: Looks, draw: Draw, notes: Sequence[str] = ()
) -> list[Section]:
    """Return the section on attacks, if there were any.

    ``notes``: what a reader of the figures must know.
    """
    if not lines:
        return []
    several = len({(line.name, line.budget) for line in lines}) > 1
    said = Markup("").join(Markup("<li>{}</li>").format(note) for note in notes)
    drawn = [draw(plot) for plot in (*_plots(lines, looks), *_of_liars(lines, looks))]
    content = (
        paragraph(_WORDS),
        *([figures(drawn)] if drawn else []),
        _compared(lines) if several else _of_one(lines[0]),
        *([Markup("<ul>{}</ul>").format(said)] if notes else []),
    )
    return [Section("attacks", "What an attacker learns, and what liars move", content)]


def _titled(name: str) -> str:
    title = column(name).title
    return title[:1].upper() + title[1:]


def _of_one(line: AttackedResult) -> Markup:
    """Return a table with a line for each figure."""

    def held(title: str, key: str) -> Column[str]:
        return figure_column(title, "", lambda name: getattr(line.reached[name], key), _DIGITS)

    columns: list[Column[str]] = [
        text_column("figure", _titled),
        held("reached", "value"),
        held("nothing sent", "baseline"),
        held("ε allows", "bound"),
    ]
    return table("What attacks reached", columns, list(line.reached))


def _compared(lines: Sequence[AttackedResult]) -> Markup:
    """Return a table with a line for each protocol at each budget, and a column for each figure."""

    def of(name: str) -> Column[AttackedResult]:
        def value(line: AttackedResult) -> float | None:
            return line.reached[name].value if name in line.reached else None

        def text(line: AttackedResult) -> str:
            return _beside(line.reached[name]) if name in line.reached else DASH

        return free_column(_titled(name), "", value, text)

    columns: list[Column[AttackedResult]] = [
        text_column("protocol", attrgetter("name")),
        written_column("ε", attrgetter("budget"), loss),
        *map(of, names_of(lines)),
    ]
    return table("What attacks reached; small: with nothing sent, and what ε allows", columns, lines)


def _beside(reached: Reached) -> str:
    """Return a figure, and small what it is judged by."""
    others = [(reached.baseline, ""), (reached.bound, "≤ ")]
    small = " · ".join(f"{sign}{number(each, _DIGITS)}" for each, sign in others if each is not None)
    return Markup("{}<br><small>{}</small>").format(number(reached.value, _DIGITS), small)


def _plots(lines: Sequence[AttackedResult], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of what any protocol reaches at several budgets."""
    every = {name: _courses(name, lines) for name in names_of(lines) if name in AttackSummary.declared()}
    drawn = {name: courses for name, courses in every.items() if courses}
    if not drawn:
        return
    said = (
        f"{_titled(name)}, {key} at ε = {loss(line.budget)}: {number(line.reached[name].value, _DIGITS)}"
        for name, courses in drawn.items()
        for key, own in courses.items()
        for line in own
    )
    yield Plot(
        "attacks-epsilon",
        "What attacks reached, by ε",
        "Lines: reached. Rings: what ε allows. Fine dots: with nothing sent.",
        "; ".join(said),
        lambda: [_panel(name, courses, looks) for name, courses in drawn.items()],
        full_width=True,
    )


def _courses(name: str, lines: Sequence[AttackedResult]) -> dict[str, list[AttackedResult]]:
    """Return the lines of each protocol that a figure has at several budgets."""
    known = [line for line in lines if name in line.reached and line.reached[name].value is not None]
    of_budgets = grouped_by((line.name, line) for line in known if line.budget is not None)
    return {key: own for key, own in of_budgets.items() if len(own) > 1}


def _panel(name: str, courses: dict[str, list[AttackedResult]], looks: Looks) -> Panel:
    apart = told_apart(courses, looks)
    curves = [
        curve
        for key, own in courses.items()
        for curve in _curves(name, key, sorted(own, key=lambda line: line.budget or 0.0), apart[key])
    ]
    heights = np.concatenate([np.ravel(curve.y) for curve in curves]).astype(np.float64)
    known = heights[np.isfinite(heights)]
    budgets = [line.budget for line in chain(*courses.values()) if line.budget is not None]
    x = log_axis(budgets, "ε", at_values=True)
    allowed = Entry("ε allows", MUTED, "o", None, hollow=True)
    legend = [allowed, Entry("nothing sent", MUTED, dashes=_QUIET)]
    return chart(_titled(name), x, _height(name, known.tolist()), curves, legend=legend)


def _of_liars(lines: Sequence[AttackedResult], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of ranks by the share of liars, where several were measured."""
    courses = {line.name: course for line in lines if line.main and (course := line.ranks_by_liars)}
    if not courses:
        return
    said = (
        f"{name}, {100 * share:g} % liars: {number(rank, 1)}"
        for name, course in courses.items()
        for share, rank in course
    )
    budgets = {line.budget for line in lines if line.name in courses and line.main}
    known = [loss(budget) for budget in budgets if budget is not None]
    yield Plot(
        "attacks-liars",
        "Rank of the targets, by the share of liars" + (f", at ε = {known[0]}" if len(known) == 1 else ""),
        "Among the items that an honest user has not rated; 1 is the first of its list.",
        "; ".join(said),
        lambda: [_liars_panel(courses, looks)],
    )


def _liars_panel(courses: dict[str, list[tuple[float, float]]], looks: Looks) -> Panel:
    apart = told_apart(courses, {name: looks.get(name, _ALONE) for name in courses})
    curves, ends = [], []
    for name, course in courses.items():
        shares, ranks = zip(*course, strict=True)
        words = [f"{name}, {100 * share:g} % liars: {number(rank, 1)}" for share, rank in course]
        look, mark = apart[name], apart[name].marker or "o"
        curves.append(Line(shares, ranks, look.colour, 1.7, look.dashes, mark, words=words))
        ends.append(Entry(shortened(name), look.colour, mark, look.dashes, ranks[-1]))
    places = [place for course in courses.values() for place in course]
    x = plain_axis(0.0, max(share for share, _ in places), "share of liars", pad=0.04, percent=True)
    y = log_axis([1.0, *(max(rank, 1.0) for _, rank in places)], grid=True)
    height = max(200.0, _END * len(ends))
    return replace(chart("Median rank", x, y, curves, height=height), ends=ends)


_END = 15.0
"""Height of a name at the end of a line."""

_ALONE = Look(SERIES[0], "o")
"""The look of a run by itself."""

_QUIET = "1 2.5"
"""Dashes of baselines."""


def _height(name: str, values: Sequence[float]) -> Axis:
    if name.endswith(_RANKS):
        return log_axis([max(value, 1.0) for value in values], grid=True)
    return plain_axis(min(values), max(values), pad=0.07, grid=True)


def _curves(name: str, label: str, own: Sequence[AttackedResult], look: Look) -> Iterator[Line]:
    """Yield what is reached at each budget, and thinner what ε allows and what nothing sent reaches."""
    held = [(line.budget, line.reached[name]) for line in own if line.budget is not None]
    budgets = [budget for budget, _ in held]

    def heights(key: Callable[[Reached], float | None]) -> list[float]:
        return [np.nan if (value := key(reached)) is None else value for _, reached in held]

    reached = heights(attrgetter("value"))
    words = [f"{label}, ε = {loss(x)}: {number(y, _DIGITS)}" for x, y in zip(budgets, reached, strict=True)]
    allowed = heights(attrgetter("bound"))
    yield Line(budgets, heights(attrgetter("baseline")), look.colour, 1.0, _QUIET, opacity=0.7)
    yield Line(budgets, allowed, look.colour, 0, marker=look.marker or "o", radius=4.5, hollow=SURFACE)
    yield Line(budgets, reached, look.colour, 1.7, look.dashes, look.marker or "o", label=label, words=words)
