"""The sections that runs and comparisons share: attacks, groups of users, and the traffic of a deployment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from markupsafe import Markup

from dprec.attacks.promotion import DAMAGED
from simulation.analysis.attacks import told
from simulation.analysis.columns import figure_column, text_column
from simulation.analysis.groups import GroupLine
from simulation.analysis.populations import METHOD, Projection
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import DASH, loss, number, size
from simulation.pages.page import Section, bullets, table
from simulation.storage.attacked import Reached
from simulation.storage.column import Column
from simulation.storage.columns import column


@dataclass(frozen=True)
class AttackedProtocol:
    """A protocol at a budget, and what attacks on it have reached."""

    name: str
    budget: float | None
    """The epsilon that it was given; None without privacy, or for a run by itself."""
    reached: Mapping[str, Reached]
    """By the name of the figure."""


def attacks_on(results: Sequence[ProtocolResult]) -> list[AttackedProtocol]:
    """Return what attacks on the results of a comparison have reached: means over folds and seeds."""
    attacked = []
    for result in results:
        columns = dict.fromkeys(name for row in result.rows for name in row)
        stems = [name.removesuffix("_baseline") for name in columns if name.endswith("_baseline")]
        figures = {
            name: [result.mean(f"{name}{end}") for end in ("", "_baseline", "_bound")] for name in stems
        }
        reached = told(
            {
                name: Reached(value=value, baseline=baseline, bound=bound)
                for name, (value, baseline, bound) in figures.items()
            },
            {metric: result.mean(metric) for metric, _ in DAMAGED.values()},
        )
        attacked += [AttackedProtocol(result.name, result.budget, reached)] if reached else []
    return attacked


_OF_ATTACKS = (
    "Epsilon bounds what anybody can learn; this is what attacks did learn. Beside each figure stands what "
    "the same attack reaches by what is public alone, with nothing sent, and what epsilon allows: what it "
    "exceeds once in a million under the proved losses, with what chance adds to so few decisions. Where no "
    "theorem says so of all data, there is no bound. Of targets that malicious users promote, the baseline "
    "is without these users."
)

_DIGITS = 3


def attack_section(
    lines: Sequence[AttackedProtocol], notes: Sequence[str] = (), *, folded: bool = True
) -> Section:
    """Return the section on attacks, if there were any.

    ``notes``: what a reader of the figures must know.
    """
    if len(lines) > 1:
        names = list(dict.fromkeys(name for line in lines for name in line.reached))
        protocol: list[Column[AttackedProtocol]] = [
            text_column("protocol", attrgetter("name")),
            figure_column("ε", "", attrgetter("budget"), loss),
        ]
        caption = "What attacks reached; small: with nothing sent, and what ε allows"
        markup = table(caption, [*protocol, *map(_reached_column, names)], lines)
    else:
        columns: list[Column[tuple[str, Reached]]] = [
            text_column("figure", lambda row: _titled(row[0])),
            figure_column("reached", "", lambda row: row[1].value, _DIGITS),
            figure_column("nothing sent", "", lambda row: row[1].baseline, _DIGITS),
            figure_column("ε allows", "", lambda row: row[1].bound, _DIGITS),
        ]
        markup = table(
            "What attacks reached", columns, [figure for line in lines for figure in line.reached.items()]
        )
    content = (_OF_ATTACKS, markup, bullets(notes)) if lines else ()
    return Section("attacks", "What an attacker learns, and what malicious users move", content, folded)


def _titled(name: str) -> str:
    title = column(name).title
    return title[:1].upper() + title[1:]


def _reached_column(name: str) -> Column[AttackedProtocol]:
    """Return the column of a figure, with small what it is judged by."""

    def text(line: AttackedProtocol) -> str:
        if (reached := line.reached.get(name)) is None:
            return DASH
        references = [(reached.baseline, ""), (reached.bound, "≤ ")]
        small = " · ".join(
            f"{sign}{number(figure, _DIGITS)}" for figure, sign in references if figure is not None
        )
        return Markup("{}<br><small>{}</small>").format(number(reached.value, _DIGITS), small)

    def value(line: AttackedProtocol) -> float | None:
        return line.reached[name].value if name in line.reached else None

    return Column(_titled(name), value=value, text=text, holds=float)


_OF_GROUPS = (
    "A user is worse off than alone if the errors on its test ratings are larger than on a device that sends "
    "and receives nothing. With few test ratings many are by luck: beside their share stands the share to be "
    "expected by chance if everybody in the group gained the same. Where p is small, there are more, and "
    "some pay. Popularity lift is by how much the first ten of the lists are more popular than what users "
    "have; coverage is the share of the catalogue in these lists."
)

_Figure = tuple[str, str, str, int | Callable[[float], str]]
"""A heading, with {} for a rating or item, its unit, a figure of a group, and how it is written."""

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
    ("ε per {}", "mean", "epsilon_per_rating", loss),
    ("ε per user", "mean", "epsilon_per_user", loss),
)
_TABLE = Markup('<p class="all"><a href="groups.csv">groups.csv</a>: all protocols at all budgets</p>')


def groups_section(lines: Sequence[GroupLine]) -> Section:
    """Return the section on groups, if there are any."""
    several = len({(line.name, line.epsilon) for line in lines}) > 1
    rated = any(line.figures.rmse is not None for line in lines)

    def group(line: GroupLine) -> str:
        return line.figures.group if line.by == "all" else f"{line.by}: {line.figures.group}"

    columns: list[Column[GroupLine]] = [
        *([text_column("protocol", attrgetter("name"))] if several else ()),
        *([figure_column("ε", "", attrgetter("epsilon"), loss)] if several else ()),
        text_column("group", group),
        *(
            figure_column(
                title.format("rating" if rated else "item"), unit, attrgetter(f"figures.{name}"), written
            )
            for title, unit, name, written in (*_COUNTS, *(_RATED if rated else _LISTED), *_OTHERS)
        ),
    ]
    markup = table("Every figure of every group", columns, lines)
    content = (_OF_GROUPS, markup, _TABLE if several else "") if lines else ()
    return Section("groups", "Who pays: groups of users", content)


HOW_TO_PROJECT = Markup(
    "<p><code>dprec report DIR --users-a-day 10e6</code> adds the traffic of a deployment with as many "
    "users.</p>"
)
"""What a page without a projection says of it."""


def projection_section(rows: Sequence[tuple[str, Projection]], population: float) -> Section:
    """Return the section on the projected traffic of a deployment."""
    words = (
        f"{population:,.0f} users a day, each taking part once, with as many bytes per user as the simulated "
        f"ones. {METHOD}. “Network” is what a network would carry for the same messages in a deployment: "
        "HTTP, TLS, object trees, polls and visits, by a model with measured constants (simulation.network "
        "says how devices connect)."
    )
    columns: list[Column[tuple[str, Projection]]] = [
        text_column("traffic", itemgetter(0)),
        figure_column("per day", "", lambda row: row[1].total, size),
        figure_column("from", "95 % interval", lambda row: row[1].low, size),
        figure_column("to", "95 % interval", lambda row: row[1].high, size),
        figure_column("mean rate", "Mbit/s", lambda row: row[1].bits_per_second / 1e6, 2),
    ]
    markup = table(f"Projected traffic of {population:,.0f} users a day", columns, rows)
    return Section("projection", "Traffic of a deployment", (words, markup))
