"""What a configuration or a component is, from its settings alone: no rating is read, and nothing runs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from dprec.accounting import Guarantee
from dprec.binarization import binary_scale
from dprec.components import (
    Deviation,
    Options,
    Registry,
    as_values,
    deviations,
    group_of,
    imported,
    kind_of,
    published_of,
    reference_of,
    summary_of,
)
from dprec.datasets import Dataset
from dprec.errors import InputError, within
from dprec.ratings import RatingScale
from simulation.analysis.vocabulary import server_sees
from simulation.configuration.models import RunConfig
from simulation.protocols import PROTOCOLS
from simulation.protocols.base import Protocol
from simulation.protocols.components import COMPONENT_REGISTRIES
from simulation.protocols.declared import guarantee_of
from simulation.protocols.sent import Example, Sent

_STARS = RatingScale.evenly(1, 5, 1)
_USERS, _ITEMS, _RATINGS = 943, 1682, 106
"""The shape of MovieLens 100K, with the mean number of ratings of its users."""

REQUIRED = "required"
"""Stands for the default of a setting that has none."""


@dataclass(frozen=True)
class Part:
    """A component of a configuration, in words."""

    key: str
    kind: str
    """Where it is configured, dotted, and its name."""
    words: str
    """The first line of its documentation."""
    papers: tuple[str, ...]
    """Keys of docs/references.bib; empty for what is ours."""


@dataclass(frozen=True)
class SettingLine:
    """A setting, what it would be by default, and what the paper has."""

    key: str
    """Dotted, below ``protocol``."""
    value: Any
    default: Any
    """As in a file; a default of `REQUIRED` means that there is none."""
    published: tuple[Any, ...]
    """What the paper has, the main value first; empty where the paper leaves the choice."""
    source: str
    """Where the paper says so; empty with ``published``."""


@dataclass(frozen=True)
class Description:
    """A configuration in words and figures."""

    name: str
    parts: tuple[Part, ...]
    """The protocol first, with an empty key; if it picks another, that one's components follow."""
    example: Example
    """For whom the report and the guarantee are described."""
    sent: Sent | None
    """What a device sends; None if nothing."""
    guarantee: Guarantee
    settings: tuple[SettingLine, ...]
    beyond_the_paper: tuple[Deviation, ...]

    @property
    def server_sees(self) -> str:
        """What the server learns directly from the devices."""
        return server_sees(
            trust=self.guarantee.trust,
            hides_rated_items=self.guarantee.hides_rated_items,
            unlinked=self.guarantee.unlinked,
            declared=self.guarantee.status == "declared",
            sends=self.sent is not None,
            spends=self.sent is None or self.sent.symbols != 1,
        )


def describe(config: RunConfig) -> Description:
    """Describe a configuration.

    Raises
    ------
    InputError
        When its settings do not fit together.
    """
    protocol, example = config.protocol, _example(config)
    with within("protocol"):
        sent, guarantee = protocol.sent(example), guarantee_of(protocol, example.shape)
    return Description(
        name=config.name,
        parts=(*_parts(protocol, ""), *_parts_of_pick(protocol)),
        example=example,
        sent=sent,
        guarantee=guarantee,
        settings=tuple(_settings(protocol, "")),
        beyond_the_paper=deviations(protocol.picked),
    )


def as_json(description: Description) -> dict[str, Any]:
    """Return a description as JSON values, under the names that the terminal shows."""
    example, sent, guarantee = description.example, description.sent, description.guarantee
    return {
        "name": description.name,
        "parts": [dataclasses.asdict(part) for part in description.parts],
        "example": {
            "levels": example.scale.values.tolist(),
            "users": example.users,
            "items": example.items,
            "ratings": example.ratings,
        },
        "sent": None if sent is None else dataclasses.asdict(sent),
        "guarantee": {
            "status": guarantee.status,
            "reason": guarantee.reason,
            "trust": guarantee.trust,
            "server_sees": description.server_sees,
            "hides_rated_items": guarantee.hides_rated_items,
            "unlinked": guarantee.unlinked,
            "notes": list(guarantee.notes),
        },
        "settings": [
            dataclasses.asdict(line) | {"published": list(line.published)} for line in description.settings
        ],
        "beyond_the_paper": [
            dataclasses.asdict(own) | {"words": str(own)} for own in description.beyond_the_paper
        ],
    }


def _example(config: RunConfig) -> Example:
    """Return the population that the data set states, or the shape of MovieLens 100K."""
    dataset: Dataset = config.dataset
    scale = binary_scale() if config.binarization is not None else dataset.known_scale()
    users, items = _number(dataset, "users", _USERS), _number(dataset, "items", _ITEMS)
    ratings = _number(dataset, "ratings", _RATINGS * users) // users
    return Example(scale or _STARS, users, items, min(items, max(1, ratings)))


def _number(dataset: Dataset, name: str, usual: int) -> int:
    """Return a number that a data set states; ``items`` may also say where to read about them."""
    stated = getattr(dataset, name, None)
    return stated if type(stated) is int else usual


def _parts(options: Options, key: str) -> Iterator[Part]:
    if hasattr(options, "kind"):
        yield Part(key, options.kind, summary_of(type(options)), options.papers)
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if isinstance(value, Options):
            yield from _parts(value, f"{key}.{field.name}" if key else field.name)


def _parts_of_pick(protocol: Protocol) -> Iterator[Part]:
    """Yield the components of the protocol that another one picks."""
    if protocol.picked != protocol:
        yield from (part for part in _parts(protocol.picked, "") if part.key)


def _settings(options: Options, prefix: str) -> Iterator[SettingLine]:
    """Yield the settings that hold a plain value, also those of components, whose kinds are their parts'."""
    for field in dataclasses.fields(options):
        if field.name == "kind":
            continue
        value, published = getattr(options, field.name), published_of(field)
        key = prefix + field.name
        if isinstance(value, Options):
            yield from _settings(value, f"{key}.")
        else:
            default = REQUIRED if field.default is dataclasses.MISSING else field.default
            values, source = (published.values, published.source) if published else ((), "")
            yield SettingLine(key, value, default, values, source)


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
    settings = tuple(_settings_of(component, None, ""))
    return ComponentDescription(what, kind_of(component), words, component.papers, place, settings)


def _settings_of(
    component: type[Options], defaults: Options | None, prefix: str
) -> Iterator[DescribedSetting]:
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
            yield from _settings_of(group, inner, f"{prefix}{field.name}.")
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
