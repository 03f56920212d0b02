"""The section on groups of users: who gains by a protocol, and who pays."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

import numpy as np
from markupsafe import Markup

from simulation.analysis.columns import figure_column, free_column, text_column, written_column
from simulation.analysis.groups import GroupLine
from simulation.analysis.vocabulary import DASH, grouped_by, loss, number, size
from simulation.pages.figures.marks import Axis, Line, plain_axis
from simulation.pages.figures.panels import INK, SURFACE, Looks, Panel, chart, shortened, told_apart
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Section, figures, paragraph, table
from simulation.storage.column import Column
from simulation.storage.summary import GroupSummary

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

_MOST_DRAWN = 6

_SMALL = 0.01
"""A probability below which more users are worse off than by chance."""


def groups_sections(
    lines: Sequence[GroupLine], looks: Looks, draw: Draw, drawn: Callable[[GroupLine], bool]
) -> list[Section]:
    """Return the section on groups, if there are any.

    ``drawn``: whether a line is of a protocol, and at a budget, that the figure has room for.
    """
    if not lines:
        return []
    shown = [line for line in lines if drawn(line)]
    plots = [draw(plot) for plot in _plots(shown, looks)]
    names = {line.name for line in shown}
    several = len({(line.name, line.epsilon) for line in lines}) > 1
    content = (
        paragraph(_WORDS),
        *([figures(plots)] if plots else []),
        *([_overview([line for line in lines if line.name in names])] if several else []),
        _every_figure(shown, several=several),
        *([_TABLE] if several else []),
    )
    return [Section("groups", "Who pays: groups of users", content)]


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


def _overview(lines: Sequence[GroupLine]) -> Markup:
    """Return a table with a line for each group and a column for each protocol at each budget."""
    groups = grouped_by(((line.by, line.figures.group), line) for line in lines)
    of_all = {key: {(each.name, each.epsilon): each for each in own} for key, own in groups.items()}

    def column(name: str, epsilon: float | None) -> Column[tuple[str, str]]:
        def value(group: tuple[str, str]) -> float | None:
            line = of_all[group].get((name, epsilon))
            return None if line is None else _accuracy(line.figures)

        def text(group: tuple[str, str]) -> str:
            line = of_all[group].get((name, epsilon))
            if line is None:
                return DASH
            reached, words = number(_accuracy(line.figures), 3), _in_words(line.figures)
            return Markup("{}<br><small>{}</small>").format(reached, words)

        return free_column(name if epsilon is None else f"{name}, ε = {epsilon:g}", "", value, text)

    alone: Column[tuple[str, str]] = figure_column(
        "alone", "", lambda key: groups[key][0].figures.rmse_alone, 3
    )
    protocols = dict.fromkeys((line.name, line.epsilon) for line in lines)
    named: Column[tuple[str, str]] = text_column("group", lambda key: _named(*key))
    columns = [named, *([alone] if _of_ratings(lines) else []), *(column(*each) for each in protocols)]
    metric = "RMSE" if _of_ratings(lines) else "NDCG at 10"
    marked = f"; * is more than by chance (p < {_SMALL:g})" if _of_ratings(lines) else ""
    return table(f"{metric} of each group, and users worse off than alone{marked}", columns, list(groups))


def _named(by: str, group: str) -> str:
    return group if by == _OVERALL else f"{by}: {group}"


def _every_figure(lines: Sequence[GroupLine], *, several: bool) -> Markup:
    """Return a table with all figures of every group."""

    def of(title: str, name: str, digits: int, hint: str = "") -> Column[GroupLine]:
        return figure_column(title, hint, attrgetter(f"figures.{name}"), digits)

    def share(title: str, name: str, hint: str = "") -> Column[GroupLine]:
        return written_column(title, attrgetter(f"figures.{name}"), "{:.1%}".format, hint)

    named: list[Column[GroupLine]] = [
        text_column("protocol", attrgetter("name")),
        written_column("ε", attrgetter("epsilon"), loss),
    ]
    accuracy = (
        [
            *(of("RMSE", "rmse", 4), of("MAE", "mae", 4), of("RMSE alone", "rmse_alone", 4)),
            *(share("worse", "worse", "users"), share("by chance", "worse_by_chance", "users")),
            written_column("p", attrgetter("figures.worse_p"), "{:.2g}".format, "of more than by chance"),
        ]
        if _of_ratings(lines)
        else [of("NDCG at 10", "ndcg_at_10", 4), of("recall at 20", "recall_at_20", 4)]
    )
    columns = [
        *(named if several else ()),
        text_column("group", lambda line: _named(line.by, line.figures.group)),
        *(of("users", "users", 0), of("test ratings", "test_ratings", 0)),
        *accuracy,
        of("popularity lift", "popularity_lift", 2),
        share("coverage", "coverage"),
        written_column("bytes", attrgetter("figures.message_bytes"), size, "messages, per user"),
        written_column("ε per rating", attrgetter("figures.epsilon_per_rating"), loss, "mean"),
        written_column("ε per user", attrgetter("figures.epsilon_per_user"), loss, "mean"),
    ]
    return table("Every figure of every group", columns, lines)


def _plots(lines: Sequence[GroupLine], looks: Looks) -> Iterator[Plot]:
    """Yield the figure of what each group reaches, and of who is worse off than alone."""
    divided = grouped_by((line.by, line) for line in lines if line.by != _OVERALL)
    if not divided:
        return
    yield Plot(
        "accuracy-by-group",
        "Accuracy by group, and users worse off than alone",
        "Rings: the share to be expected by chance if everybody in a group gained the same."
        if _of_ratings(lines)
        else "The first ten of the lists.",
        "; ".join(f"{_label(line)}, {_named(line.by, line.figures.group)}: {_said(line)}" for line in lines),
        lambda: [panel for by, own in divided.items() for panel in _panels(by, own, looks)],
        full_width=True,
    )


def _said(line: GroupLine) -> str:
    return ", ".join(filter(None, (number(_accuracy(line.figures), 3), _in_words(line.figures))))


def _panels(by: str, lines: Sequence[GroupLine], looks: Looks) -> Iterator[Panel]:
    """Yield the panels of what divides the users: accuracy, and who is worse off or popularity lift."""
    protocols = dict(list(grouped_by((_label(line), line) for line in lines).items())[:_MOST_DRAWN])
    apart = told_apart(protocols, {label: looks[own[0].name] for label, own in protocols.items()})
    groups = list(dict.fromkeys(line.figures.group for line in lines))
    x = Axis(-0.5, len(groups) - 0.5, _ticks(groups), by)

    def drawn(name: str, *, percent: bool) -> list[Line]:
        marks = []
        for place, (label, own) in enumerate(protocols.items()):
            values = {line.figures.group: getattr(line.figures, name) for line in own}
            heights = [np.nan if values.get(group) is None else values[group] for group in groups]
            shift = 0.5 * ((place + 0.5) / len(protocols) - 0.5)
            words = [
                f"{label}, {_named(by, group)}: " + (f"{height:.1%}" if percent else f"{height:.3f}")
                for group, height in zip(groups, heights, strict=True)
            ]
            across, look = np.arange(len(groups)) + shift, apart[label]
            marks.append(Line(across, heights, look.colour, 1.4, look.dashes, "o", label=label, words=words))
        return marks

    if not _of_ratings(lines):
        yield _panel("NDCG at 10 (higher is better)", x, drawn("ndcg_at_10", percent=False))
        yield _panel("Popularity lift", x, drawn("popularity_lift", percent=False))
        return
    alone = {line.figures.group: line.figures.rmse_alone for line in lines}
    base = Line(np.arange(len(groups)), [alone[group] or np.nan for group in groups], INK, 1.2, label="alone")
    yield _panel("RMSE (lower is better)", x, [*drawn("rmse", percent=False), base])
    worse, chance = drawn("worse", percent=True), drawn("worse_by_chance", percent=True)
    rings = [
        Line(each.x, each.y, each.colour, 0, marker="o", radius=3.2, hollow=SURFACE, words=each.words)
        for each in chance
    ]
    yield _panel("Users worse off than alone", x, worse, rings, percent=True)


def _panel(
    title: str, x: Axis, lines: Sequence[Line], rings: Sequence[Line] = (), *, percent: bool = False
) -> Panel:
    heights = np.concatenate([np.ravel(line.y) for line in (*lines, *rings)]).astype(np.float64)
    known = heights[np.isfinite(heights)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    y = plain_axis(0.0 if percent else low, high, pad=0.07, percent=percent, grid=True)
    return chart(f"{title}", x, y, [*rings, *lines], width=430.0)


_LONGEST_TICK = 14


def _ticks(groups: Sequence[str]) -> list[tuple[float, str]]:
    """Return the names of as many groups as have room."""
    step = max(1, len(groups) // 5)
    return [
        (float(place), shortened(name, _LONGEST_TICK))
        for place, name in enumerate(groups)
        if place % step == 0
    ]
