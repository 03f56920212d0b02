"""`dprec describe`: a configuration, or a component, in words or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dprec.components import as_in_a_file
from dprec.errors import InputError
from simulation.analysis import description as descriptions
from simulation.analysis.description import (
    ComponentDescription,
    DescribedSetting,
    described_components,
)
from simulation.configuration.loading import load
from simulation.configuration.presets import find_configuration, preset_summary, presets
from simulation.console.describing import print_description
from simulation.console.terminal import narrow_console


def describe_named(name: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print what a name stands for: a configuration, or else a component.

    Parameters
    ----------
    name : str
        A file, a preset, the kind of a component, or ``module:Class``.
    overrides : sequence of str
        ``dotted.key=value`` replacements in a configuration.

    Raises
    ------
    InputError
        When it stands for nothing.
    """
    configured = name in presets() or Path(name).exists()
    components = [] if configured else described_components(name)
    if components:
        if overrides:
            raise InputError("overrides", f"beside the component {name}", "a configuration beside them")
        _print_components(components, as_json=as_json)
        return
    path = find_configuration(name)
    described = descriptions.describe(load(path, overrides))
    if as_json:
        _print_json(descriptions.as_json(described))
    else:
        print_description(described, preset_summary(path))


def _print_json(values: Any) -> None:
    typer.echo(json.dumps(values, indent=2, ensure_ascii=False))


def _print_components(components: Sequence[ComponentDescription], *, as_json: bool) -> None:
    if as_json:
        _print_json([component.as_json() for component in components])
        return
    console = narrow_console()
    for component in components:
        papers = f" [{', '.join(component.papers)}]" if component.papers else ""
        # A class of one's own is named by its place.
        place = "" if component.place == component.kind else f", {component.place}"
        console.print(Text(f"{component.kind}: a {component.what}{papers}{place}"))
        console.print(Text(f"\n{component.words}\n"))
        if component.settings:
            console.print(_table(component.settings))
        else:
            console.print(Text("It has no settings.\n"))


def _table(settings: Sequence[DescribedSetting]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("setting", no_wrap=True)
    for heading in ("default", "accepts", "what it means"):
        table.add_column(heading, overflow="fold")
    for each in settings:
        words = each.words
        if each.line.source:
            published = " or ".join(map(as_in_a_file, each.line.published))
            words += f" Published: {published} ({each.line.source})."
        default = getattr(each.line.default, "kind", as_in_a_file(each.line.default))
        table.add_row(each.line.key, default, each.accepts, Text(words))
    return table
