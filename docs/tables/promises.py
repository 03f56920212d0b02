"""What the published systems promise and where presets leave their papers, from the presets themselves."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain

from docs.tables import column_table, table
from docs.tables.results import System, configuration, papers, systems
from dprec.components import as_in_a_file
from simulation.analysis.columns import text_column
from simulation.analysis.description import Description, describe
from simulation.analysis.vocabulary import DASH
from simulation.configuration.strict_yaml import at
from simulation.storage.column import Column

_UNITS = {"rating": "one rating's value", "cell": "one cell, rated or not", "user": "a whole profile"}


@cache
def described(preset: str) -> Description:
    """Return the description of a preset."""
    return describe(configuration(preset))


def index() -> str:
    """Return one line for each published system, with a link to its page."""

    def column(title: str, said: Callable[[Description], str]) -> Column[System]:
        return text_column(
            title, lambda system: "; ".join(dict.fromkeys(said(described(each)) for each in system.presets))
        )

    columns = [
        text_column("system", lambda system: f"[{system.title}](docs:systems/{system.page}.md)"),
        text_column("presets", lambda system: _code(system.presets)),
        column("ε is for", _unit),
        column("trust", lambda each: each.guarantee.trust),
        column("item set", lambda each: "hidden" if each.guarantee.hides_rated_items else "revealed"),
        column("server sees", lambda each: each.server_sees),
        column("privacy", lambda each: each.guarantee.status),
        column("reports", lambda each: "one" if not each.sent or each.sent.reports == 1 else "several"),
    ]
    return column_table(columns, list(systems().values()))


def promises(page: str) -> str:
    """Return what the presets of a page promise, as `dprec describe` says it; presets alike share a line."""
    alike: dict[str, list[str]] = {}
    for preset in systems()[page].presets:
        own, guarantee = described(preset), described(preset).guarantee
        words = [
            f"**{guarantee.status}**, for {_unit(own)}: {guarantee.reason}",
            f"{guarantee.trust.capitalize()} model; the server sees {own.server_sees}.",
        ]
        alike.setdefault(" ".join([*words, *guarantee.notes]), []).append(preset)
    return "\n".join(f"- {_code(presets)}: {promise}" for promise, presets in alike.items())


def changed() -> str:
    """Return what is typed for names of tables that are no presets of their own."""
    commands = {
        name: shlex.join(
            ["dprec", "run", each["of"], *chain.from_iterable(("--set", one) for one in each["set"])]
        )
        for name, each in papers()["changed"].items()
    }
    return table(["name", "what it is"], [[f"`{name}`", f"`{typed}`"] for name, typed in commands.items()])


_WHERE = "where the paper says so"


def deviations(page: str) -> str:
    """Return where the presets and variants of a page leave the papers."""
    system = systems()[page]
    names = (*system.presets, *system.references, *system.variants)
    rows = [[f"`{name}`", *cells] for name in names for cells in _beyond(name)]
    return table(["preset", "setting", "here", "paper", _WHERE], rows)


def settings(page: str) -> str:
    """Return the settings that the paper of a page fixes, beside those of its presets."""
    rows = []
    for name in (*systems()[page].presets, *systems()[page].references):
        configured = configuration(name).model_dump(mode="json")["protocol"]
        for setting in papers()["published"].get(name, {"settings": ()})["settings"]:
            here = at(configured, *setting["key"].split("."))
            values = as_in_a_file(setting["value"]), as_in_a_file(here)
            rows.append([f"`{name}`", f"`{setting['key']}`", *values, setting["at"]])
    return table(["preset", "setting", "paper", "here", _WHERE], rows)


def _beyond(name: str) -> Iterator[Sequence[str]]:
    own = described(name).beyond_the_paper
    if not own:
        yield "nothing", DASH, DASH, DASH
    for each in own:
        if each.published is None and each.key.endswith("kind"):
            yield f"`{each.key}`", as_in_a_file(each.value), DASH, each.source or "ours: no paper has it"
        else:
            published = next(line.published for line in described(name).settings if line.key == each.key)
            paper = " or ".join(map(as_in_a_file, published))
            yield f"`{each.key}`", as_in_a_file(each.value), paper, each.source


def _unit(described: Description) -> str:
    per = next((line.value for line in described.settings if line.key == "privacy.per"), None)
    return _UNITS.get(str(per), "one replacement and one prediction")


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
