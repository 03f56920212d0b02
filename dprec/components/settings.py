"""What a field of settings can hold of components, and how settings differ from the paper.

Two rules. A setting differs if its declaration names what the paper has (`option`) and its
value is not that. A component, which is anything with a `kind`, names the papers that it is part of: one
that names none is ours, and components that have no paper in common are a combination of ours. The whole
that is asked about may be a frame, such as one-shot collection, which no paper needs to own.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from dprec.components.options import (
    ELSEWHERE,
    Options,
    Registry,
    as_values,
    as_written,
    check_data,
    kind_of,
    made,
    of_a_file,
    published_of,
    schema_of,
)
from dprec.components.raised import CodeError
from dprec.components.user_defined import check_class, is_ours, reference_of
from dprec.errors import MAPPING, InputError, SettingError, listed


def group_of(group: type[Options], key: str) -> type[Options] | None:
    """Return the class of the settings below a key; None if its value is plain, or a component."""
    hint = get_type_hints(group)[key]
    classes = [
        part for part in (hint, *get_args(hint)) if isinstance(part, type) and issubclass(part, Options)
    ]
    return classes[0] if len(classes) == 1 and not hasattr(classes[0], "kind") else None


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
    """Where the paper says so, a key of dprec/references.bib first; the papers that are combined, or nothing,
    for a component.
    """

    def __str__(self) -> str:
        if not self.key.endswith("kind"):
            value, published = as_in_a_file(self.value), as_in_a_file(self.published)
            return f"{self.key} is {value}; published: {published} ({self.source})"
        if not self.source:
            whose = "user-defined" if ":" in str(self.value) else "ours"
            return f"{self.key} is {self.value}, which is {whose}: no paper has it as it is"
        return f"{self.key} is {self.value}, a combination that no paper has ({self.source})"


def deviations(whole: Options) -> tuple[Deviation, ...]:
    """Return what a configuration has beyond or against its paper, in the order of its settings.

    Parameters
    ----------
    whole : Options
        A protocol, with its components; or a component alone.
    """
    in_kinds, in_settings = list[Deviation](), list[Deviation]()
    kinds, papers = list[str](), list[tuple[str, ...]]()
    for key, part in _parts(whole, ""):
        kind = str(getattr(part, "kind", ""))
        if isinstance(part, Deviation):
            in_settings.append(part)
        elif part.papers:
            kinds.append(kind)
            papers.append(part.papers)
        elif key:
            in_kinds.append(Deviation(f"{key}.kind", kind, None, ""))
    if papers and not set.intersection(*map(set, papers)):
        sources = "; ".join(f"{kind}: {', '.join(keys)}" for kind, keys in zip(kinds, papers, strict=True))
        in_kinds.append(Deviation("kind", " with ".join(kinds), None, sources))
    return (*in_kinds, *in_settings)


def papers_of(whole: Options) -> tuple[str, ...]:
    """Return the keys of the papers that a configuration's components are part of, each once.

    A component of kind none does nothing that a paper would be named for.
    """
    parts = [part for _, part in _parts(whole, "") if isinstance(part, Options)]
    paper_keys = (part.papers for part in parts if getattr(part, "kind", "") != "none")
    return tuple(dict.fromkeys(paper for papers in paper_keys for paper in papers))


def _parts(options: Options, key: str) -> Iterator[tuple[str, Options | Deviation]]:
    """Yield the components of a configuration by their keys, itself included, and settings that differ."""
    if hasattr(options, "kind"):
        yield key, options
    for field in dataclasses.fields(options):
        value, published = getattr(options, field.name), published_of(field)
        inner = f"{key}.{field.name}" if key else field.name
        if published is not None and value not in published.values:
            yield inner, Deviation(inner, value, published.values[0], published.source)
        if isinstance(value, Options):
            yield from _parts(value, inner)


def as_in_a_file(value: Any) -> str:
    """Return a value as configuration files write it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_in_a_file(entry)}' for key, entry in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else str(value)


Values = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: value.entries() if isinstance(value, Options) else value),
    PlainSerializer(as_values, when_used="json"),
]
"""A field that holds part of a configuration, which is checked elsewhere and may hold components."""


def one_of(registry: Registry[Any]) -> Any:
    """Return the type of a field that holds a component, for pydantic to validate.

    In a file, the value is one of the registered components, identified by its kind, or one that an
    installed package adds, or a class that is named ``module:Class``. In Python, it is any instance of their
    base class.
    """
    return one_of_classes(registry, registry.base, registry)


def one_of_classes(
    components: Iterable[type[Options]], base: type[Options], registry: Registry[Any] | None = None
) -> Any:
    """Return the type of a field that holds an instance of one of some classes, and of no others.

    In a file, the value is identified by its kind; in Python, it is any instance of their base class. Where
    there is a registry, a file may name others that it finds.
    """
    by_kind = {kind_of(component): component for component in components}
    # Where there are none, all are from elsewhere.
    named = functools.reduce(operator.or_, by_kind.values()) if by_kind else base
    return Annotated[named, _Component(base, by_kind, registry)]


@dataclass(frozen=True, eq=False)
class _Component:
    """How pydantic reads, writes and describes a field that holds a component."""

    base: type[Options]
    by_kind: Mapping[str, type[Options]]
    registry: Registry[Any] | None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(as_values, when_used="json")
        return core_schema.with_info_plain_validator_function(self._instance, serialization=written)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        described = {kind: handler(schema_of(component)) for kind, component in self.by_kind.items()}
        chosen = {
            "propertyName": "kind",
            "mapping": {kind: described_kind["$ref"] for kind, described_kind in described.items()},
        }
        named = {"oneOf": list(described.values()), "discriminator": chosen}
        if self.registry is None:
            return named
        description = f"A user-defined {self.registry.name}, module:Class."
        kind = {"type": "string", "pattern": ":", "description": description}
        elsewhere = {"type": "object", "properties": {"kind": kind}, "required": ["kind"]}
        return {"anyOf": [named if self.by_kind else handler(schema_of(self.base)), elsewhere]}

    def _instance(self, value: Any, info: ValidationInfo) -> Any:
        component = self._component(value, info)
        if of_a_file(info):
            check_data(component)
        return component

    def _component(self, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, self.base):
            if of_a_file(info):
                check_class(type(value), self.base)
            return value
        if not of_a_file(info):
            raise PydanticKnownError("is_instance_of", {"class": self.base.__name__})
        if isinstance(value, Options):
            accepted = f"an instance of {self.base.__name__}"
            raise SettingError("", f"an instance of {type(value).__name__}", accepted)
        if not isinstance(value, Mapping):
            raise SettingError("", as_written(value), MAPPING)
        by_kind, kinds, kind = self.by_kind, list(self.by_kind), value.get("kind")
        if "kind" not in value:
            raise SettingError("kind", "missing", ", ".join(kinds) or ELSEWHERE)
        if not isinstance(kind, str) or (self.registry is None and kind not in by_kind):
            raise SettingError("kind", as_written(kind), listed(kinds, kind) or ELSEWHERE)
        if self.registry is None or kind in by_kind:
            return made(by_kind[kind], value)
        component = self.registry.find(kind)
        if is_ours(component):
            return made(component, value)
        settings = {key: entry for key, entry in value.items() if key != "kind"}
        if component.__dataclass_fields__["kind"].default is MISSING:
            settings["kind"] = reference_of(component)
        try:
            return made(component, settings)
        except InputError:
            raise
        except Exception as error:
            found = f"{reference_of(component)} raised {CodeError.of(error).line}"
            raise SettingError("", found, "settings that the class accepts") from None
