"""The section on attacks: what is recovered of what was said, beside epsilon, and what liars move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from simulation.analysis.columns import figure_column, text_column
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import DASH, grouped_by, loss, number
from simulation.pages.drawing import Plot, curve, entry, legend, log_axis, titled
from simulation.pages.looks import DOTTED, MUTED, SURFACE, Look, Looks, shortened, told_apart
from simulation.pages.page import Section, bullets, table
from simulation.storage.attacked import AttackSummary, Reached
from simulation.storage.column import Column
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


@dataclass(frozen=True)
class Attacked:
    """A protocol at a budget, and what attacks on it have reached."""

    name: str
    budget: float | None
    """The epsilon that it was given; None without privacy, or for a run by itself."""
    reached: Mapping[str, Reached]
    """By the name of the figure."""


def attacks_on(results: Sequence[ProtocolResult]) -> list[Attacked]:
    """Return what attacks on the results of a comparison have reached: means over folds and seeds."""
    attacked = []
    for result in results:
        columns = dict.fromkeys(name for row in result.rows for name in row)
        stems = [name.removesuffix("_baseline") for name in columns if name.endswith("_baseline")]
        reached = {
            name: Reached(value=own[0], baseline=own[1], bound=own[2])
            for name in stems
            if (own := [result.mean(f"{name}{end}") for end in ("", "_baseline", "_bound")]) != [None] * 3
        }
        attacked += [Attacked(result.name, result.budget, reached)] if reached else []
    return attacked


def attack_section(lines: Sequence[Attacked], looks: Looks, notes: Sequence[str] = ()) -> Section:
    """Return the section on attacks, if there were any.

    ``notes``: what a reader of the figures must know.
    """
    names = list(dict.fromkeys(name for line in lines for name in line.reached))
    if len({(line.name, line.budget) for line in lines}) > 1:
        caption = "What attacks reached; small: with nothing sent, and what ε allows"
        columns = [
            text_column("protocol", attrgetter("name")),
            figure_column("ε", "", attrgetter("budget"), loss),
        ]
        shown = table(caption, [*columns, *map(_column, names)], lines)
    else:
        judged = (("reached", "value"), ("nothing sent", "baseline"), ("ε allows", "bound"))
        figures = [figure_column(title, "", attrgetter(f"reached.{key}"), _DIGITS) for title, key in judged]
        every = [_Figure(_titled(name), line.reached[name]) for line in lines for name in line.reached]
        shown = table("What attacks reached", [text_column("figure", attrgetter("title")), *figures], every)
    content = (_WORDS, _plot(names, lines, looks), shown, bullets(notes)) if lines else ()
    return Section("attacks", "What an attacker learns, and what liars move", content)


@dataclass(frozen=True)
class _Figure:
    title: str
    reached: Reached


def _titled(name: str) -> str:
    title = column(name).title
    return title[:1].upper() + title[1:]


def _column(name: str) -> Column[Attacked]:
    """Return the column of a figure, with small what it is judged by."""

    def text(line: Attacked) -> str:
        if (reached := line.reached.get(name)) is None:
            return DASH
        others = [(reached.baseline, ""), (reached.bound, "≤ ")]
        small = " · ".join(f"{sign}{number(each, _DIGITS)}" for each, sign in others if each is not None)
        return Markup("{}<br><small>{}</small>").format(number(reached.value, _DIGITS), small)

    def value(line: Attacked) -> float | None:
        return line.reached[name].value if name in line.reached else None

    return Column(_titled(name), value=value, text=text, holds=float)


def _plot(names: Sequence[str], lines: Sequence[Attacked], looks: Looks) -> Plot | None:
    """Return the figure of what any protocol reaches at several budgets; None if none does.

    Of several figures of one attack, it has the first.
    """
    drawn: dict[str, tuple[str, Mapping[str, Sequence[Attacked]]]] = {}
    for name in names:
        known = (
            (line.name, line)
            for line in sorted(lines, key=lambda line: line.budget or 0.0)
            if line.budget is not None and name in line.reached and line.reached[name].value is not None
        )
        courses = {key: own for key, own in grouped_by(known).items() if len(own) > 1}
        if courses and name in AttackSummary.model_fields:
            drawn.setdefault(name.partition("_")[0], (name, courses))
    if not drawn:
        return None
    return Plot(
        "attacks-epsilon",
        "What attacks reached, by ε",
        "Lines: reached. Rings: what ε allows. Fine dots: with nothing sent.",
        f"{', '.join(_titled(name) for name, _ in drawn.values())}, by ε; the table below has every figure.",
        [partial(_draw, name=name, courses=courses, looks=looks) for name, courses in drawn.values()],
        full_width=True,
    )


_RING: Any = {"markersize": 9, "markerfacecolor": SURFACE}


def _draw(ax: Axes, name: str, courses: Mapping[str, Sequence[Attacked]], looks: Looks) -> None:
    """Draw what is reached at each budget, and thinner what ε allows and what nothing sent reaches."""
    log_axis(ax.xaxis, [line.budget or np.nan for own in courses.values() for line in own], at_values=True)
    figures = {
        key: np.array(
            [(own.value, own.baseline, own.bound) for own in (line.reached[name] for line in lines)],
            dtype=np.float64,
        )
        for key, lines in courses.items()
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
        shown = replace(look, marker=look.marker or "o")
        ax.plot(budgets, baseline, color=look.colour, linewidth=1.0, linestyle=DOTTED, alpha=0.7)
        ax.plot(budgets, allowed, color=look.colour, linestyle="none", marker=shown.marker, **_RING)
        words = [
            f"{key}, ε = {loss(x)}: {number(y, _DIGITS)}"
            for x, y in zip(budgets, reached.tolist(), strict=True)
        ]
        handles.append(curve(ax, budgets, reached, shown, shortened(key), words))
    titled(ax, _titled(name), x="ε")
    ring = entry("ε allows", Look(MUTED, "o"), line=False, **_RING)
    legend(ax, [*handles, ring, entry("nothing sent", Look(MUTED, "", DOTTED))])
