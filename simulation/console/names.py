"""What `dprec list` prints: everything that a configuration, or a command, can name."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dprec.errors import InputError
from simulation.console.terminal import console, print_lines, print_table, width_of

if TYPE_CHECKING:
    from simulation.storage.column import Column

_REGISTRIES = {
    "datasets": ("dprec.datasets:DATASETS", "Where ratings come from."),
    "splits": ("dprec.splits:SPLITS", "Which ratings are tested on."),
    "schedules": ("dprec.schedules:SCHEDULES", "When devices are asked, in the course of time."),
    "attacks": ("dprec.attacks:ATTACKS", "What somebody tries to infer from a run, or to move in it."),
    "mechanisms": ("dprec.mechanisms:MECHANISMS", "The noise of devices that report on their ratings."),
    "completions": ("dprec.completion:COMPLETIONS", "What predicts all ratings from the reports."),
    "gradients": ("dprec.gradients:GRADIENTS", "What devices report of a gradient."),
    "perturbations": (
        "dprec.completion.one_bit.perturbation:PERTURBATIONS",
        "Where the noise of one-bit completion goes.",
    ),
    "binarizations": ("dprec.binarization:BINARIZATIONS", "What makes signs of ratings."),
    "protocols": (
        "dprec.protocols.registry:PROTOCOLS",
        "How devices and server arrive at predictions together.",
    ),
}
"""Where each registry of components is, imported only when it is listed, and what it holds."""

LISTINGS = {
    "presets": "Configurations that run by their name.",
    **{name: words for name, (_, words) in _REGISTRIES.items()},
}
"""What can be listed."""

_FOLDERS = {
    "published": "published systems: dprec run NAME",
    "ours": "ours",
    "baselines": "baselines, and references without privacy",
    "comparisons": "comparisons: dprec compare NAME",
    "experiments": "experiments, of papers and our own",
}
"""Folders of presets, in the order in which they are listed, and what they hold."""

_TRUST = ("local", "shuffle", "secure-aggregation", "central")

_WIDTH, _CUT = 100, " ..."
"""Most characters of a line of the overview, and what stands for the rest of it."""


def listing(what: str) -> list[tuple[str, str]]:
    """Return names and descriptions.

    ``what``: one of `LISTINGS`.
    """
    if what == "presets":
        from simulation.configuration.strict_yaml import preset_summary, presets

        return [(name, preset_summary(path)) for name, path in sorted(presets().items())]
    from dprec.components import kind_of, summary_of

    module, registry = _REGISTRIES[what][0].split(":")
    components = getattr(import_module(module), registry)
    lines = [(kind_of(component), summary_of(component)) for component in components]
    try:
        added = components.of_packages()
    except InputError as error:  # whoever looks for another name must see what there is
        return [*lines, (components.group, f"cannot be used: {error.found}.")]
    for name in added:
        try:
            lines.append((name, summary_of(components.find(name))))
        except InputError as error:  # of one package, which must not hide the others
            lines.append((name, f"cannot be used: {error.found}."))
    return lines


def print_listing(what: str) -> None:
    """Print what is of one kind, in full; raises InputError for what cannot be listed."""
    if what not in LISTINGS:
        raise _no_listing(what)
    from simulation.storage.column import Column

    columns: list[Column[tuple[str, str]]] = [
        Column(holds=str, text=lambda line: line[0]),
        Column(holds=str, text=lambda line: line[1], wrapped=True),
    ]
    print_table(columns, listing(what) or [("", "none")], "a wider terminal")


def print_overview() -> None:
    """Print the presets and the registries of components in groups, a line each, and where more is said."""
    registries = {name: words for name, (_, words) in _REGISTRIES.items()}
    groups = [*_groups_of_presets(), ("components of configurations: dprec list NAME", registries)]
    width = min(width_of(console()) or _WIDTH, _WIDTH)
    longest = max(len(name) for _, group in groups for name in group)
    for heading, group in groups:
        typer.echo(heading)
        for name, words in group.items():
            line = f"  {name:<{longest}}  "
            room = max(width - len(line), len(_CUT))
            typer.echo(line + textwrap.shorten(words, room, placeholder=_CUT, break_on_hyphens=False))
        typer.echo()
    print_lines(
        ["In full: dprec list presets. What one is: dprec describe NAME. Results in a folder: dprec ls."]
    )


def _groups_of_presets() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a heading, and under it the names of presets and what they are."""
    from simulation.configuration.strict_yaml import preset_promise, preset_summary, presets

    groups: dict[tuple[str, str], dict[str, str]] = {}
    for name, path in sorted(presets().items()):
        groups.setdefault((path.parent.name, preset_promise(path)), {})[name] = preset_summary(path)

    def place(group: tuple[str, str]) -> tuple[int, int, str]:
        folder, promise = group
        trust = next((place for place, model in enumerate(_TRUST) if f" {model} " in promise), -1)
        return list(_FOLDERS).index(folder), trust, promise

    for folder, promise in sorted(groups, key=place):
        yield " ".join(filter(None, (_FOLDERS[folder], promise))), groups[folder, promise]


def named_in_words(name: str) -> str | None:
    """Return what a name stands for that a configuration can have, and how it is described; or None."""
    from simulation.configuration.strict_yaml import presets
    from simulation.console.parameters import presets_and_kinds

    if name in presets():
        return "a preset"
    return "a component" if name in presets_and_kinds(name) else None


def _no_listing(what: str) -> InputError:
    """Return the error that names the command for what was meant."""
    if Path(what).is_dir():
        return InputError("list", f"{what!r}, a folder", f"dprec ls {what}")
    if kind := named_in_words(what):
        return InputError("list", f"{what!r}, {kind}", f"dprec describe {what}")
    return InputError("list", repr(what), ", ".join(LISTINGS))
