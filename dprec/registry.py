"""One registry per kind of component: where a component gets its name in configurations."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Discriminator, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticKnownError

from dprec.errors import InputError
from dprec.options import Options
from dprec.validation import listed

OptionsT = TypeVar("OptionsT", bound=Options)


class Registry(Generic[OptionsT]):
    """The components of one kind, by the name that configurations use.

    Parameters
    ----------
    name : str
        What the components are, in the singular ("mechanism").
    components : sequence of Options subclasses
        Each has a ``kind`` field whose default is its name.
    """

    def __init__(self, name: str, components: Sequence[type[OptionsT]]) -> None:
        self.name = name
        self._components = {kind_of(component): component for component in components}
        if len(self._components) != len(components):
            raise TypeError(f"two components share a kind in the {name} registry")

    def __iter__(self) -> Iterator[type[OptionsT]]:
        return iter(self._components.values())

    @property
    def kinds(self) -> list[str]:
        """The registered names, in the order of registration."""
        return list(self._components)

    def __getitem__(self, kind: str) -> type[OptionsT]:
        if kind not in self._components:
            raise InputError(self.name, repr(kind), listed(self.kinds, kind))
        return self._components[kind]


def one_of(components: Iterable[type[Options]], base: type[Options]) -> Any:
    """Return the type of a field that holds a component, for pydantic to validate.

    In a file, the value is one of the components, identified by its kind; in Python, it is any instance
    of their common base class.

    Parameters
    ----------
    components : iterable of Options subclasses
    base : type
    """

    def instance_or_values(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if info.mode == "json":
            return validate(value)
        if isinstance(value, base):
            return value
        raise PydanticKnownError("is_instance_of", {"class": base.__name__})

    registered = functools.reduce(operator.or_, components)
    return Annotated[registered, Discriminator("kind"), WrapValidator(instance_or_values)]


def kind_of(component: type[Options]) -> str:
    """Return the name under which a component is configured."""
    return str(component.__dataclass_fields__["kind"].default)


def summary_of(component: type[Options]) -> str:
    """Return the first line of a component's docstring, for listings, without reference keys."""
    return re.sub(r" \[[a-z]+[0-9]{4}\]", "", (component.__doc__ or "").strip().splitlines()[0])
