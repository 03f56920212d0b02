"""Plain values against a model, and the first error in them as one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from dprec.errors import InputError, SettingError
from dprec.validation import accepted_by, listed, shown
from simulation.configuration.locations import descriptions, field_names, follow

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ModelT = TypeVar("ModelT", bound=BaseModel)

_DEEPEST = 50
"""Levels of mappings and lists; no configuration has ten."""


def validated(model: type[ModelT], values: Mapping[str, Any], source: str) -> ModelT:
    """Validate plain values against a model.

    Parameters
    ----------
    model : type
    values : mapping
        As YAML gives them.
    source : str
        Where they are from, for the error.

    Raises
    ------
    InputError
        One line for the first error: the source and key, what was found and what is accepted.
    """
    try:
        # As JSON, because only there does a strict model take a mapping for a component.
        text = json.dumps(_plain(values, source), default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(source, "half of a Unicode surrogate pair", "text that is whole") from None
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise _one_line(error.errors(), model, source) from None


def _one_line(errors: list[ErrorDetails], model: type[BaseModel], source: str) -> InputError:
    """Turn the first error into one line that names the key as it is written."""
    first = errors[0]
    place = follow(first["loc"], model)
    key = ".".join(place.keys)
    with_kind = f"{key}.kind"
    match first["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            accepted = listed(field_names(place.group), place.keys[-1])
            found = "an unknown key"
        case "missing" | "missing_argument":
            accepted = descriptions(place.group)[place.keys[-1]] or "a value"
            found = "missing"
        case "union_tag_invalid":
            kind = first["input"]["kind"]
            key, found, accepted = with_kind, _as_written(kind), listed(place.kinds, kind)
        case "union_tag_not_found":
            key, found, accepted = with_kind, "missing", ", ".join(place.kinds)
        case "value_error":
            # A component refuses what it is given, and names its own setting.
            raised: SettingError = first["ctx"]["error"]
            key, found, accepted = f"{key}.{raised.key}".rstrip("."), raised.found, raised.accepted
        case _:
            # A key of several types has an error for each; its value may be what any of them accepts.
            alike = [accepted_by(other) for other in errors if follow(other["loc"], model).keys == place.keys]
            found, accepted = _as_written(first["input"]), ", or ".join(dict.fromkeys(alike))
    return InputError(f"{source}: {key}" if key else source, found, accepted)


def _as_written(value: Any) -> str:
    """Return a value as it is written in a configuration."""
    return shown(json.dumps(value) if value is None or isinstance(value, bool) else repr(value))


def _plain(values: Any, source: str, depth: int = 0) -> Any:
    """Return plain values with every key as text: YAML also has numbers, dates and nothing as keys."""
    if depth > _DEEPEST:
        raise InputError(source, "values nested too deeply", f"at most {_DEEPEST} levels")
    if isinstance(values, Mapping):
        return {str(key): _plain(value, source, depth + 1) for key, value in values.items()}
    return [_plain(value, source, depth + 1) for value in values] if isinstance(values, list) else values
