"""What a configuration has beyond or against the paper that it follows, from the configuration alone.

Two rules. A setting differs if its declaration names what the paper has (`dprec.components.options.option`)
and its value is not that. A component, which is anything with a `kind`, names the papers that it is part of:
one that names none is ours, and components that have no paper in common are a combination of ours. The whole
that is asked about may be a frame, such as one-shot collection, which no paper needs to own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dprec.components import Options, published_of


@dataclass(frozen=True)
class Deviation:
    """One thing that a configuration has and the paper has not."""

    key: str
    """The setting, dotted, relative to what was asked about; a component's ends in ``kind``."""
    value: Any
    """What is configured, as in a file."""
    published: Any
    """What the paper has, as in a file; None for a component."""
    source: str
    """Where the paper says so, a key of docs/references.bib first; the papers that are combined, or nothing,
    for a component.
    """

    def __str__(self) -> str:
        if not self.key.endswith("kind"):
            value, published = as_in_a_file(self.value), as_in_a_file(self.published)
            return f"{self.key} is {value}; published: {published} ({self.source})"
        if not self.source:
            whose = "your own" if ":" in str(self.value) else "ours"
            return f"{self.key} is {self.value}, which is {whose}: no paper has it as it is"
        return f"{self.key} is {self.value}, a combination that no paper has ({self.source})"


def deviations(whole: Options) -> tuple[Deviation, ...]:
    """Return what a configuration has beyond or against its paper, in the order of its settings.

    Parameters
    ----------
    whole : Options
        A protocol, with its components; or a component alone.
    """
    return (*_of_components(whole), *_of_settings(whole, ""))


def _of_components(whole: Options) -> Iterator[Deviation]:
    parts = dict(_parts(whole, ""))
    named = {key: part.papers for key, part in parts.items() if part.papers}
    for key, part in parts.items():
        if key and not part.papers:
            yield Deviation(f"{key}.kind", _kind(part), None, "")
    if named and not set.intersection(*(set(papers) for papers in named.values())):
        combined = " with ".join(_kind(parts[key]) for key in named)
        sources = "; ".join(f"{_kind(parts[key])}: {', '.join(papers)}" for key, papers in named.items())
        yield Deviation("kind", combined, None, sources)


def _parts(options: Options, key: str) -> Iterator[tuple[str, Options]]:
    """Yield the components of a configuration by their keys, itself with an empty key included."""
    if hasattr(options, "kind"):
        yield key, options
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if isinstance(value, Options):
            yield from _parts(value, f"{key}.{field.name}" if key else field.name)


def _of_settings(options: Options, prefix: str) -> Iterator[Deviation]:
    for field in dataclasses.fields(options):
        value, published = getattr(options, field.name), published_of(field)
        if published is not None and value not in published.values:
            yield Deviation(prefix + field.name, value, published.values[0], published.source)
        if isinstance(value, Options):
            yield from _of_settings(value, f"{prefix}{field.name}.")


def _kind(component: Options) -> str:
    return str(getattr(component, "kind", ""))


def as_in_a_file(value: Any) -> str:
    """Return a value as configuration files write it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
