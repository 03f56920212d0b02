"""The types of fields that hold a component: one that is registered, or a class of somebody's own."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from dprec.components import Options, Registry, as_values, parse_json, reference_of
from dprec.components.user_defined import check_class
from dprec.errors import InputError, SettingError

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
    union = functools.reduce(operator.or_, components)
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
    """Return an instance of a class from elsewhere, made from the values in a file.

    Raises
    ------
    SettingError
        When a setting is not accepted.
    """
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
    kind = {"type": "string", "pattern": ":", "description": f"A {registry.name} of one's own, module:Class."}
    return {"type": "object", "properties": {"kind": kind}, "required": ["kind"]}
