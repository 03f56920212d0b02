"""The section on groups of users: who gains by a protocol, and who pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from simulation.analysis.columns import figure_column, text_column
from simulation.analysis.groups import GroupLine
from simulation.analysis.vocabulary import grouped_by, loss, size
from simulation.pages.drawing import Panel, Plot, curve, entry, legend, percent, titled
from simulation.pages.looks import INK, MOST_NAMED, SURFACE, Look, Looks, shortened, told_apart
from simulation.pages.page import Section, table

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

_Figure = tuple[str, str, str, int | Callable[[float], str]]
"""A heading, its unit, a figure of a group, and how it is written."""

_COUNTS: Sequence[_Figure] = (("users", "", "users", 0), ("test ratings", "", "test_ratings", 0))
_RATED: Sequence[_Figure] = (
    *(("RMSE", "", "rmse", 4), ("MAE", "", "mae", 4), ("RMSE alone", "", "rmse_alone", 4)),
    ("worse", "users", "worse", "{:.1%}".format),
    ("by chance", "users", "worse_by_chance", "{:.1%}".format),
    ("p", "of more than by chance", "worse_p", "{:.2g}".format),
)
_LISTED: Sequence[_Figure] = (("NDCG at 10", "", "ndcg_at_10", 4), ("recall at 20", "", "recall_at_20", 4))
_OTHERS: Sequence[_Figure] = (
    ("popularity lift", "", "popularity_lift", 2),
    ("coverage", "", "coverage", "{:.1%}".format),
    ("bytes", "messages, per user", "message_bytes", size),
    ("ε per rating", "mean", "epsilon_per_rating", loss),
    ("ε per user", "mean", "epsilon_per_user", loss),
)


def groups_section(lines: Sequence[GroupLine], drawn: Sequence[GroupLine], looks: Looks) -> Section:
    """Return the section on groups, if there are any.

    ``drawn``: the lines of protocols, and at budgets, that the figure has room for.
    """
    several = len({(line.name, line.epsilon) for line in lines}) > 1
    rated = any(line.figures.rmse is not None for line in drawn)
    columns = [
        *([text_column("protocol", attrgetter("name"))] if several else ()),
        *([figure_column("ε", "", attrgetter("epsilon"), loss)] if several else ()),
        text_column("group", lambda line: _named(line.by, line.figures.group)),
        *(
            figure_column(title, unit, attrgetter(f"figures.{name}"), written)
            for title, unit, name, written in (*_COUNTS, *(_RATED if rated else _LISTED), *_OTHERS)
        ),
    ]
    divided = grouped_by((line.by, line) for line in drawn if line.by != _OVERALL)
    plot = Plot(
        "accuracy-by-group",
        "Accuracy by group, and users worse off than alone",
        "Rings: the share to be expected by chance if everybody in a group gained the same."
        if rated
        else "The first ten of the lists.",
        f"Accuracy of groups by {', '.join(divided)}; the table below has every figure.",
        [panel for by, own in divided.items() for panel in _panels(by, own, looks, rated=rated)],
        full_width=True,
    )
    shown = table("Every figure of every group", columns, drawn)
    content = (_WORDS, plot if divided else None, shown, _TABLE if several else "")
    return Section("groups", "Who pays: groups of users", content if lines else ())


def _named(by: str, group: str) -> str:
    return group if by == _OVERALL else f"{by}: {group}"


def _panels(by: str, lines: Sequence[GroupLine], looks: Looks, *, rated: bool) -> list[Panel]:
    """Return the panels of what divides the users: accuracy, and who is worse off or popularity lift."""
    labelled = (
        (line.name if line.epsilon is None else f"{line.name}, ε = {line.epsilon:g}", line) for line in lines
    )
    protocols = dict(list(grouped_by(labelled).items())[:MOST_NAMED])
    draw = partial(_draw, by=by, protocols=protocols, looks=looks)
    if not rated:
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
    apart = told_apart(protocols, {label: looks[own[0].name] for label, own in protocols.items()})
    handles = []
    for place, (label, own) in enumerate(protocols.items()):
        figures = {line.figures.group: line.figures for line in own}
        reached, other = (
            np.array([getattr(figures.get(group), each, None) for group in groups], dtype=np.float64)
            for each in (name, beside or name)
        )
        across, look = places + 0.5 * ((place + 0.5) / len(protocols) - 0.5), apart[label]
        if shares:
            ring: Any = {"linestyle": "none", "marker": "o", "markerfacecolor": SURFACE}
            ax.plot(across, other, color=look.colour, **ring)
        elif beside and not place:
            ax.plot(places, other, color=INK, linewidth=1.2)
        words = [
            f"{label}, {_named(by, group)}: " + (f"{height:.1%}" if shares else f"{height:.3f}")
            for group, height in zip(groups, reached, strict=True)
        ]
        shown = Look(look.colour, "o", look.dashes)
        handles.append(curve(ax, across, reached, shown, shortened(label, 40), words))
    if shares:
        ax.set_ylim(bottom=0)
        percent(ax.yaxis)
    elif beside:
        handles.append(entry("alone", Look(INK)))
    names = [shortened(group, 14) for group in groups]
    step = math.ceil(len(groups) * (max(map(len, names)) + 3) / _LETTERS)
    ax.set_xticks(places[::step], names[::step])
    titled(ax, title, x=by)
    legend(ax, handles, columns=1 if max(map(len, protocols)) > 20 else 2)


_LETTERS = 56
"""For which there is room below a panel."""
