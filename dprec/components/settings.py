"""Settings as they are configured: the types of components, reading, and deviations from the paper.

A location holds the keys as they are written. Between them it also names the kind of each chosen
component and the alternatives of a type: these lead to other types, but are not keys.

Two rules. A setting differs if its declaration names what the paper has (`option`) and its
value is not that. A component, which is anything with a `kind`, names the papers that it is part of: one
that names none is ours, and components that have no paper in common are a combination of ours. The whole
that is asked about may be a frame, such as one-shot collection, which no paper needs to own.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from dprec.components.options import ELSEWHERE, Options, Registry, as_values, kind_of, published_of
from dprec.components.user_defined import check_class, reference_of
from dprec.errors import InputError, SettingError, accepted_by, listed, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Group = type[BaseModel | Options]
"""A class whose fields are keys of a configuration."""


@dataclass(frozen=True)
class Place:
    """A place in a configuration."""

    keys: tuple[str, ...]
    """The keys that lead to it; the key of a list includes the position, "protocols[0]"."""
    group: Group
    """The class that the last key belongs to, or that of the whole configuration."""
    accepts: Any
    """Type of the value here; None for an unknown key."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of component that are accepted here."""
        return [kind_of(component) for component in _components(self.accepts)]


def follow(location: Sequence[str | int], whole: Group) -> Place:
    """Return the place that the location of an error means, in a configuration declared by a class."""
    keys: list[str] = []
    group: Group = whole
    here: Any = whole
    for part in location:
        chosen = {kind_of(component): component for component in _components(here)}
        inner = _group(here)
        if isinstance(part, int):
            keys[-1] += f"[{part}]"
            here = _item(here)
        elif part in chosen and (len(chosen) > 1 or part not in field_names(chosen[part])):
            here = chosen[part]
        elif inner is not None:
            group = inner
            keys.append(part)
            here = _types(group).get(part)
    return Place(tuple(keys), group, here)


def field_names(group: Group) -> list[str]:
    """Return the keys of a group, as they are written."""
    return list(descriptions(group))


def descriptions(group: Group) -> dict[str, str]:
    """Return the description of each key of a group."""
    if issubclass(group, BaseModel):
        return {field.alias or name: field.description or "" for name, field in group.model_fields.items()}
    return {field.name: field.metadata.get("description", "") for field in dataclasses.fields(group)}


def group_of(group: Group, key: str) -> type[Options] | None:
    """Return the class of the settings below a key; None if its value is plain, or a component."""
    inner = _group(_types(group)[key])
    plain_group = inner is not None and issubclass(inner, Options) and not _components(inner)
    return inner if plain_group else None  # type: ignore[return-value]


def _types(group: Group) -> dict[str, Any]:
    hints = _hints(group)  # type: ignore[arg-type]  # a class can be hashed
    if issubclass(group, BaseModel):
        return {field.alias or name: hints[name] for name, field in group.model_fields.items()}
    return hints


@lru_cache(maxsize=1024)
def _hints(group: Group) -> dict[str, Any]:
    return get_type_hints(group, include_extras=True)


def _alternatives(hint: Any) -> Iterator[Any]:
    """Yield the alternatives of a union, or the type itself if it is not a union."""
    if get_origin(hint) is Annotated:
        yield from _alternatives(get_args(hint)[0])
    elif get_origin(hint) in (Union, types.UnionType):
        for alternative in get_args(hint):
            yield from _alternatives(alternative)
    else:
        yield hint


def _classes(hint: Any) -> list[Group]:
    alternatives = (part for part in _alternatives(hint) if isinstance(part, type) and not get_args(part))
    return [part for part in alternatives if issubclass(part, BaseModel | Options)]


def _components(hint: Any) -> list[type[Options]]:
    """Return the components among the alternatives of a type."""
    return [part for part in _classes(hint) if issubclass(part, Options) and "kind" in field_names(part)]


def _group(hint: Any) -> Group | None:
    """Return the class whose fields are the keys below a type, if it is the only one."""
    classes = _classes(hint)
    return classes[0] if len(classes) == 1 else None


def _item(hint: Any) -> Any:
    items = [get_args(part)[0] for part in _alternatives(hint) if get_origin(part) in (list, tuple)]
    return items[0] if items else None


GroupT = TypeVar("GroupT", bound=BaseModel | Options)


def parse_json(group: type[GroupT], text: str | bytes, context: object = None) -> GroupT:
    """Read settings from JSON.

    Parameters
    ----------
    group : type
        The class that declares them.
    context : object, optional
        What the validators of its fields are given.

    Raises
    ------
    SettingError
        When one is invalid; it names the first key at fault as written, or no key for the whole text.
    """
    declared: Any = group
    try:
        settings: GroupT = _reader(declared).validate_json(text, context=context)
    except ValidationError as error:
        raise _first_error(error.errors(), group) from None
    return settings


@lru_cache(maxsize=64)
def _reader(group: Any) -> TypeAdapter[Any]:
    """Return what reads a class; it takes longer to make than to use."""
    return TypeAdapter(group)


def _first_error(errors: list[ErrorDetails], group: type[Any]) -> SettingError:
    """Return the first error, under the key at fault."""
    first = errors[0]
    place = follow(first["loc"], group)
    key = ".".join(place.keys)
    match first["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return SettingError(key, "an unknown key", listed(field_names(place.group), place.keys[-1]))
        case "missing" | "missing_argument":
            return SettingError(key, "missing", descriptions(place.group)[place.keys[-1]] or "a value")
        case "union_tag_invalid":
            kind = first["input"]["kind"]
            return SettingError(f"{key}.kind", _as_written(kind), listed(place.kinds, kind))
        case "union_tag_not_found":
            return SettingError(f"{key}.kind", "missing", ", ".join(place.kinds))
        case "value_error" if isinstance(raised := first["ctx"]["error"], SettingError):
            # A component refuses its settings itself, and names the one at fault.
            return SettingError(f"{key}.{raised.key}".strip("."), raised.found, raised.accepted)
    # A key with several types has an error for each; its value may be whatever any of them accepts.
    alike = [accepted_by(other) for other in errors if follow(other["loc"], group).keys == place.keys]
    return SettingError(key, _as_written(first["input"]), ", or ".join(dict.fromkeys(alike)))


def _as_written(value: Any) -> str:
    return shown(json.dumps(value) if value is None or isinstance(value, bool) else repr(value))


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
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {as_in_a_file(entry)}' for key, entry in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else str(value)


_INSTANCE = "instance"
"""Key of the kind that stands for an instance while the values around it are read as JSON."""


class Instances:
    """The instances among the values of a configuration made in Python, while the rest is read as JSON."""

    def __init__(self) -> None:
        self._kept: list[Options] = []

    def keep(self, component: Options) -> dict[str, Any]:
        """Return the values that stand for an instance."""
        self._kept.append(component)
        return {"kind": {_INSTANCE: len(self._kept) - 1}}

    def restored(self, value: Any) -> Any:
        """Return the instance that a value stands for; any other value, with the instances inside it."""
        if isinstance(value, list):
            return [self.restored(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        place = kind.get(_INSTANCE) if isinstance(kind, dict) else None
        if isinstance(place, int) and 0 <= place < len(self._kept):
            return self._kept[place]
        return {key: self.restored(item) for key, item in value.items()}


def _restored(value: Any, info: ValidationInfo) -> Any:
    return info.context.restored(value) if isinstance(info.context, Instances) else value


Values = Annotated[dict[str, Any], AfterValidator(_restored), PlainSerializer(as_values, when_used="json")]
"""A field that holds part of a configuration, which is checked elsewhere and may hold instances."""


def one_of(registry: Registry[Any]) -> Any:
    """Return the type of a field that holds a component, for pydantic to validate.

    In a file, the value is one of the registered components, identified by its kind, or one that an
    installed package adds, or a class that is named ``module:Class``. In Python, it is any instance of their
    base class.
    """
    return _annotated(registry, registry.base, registry)


def one_of_classes(components: Iterable[type[Options]], base: type[Options]) -> Any:
    """Return the type of a field that holds an instance of one of some classes, and of no others.

    In a file, the value is identified by its kind; in Python, it is any instance of their base class.
    """
    return _annotated(components, base, None)


def _annotated(
    components: Iterable[type[Options]], base: type[Options], registry: Registry[Any] | None
) -> Any:
    known = tuple(components)
    if not known:  # all are from elsewhere
        return Annotated[base, _Component(base, registry)]
    union = functools.reduce(operator.or_, known)
    return Annotated[union, Discriminator("kind"), _Component(base, registry)]


@dataclass(frozen=True)
class _Component:
    """How pydantic reads, writes and describes a field that holds a component."""

    base: type[Options]
    registry: Registry[Any] | None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(as_values, when_used="json")
        return core_schema.with_info_wrap_validator_function(
            self._read, handler(source), serialization=written
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        registered = handler(schema)
        if self.registry is None:
            return registered
        return {"anyOf": [registered, _elsewhere(self.registry)]}

    def _read(self, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if info.mode == "json":
            if isinstance(info.context, Instances):
                value = info.context.restored(value)
            if isinstance(value, Options):
                return self._checked(value)
            own = self._own_class(value)
            if own is None and self.registry is not None and not self.registry.kinds:
                given = (
                    json.dumps(value["kind"]) if isinstance(value, Mapping) and "kind" in value else "missing"
                )
                raise SettingError("kind", shown(given), ELSEWHERE)
            return validate(value) if own is None else _read_own(own, value)
        if isinstance(value, self.base):
            return value
        raise PydanticKnownError("is_instance_of", {"class": self.base.__name__})

    def _checked(self, component: Options) -> Options:
        if not isinstance(component, self.base):
            accepted = f"an instance of {self.base.__name__}"
            raise SettingError("", f"an instance of {type(component).__name__}", accepted)
        check_class(type(component), self.base)
        return component

    def _own_class(self, value: Any) -> type[Options] | None:
        """Return the class that values name, unless it is a registered one."""
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if self.registry is None or not isinstance(kind, str) or kind in self.registry.kinds:
            return None
        named: type[Options] = self.registry.find(kind)
        return named


def _read_own(component: type[Options], values: Mapping[str, Any]) -> Options:
    """Return an instance of a class from elsewhere, made from the values in a file."""
    settings = {key: value for key, value in values.items() if key != "kind"}
    if component.__dataclass_fields__["kind"].default is MISSING:
        settings["kind"] = reference_of(component)
    try:
        return parse_json(component, json.dumps(settings))
    except InputError:
        raise
    except Exception as error:
        found = f"{reference_of(component)} raised {type(error).__name__}: {error}"
        raise SettingError("", found, "settings that the class accepts") from None


def _elsewhere(registry: Registry[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a component that is not registered."""
    kind = {"type": "string", "pattern": ":", "description": f"A user-defined {registry.name}, module:Class."}
    return {"type": "object", "properties": {"kind": kind}, "required": ["kind"]}
