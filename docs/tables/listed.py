"""The published systems that docs/papers.yaml lists, each with its page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from docs.tables.results import RESULTS, Result
from simulation.configuration.strict_yaml import read_yaml

DOCS = RESULTS.parent


@dataclass(frozen=True)
class System:
    """A published system.

    Parameters
    ----------
    page : str
        Its page in docs/systems, without ``.md``.
    title, short : str
        As a heading, and as a source in a table.
    paper : str
        Its key in docs/references.bib.
    presets, references, variants : tuple of str
        Those that follow the paper, those that it compares with, and our variants.
    """

    page: str
    title: str
    short: str
    paper: str
    presets: tuple[str, ...]
    references: tuple[str, ...]
    variants: tuple[str, ...]


@cache
def papers() -> dict[str, Any]:
    """Return docs/papers.yaml."""
    return read_yaml(DOCS / "papers.yaml")


@cache
def systems() -> dict[str, System]:
    """Return the published systems by their pages, in the order of docs/papers.yaml."""
    return {
        page: TypeAdapter(System).validate_python({"page": page, **line})
        for page, line in papers()["systems"].items()
    }


@cache
def tuned_on() -> dict[str, str]:
    """Return the ratings that settings of a preset were chosen on, by its name."""
    return {
        preset: ratings
        for ratings, scripts in papers()["tuned"].items()
        for presets in scripts.values()
        for preset in presets
    }


def source_of(result: Result) -> str:
    """Return where a protocol comes from, with a link to its page, and what its settings were chosen on."""
    names = [name for name in tuned_on() if name == result.preset or _is_baseline(result, name)]
    return ", ".join([_source(result), *(f"tuned on {tuned_on()[name]}" for name in names[:1])])


def _is_baseline(result: Result, name: str) -> bool:
    """Return whether a result is a baseline in the form that it has for other ratings of the same comparison."""
    return result.baseline and result.preset.startswith(f"{name}-")


def _source(result: Result) -> str:
    if result.baseline:
        return "baseline"
    for system in systems().values():
        link = f"[{system.short}](docs:systems/{system.page}.md)"
        if result.preset in system.presets:
            return link
        if result.preset in system.references:
            return f"reference of {link}"
        if result.preset in system.variants:
            return f"ours, after {link}"
    return "no privacy" if result.reference else "ours"
