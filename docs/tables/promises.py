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
        column("privacy", lambda each: each.guarantee.status),
    ]
    return column_table(columns, list(systems().values()))


def promises(page: str) -> str:
    """Return what the presets of a page promise and whom they trust; presets alike share a line."""
    alike: dict[str, list[str]] = {}
    for preset in systems()[page].presets:
        own, guarantee = described(preset), described(preset).guarantee
        trust = f"{guarantee.trust} model, the server sees {own.server_sees}."
        alike.setdefault(f"**{guarantee.status}**, for {_unit(own)}; {trust}", []).append(preset)
    return "\n".join(f"- {_code(presets)}: {promise}" for promise, presets in alike.items())


def changed() -> str:
    """Return what names of tables that are no presets of their own are; a line for the same settings."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, each in papers()["changed"].items():
        settings = shlex.join(chain.from_iterable(("--set", one) for one in each["set"]))
        alike.setdefault(settings, []).append((name, each["of"]))
    rows = ([*map(_code, zip(*names, strict=True)), f"`{settings}`"] for settings, names in alike.items())
    return table(["name", "is", "with"], rows)


def deviations(page: str) -> str:
    """Return where presets of a page leave the papers, a line for each change; `changed` has the others."""
    system = systems()[page]
    alike: dict[str, list[str]] = {}
    names = (*system.presets, *system.references, *system.variants)
    for name in (each for each in names if each not in papers()["changed"]):
        for change in beyond(name):
            alike.setdefault(change, []).append(name)
    lines = [f"- {_code(names)}: {change}" for change, names in alike.items()]
    return "\n".join(lines) or "Where the paper names a value, the presets have it."


def beyond(name: str) -> Iterator[str]:
    """Yield where a preset leaves its paper, setting by setting."""
    for each in described(name).beyond_the_paper:
        here = f"`{each.key}: {as_in_a_file(each.value)}`"
        if each.published is None and each.key.endswith("kind"):
            yield f"{here} ({each.source or 'ours: no paper has it'})"
        else:
            published = next(line.published for line in described(name).settings if line.key == each.key)
            yield f"{here} (paper: {' or '.join(map(as_in_a_file, published))}; {each.source})"


def _unit(described: Description) -> str:
    per = next((line.value for line in described.settings if line.key == "privacy.per"), None)
    return _UNITS.get(str(per), "one replacement and one prediction")


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
