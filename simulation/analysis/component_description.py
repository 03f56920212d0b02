"""What a component is: its settings, what each accepts, their defaults, and where they come from."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from dprec.components import (
    Options,
    Registry,
    as_values,
    group_of,
    imported,
    kind_of,
    published_of,
    reference_of,
)
from dprec.errors import InputError
from simulation.analysis.description import REQUIRED, SettingLine
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES

_REGISTRIES: tuple[Registry[Any], ...] = (*COMPONENT_REGISTRIES, PROTOCOLS)

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
"""Types of a JSON Schema in words."""

_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


@dataclass(frozen=True)
class DescribedSetting:
    """A setting of a component."""

    line: SettingLine
    """Its key, dotted below the component, its default as the value, and what the paper has."""
    accepts: str
    """What may be configured, with its bounds."""
    words: str
    """What it means."""


@dataclass(frozen=True)
class ComponentDescription:
    """A component in words."""

    what: str
    kind: str
    """What it is, such as "mechanism", and its name in configurations."""
    words: str
    """Its documentation."""
    papers: tuple[str, ...]
    """Keys of docs/references.bib."""
    place: str
    """``module:Class``."""
    settings: tuple[DescribedSetting, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        values = dataclasses.asdict(self)
        values["settings"] = [
            {"key": each.line.key, "accepts": each.accepts, "default": as_values(each.line.default)}
            | {"published": as_values(each.line.published), "source": each.line.source, "words": each.words}
            for each in self.settings
        ]
        return values


def described_components(name: str) -> list[ComponentDescription]:
    """Describe what a name stands for.

    Parameters
    ----------
    name : str
        A kind, which several registries may have; ``mechanisms/KIND`` for one of them; or ``module:Class``.

    Returns
    -------
    list of ComponentDescription
        Empty if no registry has the kind.

    Raises
    ------
    InputError
        When ``module:Class`` names no component.
    """
    plural, _, kind = name.rpartition("/")
    registries = [each for each in _REGISTRIES if plural in ("", f"{each.name}s")]
    if ":" in kind:
        component = imported(kind, Options)
        registries = [each for each in registries if issubclass(component, each.base)]
        if not registries:
            accepted = ", ".join(each.base.__name__ for each in _REGISTRIES)
            raise InputError(name, "a class that is no component", f"one derived from one of {accepted}")
    else:
        registries = [each for each in registries if kind in each.kinds or kind in each.of_packages()]
    return [_description(each.find(kind), each.name) for each in registries]


def _description(component: type[Options], what: str) -> ComponentDescription:
    words = inspect.cleandoc(component.__doc__ or "")
    place = reference_of(component)
    settings = tuple(_settings(component, None, ""))
    return ComponentDescription(what, kind_of(component), words, component.papers, place, settings)


def _settings(component: type[Options], defaults: Options | None, prefix: str) -> Iterator[DescribedSetting]:
    """Yield the settings of a class; groups of settings yield theirs, with the key of the group before."""
    schema = TypeAdapter(component).json_schema()
    properties = _resolved(schema, schema.get("$defs", {})).get("properties", {})
    for field in dataclasses.fields(component):
        if field.name == "kind":
            continue
        default = field.default if defaults is None else getattr(defaults, field.name)
        default = REQUIRED if default is dataclasses.MISSING else default
        group = group_of(component, field.name)
        if group is not None:
            inner = default if isinstance(default, Options) else None
            yield from _settings(group, inner, f"{prefix}{field.name}.")
            continue
        published = published_of(field)
        values, source = (published.values, published.source) if published else ((), "")
        line = SettingLine(prefix + field.name, default, default, values, source)
        accepts = _accepted(properties.get(field.name, {}), schema.get("$defs", {}))
        yield DescribedSetting(line, accepts, field.metadata.get("description", ""))


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference of a JSON Schema stands for."""
    reference = schema.get("$ref")
    return schema if reference is None else definitions[reference.rpartition("/")[2]]


def _accepted(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return in words what a JSON Schema accepts."""
    schema = _resolved(schema, definitions)
    if "discriminator" in schema:
        return ", ".join(schema["discriminator"]["mapping"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_accepted(part, definitions) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = schema.get("properties", {}).get("kind", {})
    if "pattern" in kind:
        return "module:Class"
    bounds = [f"{words} {schema[key]:g}" for key, words in _BOUNDS.items() if key in schema]
    return ", ".join([_TYPES.get(schema.get("type", ""), "a value"), *bounds])
