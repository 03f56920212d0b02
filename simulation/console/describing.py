"""`dprec describe`: a configuration, or a component, in words or as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dprec.accounting import UNITS_IN_WORDS
from dprec.components import as_in_a_file
from dprec.errors import InputError
from simulation.analysis import description as descriptions
from simulation.analysis.description import (
    REQUIRED,
    ComponentDescription,
    Description,
    SettingLine,
    described_components,
)
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, plural
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import find_configuration, preset_summary, presets
from simulation.console.terminal import narrow_console
from simulation.storage.files import write_files


def describe_named(name: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print what a name stands for: a configuration, or else a component.

    ``name``: a file, a preset, the kind of a component, or ``module:Class``.
    ``overrides``: ``dotted.key=value`` replacements in a configuration.
    Raises InputError when it stands for nothing.
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
        _print_description(described, preset_summary(path))


def draw_named(name: str, overrides: Sequence[str], output: Path | None) -> None:
    """Print what leaves a device under a configuration, and what comes back, or write it to a file as SVG.

    Raises InputError when the name is no configuration, or the file cannot be written.
    """
    # What runs protocols takes a second to import.
    from simulation.demonstration import drawing_svg, drawn

    drawing = drawn(load(find_configuration(name), overrides))
    if drawing is None:
        typer.echo("nothing is sent")
    elif output is None:
        typer.echo(drawing.text)
    else:
        write_files(output.parent, {output.name: drawing_svg(drawing)})


def _print_json(values: Any) -> None:
    typer.echo(json.dumps(values, indent=2, ensure_ascii=False))


def _print_components(components: Sequence[ComponentDescription], *, as_json: bool) -> None:
    if as_json:
        _print_json([component.as_json() for component in components])
        return
    console = narrow_console()
    for component in components:
        papers = f" [{', '.join(component.papers)}]" if component.papers else ""
        # A user-defined class is named by its reference.
        place = "" if component.place == component.kind else f", {component.place}"
        console.print(Text(f"{component.kind}: a {component.what}{papers}{place}"))
        console.print(Text(f"\n{component.words}\n"))
        if component.settings:
            console.print(_table(component.settings))
        else:
            console.print(Text("It has no settings.\n"))


def _headed(*headings: str) -> Table:
    """Return a table of settings with more columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("setting", no_wrap=True)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _table(settings: Sequence[SettingLine]) -> Table:
    table = _headed("default", "accepts", "what it means")
    for each in settings:
        words = each.words
        if each.source:
            words += f" Published: {_published(each)} ({each.source})."
        default = getattr(each.value, "kind", as_in_a_file(each.value))
        table.add_row(each.key, default, each.accepts, Text(words))
    return table


def _print_description(description: Description, summary: str) -> None:
    """Print what a configuration is."""
    console = narrow_console()
    head = f"{description.name}: {summary}" if summary else description.name
    console.print(Text(head), _facts(description), _settings(description), _beyond(description))


def _facts(description: Description) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for part in description.parts:
        papers = f" [{', '.join(part.papers)}]" if part.papers else ""
        label = part.key or "protocol"
        words = part.words if part.key == "" else f"{part.kind}: {part.words}"
        table.add_row(Text(label), Text(words + papers))
    guarantee = description.guarantee
    table.add_row("a device sends", Text(_sent_in_words(description)))
    table.add_row("guarantee", Text(f"{guarantee.status}: {guarantee.reason}"))
    table.add_row("trust", f"{TRUST_IN_WORDS[guarantee.trust]}; the server sees {description.server_sees}")
    for note in guarantee.notes:
        table.add_row("", Text(note))
    return table


def _sent_in_words(description: Description) -> str:
    sent, example = description.sent, description.example
    if sent is None:
        return "nothing"
    answers = plural(sent.answers, "answer" if sent.symbols else "number")
    answers += f" of {sent.symbols:,} symbols" if sent.symbols else ""
    reports = "one report" if sent.reports == 1 else f"{sent.reports} reports, one a round, each"
    loss = "not protected"
    if sent.epsilon is not None:
        loss = f"exact ε of an answer {sent.epsilon:.10g} {UNITS_IN_WORDS[sent.per]}"
    user = f"{plural(example.ratings, 'rating')} on {plural(example.scale.levels, 'level')}"
    return (
        f"{reports} of {answers} in {sent.bits:,.0f} bits; {loss} (a user with {user}, "
        f"one of {example.users:,} users x {example.items:,} items)"
    )


def _settings(description: Description) -> Table:
    """Return one line per setting; what the paper has stands only where the paper fixes it."""
    table = _headed("value", "default, if another", "published")
    for line in description.settings:
        value, default = as_in_a_file(line.value), DASH
        if line.default == REQUIRED or line.default != line.value:
            default = as_in_a_file(line.default)
        # The papers' keys stand beside the components.
        place = line.source.partition(", ")[2]
        table.add_row(line.key, value, default, f"{_published(line)} ({place})" if line.source else DASH)
    return table


def _published(line: SettingLine) -> str:
    return " or ".join(map(as_in_a_file, line.published))


def _beyond(description: Description) -> RenderableType:
    """Return what is beyond the paper, or that nothing is."""
    if not description.beyond_the_paper:
        return Text("beyond the paper: nothing")
    lines = (Padding(Text(f"- {own}"), (0, 0, 0, 2)) for own in description.beyond_the_paper)
    return Group(Text("beyond the paper:"), *lines)
