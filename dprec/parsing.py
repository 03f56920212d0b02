"""Settings from JSON: checked against the class that declares them, with the first error in plain words."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from dprec.components import Options
from dprec.components.settings import descriptions, field_names, follow
from dprec.errors import SettingError, accepted_by, listed, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
    """Return a value as it is written in a file."""
    return shown(json.dumps(value) if value is None or isinstance(value, bool) else repr(value))
