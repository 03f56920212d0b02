"""Where in a configuration a pydantic error is: its location, followed through the types.

A location holds the keys as they are written. Between them it also names the kind of each chosen
component and the alternatives of a type: these lead to other types, but are not keys.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from dprec.components import Options, kind_of

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
        elif len(chosen) > 1 and part in chosen:
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
    """Return the type of each key of a group."""
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
    """Return the type of a list's items."""
    items = [get_args(part)[0] for part in _alternatives(hint) if get_origin(part) is list]
    return items[0] if items else None
