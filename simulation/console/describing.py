"""`dprec describe`: a configuration, or a component, in words or as JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dprec.components import as_in_a_file, summary_of
from dprec.errors import InputError, plural
from simulation.analysis import description as descriptions
from simulation.analysis.description import REQUIRED, ComponentDescription, Description, SettingLine
from simulation.analysis.vocabulary import DASH, grouped_by
from simulation.comparison import Comparison, load_comparison
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import (
    OF_EITHER,
    find_configuration,
    preset_summary,
    presets,
    read_yaml,
)
from simulation.console.terminal import narrow_console, print_json
from simulation.storage.files import write_files


def describe_named(name: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print what a name stands for: a configuration, or else a component."""
    configured = name in presets() or Path(name).exists()
    components = [] if configured else descriptions.described_components(name)
    if components and overrides:
        raise InputError("overrides", f"beside the component {name}", "a configuration beside them")
    if components:
        values: Any = [component.as_json() for component in components]
        rendered = _components(components)
    else:
        path = find_configuration(name, OF_EITHER)
        if "protocols" in read_yaml(path):
            compared = load_comparison(path, overrides)
            values, rendered = _compared(compared), _comparison(compared, preset_summary(path))
        else:
            described = descriptions.describe(load(path, overrides))
            values, rendered = descriptions.as_json(described), _description(described, preset_summary(path))
    if as_json:
        print_json(values)
    else:
        narrow_console().print(*rendered)


def draw_named(name: str, overrides: Sequence[str], output: Path | None) -> None:
    """Print what leaves a device under a configuration, and what comes back, or write it to a file as SVG."""
    # What runs protocols takes a second to import.
    from simulation.demonstration import drawing_svg, drawn

    drawing = drawn(load(name, overrides))
    if drawing is None:
        typer.echo("nothing is sent")
    elif output is None:
        typer.echo(drawing.text)
    else:
        write_files(output.parent, {output.name: drawing_svg(drawing)})


def _compared(comparison: Comparison) -> dict[str, Any]:
    """Return what a comparison consists of, as JSON values."""
    config = comparison.config
    return {
        "name": config.name,
        "dataset": config.dataset.kind,
        "protocols": list(dict.fromkeys(cell.protocol for cell in comparison.cells)),
        "epsilons": config.epsilons,
        "per": config.match.epsilon,
        "delta": config.match.delta,
        "seeds": config.seeds,
        "folds": config.folds or [],
        "runs": len(comparison.cells),
    }


def _comparison(comparison: Comparison, summary: str) -> Iterator[RenderableType]:
    """Yield what a comparison consists of."""
    contents, dataset = _compared(comparison), comparison.config.dataset
    yield _title(contents["name"], summary)
    delta = "" if contents["delta"] is None else f", δ = {contents['delta']:g}"
    units = {
        cell.protocol: "user" if cell.stated.get("per") == "user" else contents["per"]
        for cell in comparison.cells
        if cell.epsilon is not None
    }
    kept = grouped_by((unit, name) for name, unit in units.items()) or {contents["per"]: []}
    per = [f"per {unit}" + f" ({', '.join(names)})" * (len(kept) > 1) for unit, names in kept.items()]
    budgets = f"{', '.join(f'{epsilon:g}' for epsilon in contents['epsilons'])} {', '.join(per)}{delta}"
    repeats = f"{plural(len(contents['seeds']), 'seed')}, {plural(len(contents['folds']) or 1, 'fold')}"
    facts = _facts()
    facts.add_row("dataset", Text(f"{dataset.kind}: {summary_of(type(dataset))}"))
    facts.add_row("protocols", Text(", ".join(contents["protocols"])))
    facts.add_row("epsilon", Text(budgets if contents["epsilons"] else "each protocol's own"))
    facts.add_row("runs", Text(f"{contents['runs']:,}, over {repeats}"))
    yield facts


def _title(name: str, summary: str) -> Text:
    return Text(f"{name}: {summary}" if summary else name)


def _facts() -> Table:
    """Return a table of facts without any: what, and what of it."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _components(components: Sequence[ComponentDescription]) -> Iterator[RenderableType]:
    for component in components:
        # A user-defined class is named by its reference.
        place = "" if component.place == component.kind else f", {component.place}"
        article = "an" if component.what[0] in "aeiou" else "a"
        yield Text(f"{component.kind}: {article} {component.what}{_cited(component.papers)}{place}")
        yield Text(f"\n{component.words}\n")
        if not component.settings:
            yield Text("It has no settings.\n")
            continue
        table = _headed("default", "accepts", "what it means")
        for setting in component.settings:
            words = setting.words + (
                f" Published: {_published(setting)} ({setting.source})." if setting.source else ""
            )
            default = getattr(setting.value, "kind", as_in_a_file(setting.value))
            table.add_row(setting.key, default, setting.accepts, Text(words))
        yield table


def _cited(papers: Sequence[str]) -> str:
    return f" [{', '.join(papers)}]" if papers else ""


def _published(line: SettingLine) -> str:
    return " or ".join(map(as_in_a_file, line.published))


def _headed(*headings: str) -> Table:
    """Return a table of settings with more columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("setting", no_wrap=True)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _description(described: Description, summary: str) -> Iterator[RenderableType]:
    """Yield what a configuration is, and what is beyond its paper."""
    yield _title(described.name, summary)
    facts = _facts()
    scheduled = () if described.schedule is None else (described.schedule,)
    for part in (*described.parts, *scheduled):
        words = f"{part.kind}: {part.words}" if part.key else part.words
        facts.add_row(Text(part.key or "protocol"), Text(words + _cited(part.papers)))
    guarantee = described.guarantee
    facts.add_row("a device sends", Text(_sent_in_words(described)))
    facts.add_row("guarantee", Text(f"{guarantee.status}: {guarantee.reason}"))
    facts.add_row("trust", f"{guarantee.trust} model; the server sees {described.server_sees}")
    for note in guarantee.notes:
        facts.add_row("", Text(note))
    yield facts
    settings = _headed("value", "default, if another", "published")
    for line in described.settings:
        value, default = as_in_a_file(line.value), DASH
        if line.default == REQUIRED or line.default != line.value:
            default = as_in_a_file(line.default)
        # What the paper has stands only where the paper fixes it; its key stands beside the component.
        place = line.source.partition(", ")[2]
        settings.add_row(line.key, value, default, f"{_published(line)} ({place})" if line.source else DASH)
    yield settings
    yield Text("beyond the paper:" if described.beyond_the_paper else "beyond the paper: nothing")
    yield from (Padding(Text(f"- {deviation}"), (0, 0, 0, 2)) for deviation in described.beyond_the_paper)


def _sent_in_words(description: Description) -> str:
    sent, example = description.sent, description.example
    if sent is None:
        return "nothing"
    if sent.of:
        contents = f"about {plural(sent.answers, sent.of)}"
    elif sent.symbols is None:
        contents = f"of {plural(sent.answers, 'number')}"
    elif sent.symbols == 1:
        contents = f"of a set of {plural(sent.answers, 'item')}"
    else:
        contents = f"of {plural(sent.answers, 'answer')} of {sent.symbols:,} symbols"
    user = f"{plural(example.ratings, 'rating')} on {plural(example.scale.levels, 'level')}"
    if example.scale.implicit:
        user = plural(example.ratings, "item")
    reports = "one report" if sent.reports == 1 else f"{sent.reports} reports, one a round, each"
    once = "" if description.schedule is None else "if asked once: "
    return (
        f"{once}{reports} {contents} in {sent.bits:,.0f} bits; {description.protection} (a user with "
        f"{user}, one of {example.users:,} users x {example.items:,} items)"
    )
