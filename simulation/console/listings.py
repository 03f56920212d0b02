"""What `dprec list` shows: names for commands and configurations, each with a one-line description."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from dprec.errors import InputError

_REGISTRIES = {
    "datasets": "dprec.datasets:DATASETS",
    "splits": "dprec.splits:SPLITS",
    "mechanisms": "dprec.mechanisms:MECHANISMS",
    "completions": "dprec.completion:COMPLETIONS",
    "gradients": "dprec.gradients:GRADIENTS",
    "perturbations": "dprec.completion.one_bit.perturbation:PERTURBATIONS",
    "binarizations": "dprec.binarization:BINARIZATIONS",
    "protocols": "simulation.protocols:PROTOCOLS",
}
"""Where each registry of components is; it is imported only when it is listed, since that takes time."""

LISTINGS = ("presets", *_REGISTRIES)


def listing(what: str) -> list[tuple[str, str]]:
    """Return names and descriptions.

    Parameters
    ----------
    what : str
        One of `LISTINGS`.
    """
    if what == "presets":
        from simulation.configuration.presets import preset_summary, presets

        return [(name, preset_summary(path)) for name, path in sorted(presets().items())]
    from dprec.components import kind_of, summary_of

    module, registry = _REGISTRIES[what].split(":")
    components = getattr(import_module(module), registry)
    lines = [(kind_of(component), summary_of(component)) for component in components]
    for name in components.of_packages():
        try:
            lines.append((name, summary_of(components.find(name))))
        except InputError as error:  # of one package, which must not hide the others
            lines.append((name, f"cannot be used: {error.found}."))
    return lines


def print_listing(lines: Sequence[tuple[str, str]]) -> None:
    """Print names and descriptions; without a terminal, each in one line."""
    from simulation.console.terminal import Column, fitted, table_console, width_of

    names, descriptions = zip(*lines, strict=True)
    columns = [Column("", names, numeric=False), Column("", descriptions, numeric=False, wrapped=True)]
    console = table_console(sum(max(map(len, each)) + 2 for each in (names, descriptions)))
    console.print(fitted(columns, width_of(console)).table)
