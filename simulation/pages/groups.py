"""The section on groups of users: who gains by a protocol, and who pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from simulation.analysis.groups import GroupLine
from simulation.analysis.vocabulary import DASH, grouped_by, loss, number, size
from simulation.pages.drawing import Panel, Plot, curve, entry, legend, percent, titled
from simulation.pages.looks import INK, MOST_NAMED, SURFACE, Look, Looks, shortened, told_apart
from simulation.pages.page import Cell, Section, cell, rows_table
from simulation.storage.summary import GroupSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WORDS = (
    "A user is worse off than alone if the errors on its test ratings are larger than on a device that sends "
    "and receives nothing. With few test ratings many are by luck: beside their share stands the share to be "
    "expected by chance if everybody in the group gained the same. Where p is small, there are more, and "
    "some pay. Popularity lift is by how much the first ten of the lists are more popular than what users "
    "have; coverage is the share of the catalogue in these lists."
)

_TABLE = Markup('<p class="all"><a href="groups.csv">groups.csv</a>: all protocols at all budgets</p>')

_OVERALL = "all"
"""What divides users into one group."""

_SMALL = 0.01
"""A probability below which more users are worse off than by chance."""


def groups_section(lines: Sequence[GroupLine], drawn: Sequence[GroupLine], looks: Looks) -> Section:
    """Return the section on groups, if there are any.

    ``drawn``: the lines of protocols, and at budgets, that the figure has room for.
    """
    title = "Who pays: groups of users"
    if not lines:
        return Section("groups", title, ())
    several = len({(line.name, line.epsilon) for line in lines}) > 1
    names = {line.name for line in drawn}
    content = (
        _WORDS,
        list(_plots(drawn, looks)),
        _overview([line for line in lines if line.name in names]) if several else "",
        _every_figure(drawn, several=several),
        _TABLE if several else "",
    )
    return Section("groups", title, content)


def _label(line: GroupLine) -> str:
    return line.name if line.epsilon is None else f"{line.name}, ε = {line.epsilon:g}"


def _accuracy(figures: GroupSummary) -> float | None:
    return figures.ndcg_at_10 if figures.rmse is None else figures.rmse


def _of_ratings(lines: Sequence[GroupLine]) -> bool:
    return any(line.figures.rmse is not None for line in lines)


def _in_words(figures: GroupSummary) -> str:
    if figures.worse is None or figures.worse_by_chance is None:
        return ""
    mark = "*" if figures.worse_p is not None and figures.worse_p < _SMALL else ""
    return f"{figures.worse:.0%}{mark} worse, {figures.worse_by_chance:.0%} by chance"


def _named(by: str, group: str) -> str:
    return group if by == _OVERALL else f"{by}: {group}"


def _overview(lines: Sequence[GroupLine]) -> Markup:
    """Return a table with a line for each group and a column for each protocol at each budget."""
    rated, labels = _of_ratings(lines), list(dict.fromkeys(map(_label, lines)))

    def reached(figures: GroupSummary | None) -> tuple[float | None, str]:
        if figures is None:
            return None, DASH
        written = number(_accuracy(figures), 3), _in_words(figures)
        return _accuracy(figures), Markup("{}<br><small>{}</small>").format(*written)

    rows: list[Sequence[Cell]] = []
    for (by, group), own in grouped_by(((line.by, line.figures.group), line) for line in lines).items():
        figures = {_label(line): line.figures for line in own}
        alone = [cell(own[0].figures.rmse_alone, 3)] * rated
        rows.append([_named(by, group), *alone, *(reached(figures.get(label)) for label in labels)])
    marked = f"; * is more than by chance (p < {_SMALL:g})" if rated else ""
    caption = f"{'RMSE' if rated else 'NDCG at 10'} of each group, and users worse off than alone{marked}"
    return rows_table(caption, ["group", *["alone"] * rated, *labels], rows)


_Written = tuple[str | tuple[str, str], str, int | Callable[[float], str]]
"""A heading, a figure of a group, and how it is written."""

_COUNTS: Sequence[_Written] = (("users", "users", 0), ("test ratings", "test_ratings", 0))
_RATED: Sequence[_Written] = (
    *(("RMSE", "rmse", 4), ("MAE", "mae", 4), ("RMSE alone", "rmse_alone", 4)),
    (("worse", "users"), "worse", "{:.1%}".format),
    (("by chance", "users"), "worse_by_chance", "{:.1%}".format),
    (("p", "of more than by chance"), "worse_p", "{:.2g}".format),
)
_LISTED: Sequence[_Written] = (("NDCG at 10", "ndcg_at_10", 4), ("recall at 20", "recall_at_20", 4))
_OTHERS: Sequence[_Written] = (
    ("popularity lift", "popularity_lift", 2),
    ("coverage", "coverage", "{:.1%}".format),
    (("bytes", "messages, per user"), "message_bytes", size),
    (("ε per rating", "mean"), "epsilon_per_rating", loss),
    (("ε per user", "mean"), "epsilon_per_user", loss),
)


def _every_figure(lines: Sequence[GroupLine], *, several: bool) -> Markup:
    """Return a table with all figures of every group."""
    shown = [*_COUNTS, *(_RATED if _of_ratings(lines) else _LISTED), *_OTHERS]
    rows: list[Sequence[Cell]] = [
        [
            *([line.name, cell(line.epsilon, loss)] if several else ()),
            _named(line.by, line.figures.group),
            *(cell(getattr(line.figures, name), written) for _, name, written in shown),
        ]
        for line in lines
    ]
    headings = [*(["protocol", "ε"] if several else ()), "group", *(heading for heading, *_ in shown)]
    return rows_table("Every figure of every group", headings, rows)


_LETTERS = 56
"""For which there is room below a panel."""


def _plots(lines: Sequence[GroupLine], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of what each group reaches, and of who is worse off than alone."""
    divided = grouped_by((line.by, line) for line in lines if line.by != _OVERALL)
    said = (
        f"{_label(line)}, {_named(line.by, line.figures.group)}: "
        + ", ".join(filter(None, (number(_accuracy(line.figures), 3), _in_words(line.figures))))
        for line in lines
    )
    if divided:
        yield Plot(
            "accuracy-by-group",
            "Accuracy by group, and users worse off than alone",
            "Rings: the share to be expected by chance if everybody in a group gained the same."
            if _of_ratings(lines)
            else "The first ten of the lists.",
            "; ".join(said),
            [panel for by, own in divided.items() for panel in _panels(by, own, looks)],
            full_width=True,
        )


def _panels(by: str, lines: Sequence[GroupLine], looks: Looks) -> list[Panel]:
    """Return the panels of what divides the users: accuracy, and who is worse off or popularity lift."""
    protocols = dict(list(grouped_by((_label(line), line) for line in lines).items())[:MOST_NAMED])
    draw = partial(_draw, by=by, protocols=protocols, looks=looks)
    if not _of_ratings(lines):
        return [
            partial(draw, title="NDCG at 10 (higher is better)", name="ndcg_at_10"),
            partial(draw, title="Popularity lift", name="popularity_lift"),
        ]
    return [
        partial(draw, title="RMSE (lower is better)", name="rmse", beside="rmse_alone"),
        partial(draw, title="Users worse off than alone", name="worse", beside="worse_by_chance"),
    ]


def _draw(
    ax: Axes, title: str, name: str, by: str, protocols: Mapping[str, Sequence[GroupLine]], looks: Looks,
    beside: str = "",
) -> None:  # fmt: skip
    """Draw a figure of each group under each protocol; beside it what chance alone does, or no protocol."""
    groups = list(dict.fromkeys(line.figures.group for own in protocols.values() for line in own))
    places, shares = np.arange(len(groups)), name == "worse"

    def heights(lines: Sequence[GroupLine], figure: str) -> Any:
        values = {line.figures.group: getattr(line.figures, figure) for line in lines}
        return np.array([np.nan if values.get(group) is None else values[group] for group in groups])

    handles = []
    apart = told_apart(protocols, {label: looks[own[0].name] for label, own in protocols.items()})
    for place, (label, own) in enumerate(protocols.items()):
        reached, look = heights(own, name), apart[label]
        across = places + 0.5 * ((place + 0.5) / len(protocols) - 0.5)
        if shares:
            ring: Any = {"linestyle": "none", "marker": "o", "markerfacecolor": SURFACE}
            ax.plot(across, heights(own, beside), color=look.colour, **ring)
        words = [
            f"{label}, {_named(by, group)}: " + (f"{height:.1%}" if shares else f"{height:.3f}")
            for group, height in zip(groups, reached, strict=True)
        ]
        shown = Look(look.colour, "o", look.dashes)
        handles.append(curve(ax, across, reached, shown, shortened(label, 40), words))
    if beside and not shares:
        every = [line for own in protocols.values() for line in own]
        ax.plot(places, heights(every, beside), color=INK, linewidth=1.2)
        handles.append(entry("alone", Look(INK)))
    if shares:
        ax.set_ylim(bottom=0)
        percent(ax.yaxis)
    names = [shortened(group, 14) for group in groups]
    step = math.ceil(len(groups) * (max(map(len, names)) + 3) / _LETTERS)
    ax.set_xticks(places[::step], names[::step])
    titled(ax, title, x=by)
    legend(ax, handles, columns=1 if max(map(len, protocols)) > 20 else 2)
