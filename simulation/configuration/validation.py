"""Plain values against a model, and what pydantic finds wrong with them as one line."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from pydantic import BaseModel, ValidationError

from dprec.errors import InputError, SettingError
from dprec.options import Options
from dprec.registry import Registry, kind_of
from simulation.configuration.strict_yaml import MAPPING
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def validated(model: type[Any], values: Mapping[str, Any], source: str) -> Any:
    """Validate plain values against a model, with one line for the first error."""
    try:
        return model.model_validate_json(json.dumps(_text_keys(values), default=str))
    except ValidationError as error:
        raise _one_line(error, values, source, model) from None


def _one_line(error: ValidationError, values: Mapping[str, Any], source: str, model: type[Any]) -> InputError:
    """Turn the first error into one line that names the key as it is written."""
    first = error.errors()[0]
    keys, owner = _walk(first["loc"], values, model)
    where = f"{source}: {'.'.join(keys)}" if keys else source
    kind, context = first["type"], first.get("ctx", {})
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return InputError(where, "an unknown key", ", ".join(field_names(owner)))
    if kind in ("missing", "missing_argument"):
        return InputError(where, "missing", _described(owner, keys[-1]))
    if isinstance(nested := context.get("error"), SettingError):
        key = f"{where}.{nested.key}" if nested.key else where
        return InputError(key, nested.found, nested.accepted)
    if kind == "union_tag_invalid":
        found = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return InputError(f"{where}.kind", _shown(found), str(context["expected_tags"]).replace("'", ""))
    if kind == "union_tag_not_found":
        kinds = [kind for registry in _registries() if registry.name == keys[-1] for kind in registry.kinds]
        return InputError(f"{where}.kind", "missing", ", ".join(kinds))
    # A key of several types has an error for each; its value may be what any of them accepts.
    accepted = [_accepted(other) for other in error.errors() if _walk(other["loc"], values, model)[0] == keys]
    return InputError(where, _shown(first["input"]), ", or ".join(dict.fromkeys(accepted)))


_PLAIN_WORDS = (
    (r"^(Value error, |Input should be )", ""),
    (r"^(a valid integer|Unable to parse input string as an integer).*", "a whole number"),
    (r"^a valid number$", "a number"),
    (r"^a valid string$", "text"),
    (r"^a valid boolean$", "true or false"),
    (r"^a valid (array|list)$", "a list"),
    (r"^(an object|a valid dictionary).*", MAPPING),
    (r"^(greater|less) than or equal to", lambda found: {"greater": "at least", "less": "at most"}[found[1]]),
    (r"^(?:List|String|Value) should have (at (?:least|most) \d+ \w+).*", r"\1"),
    (r"^String should match pattern", "text that matches"),
)
"""What pydantic says, and how it is said where it is a setting that is wrong."""

_LONGEST_SHOWN = 80


def _accepted(error: ErrorDetails) -> str:
    """Return what one error says would be accepted, in the words of a configuration."""
    words = error["msg"]
    for pattern, plain in _PLAIN_WORDS:
        words = re.sub(pattern, plain, words)
    return words


def _shown(value: Any) -> str:
    """Return a value as it is written, in full where that is short."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _walk(
    location: Sequence[str | int], values: Mapping[str, Any], model: type[Any]
) -> tuple[list[str], type[Any]]:
    """Follow an error's location: the keys as written, and the class that owns the last of them.

    Between the keys, a location names the kinds that were chosen and the alternatives of a type.
    """
    components = {kind_of(part): part for registry in _registries() for part in registry}
    owner: type[Any] = model
    keys: list[str] = []
    here: Any = values
    chosen: Any = None
    for position, part in enumerate(location):
        if isinstance(part, int) and isinstance(here, list):
            keys[-1] += f"[{part}]"
            here = here[part]
            continue
        if part == chosen:
            chosen = None
            continue
        known = part in field_names(owner)
        written = isinstance(here, Mapping) and part in here
        if not (known or written or position == 0):
            owner = components.get(str(part), owner)
            continue
        keys.append(str(part))
        here = here.get(part) if isinstance(here, Mapping) else None
        chosen = here.get("kind") if isinstance(here, Mapping) else None
        inner = _plain_types(owner).get(str(part))
        if position < len(location) - 1:
            owner = components.get(str(chosen), inner or owner)
    return keys, owner


def _registries() -> list[Registry[Any]]:
    return [*COMPONENT_REGISTRIES, PROTOCOLS]


def _plain_types(owner: type[Any]) -> dict[str, type[Any]]:
    """Return the classes of the fields that hold options of one fixed kind, or a list of them."""
    if dataclasses.is_dataclass(owner):
        hints = get_type_hints(owner)
    else:
        hints = {name: field.annotation for name, field in owner.model_fields.items()}
    found = {
        name: [part for part in _parts(hint) if issubclass(part, Options | BaseModel)]
        for name, hint in hints.items()
    }
    return {name: classes[0] for name, classes in found.items() if len(classes) == 1}


def _parts(hint: Any) -> Iterator[type[Any]]:
    """Yield the classes that a type is made of."""
    for part in get_args(hint):
        yield from _parts(part)
    if isinstance(hint, type) and not get_args(hint):
        yield hint


def field_names(owner: type[Any]) -> list[str]:
    """Return the keys of a model's or a component's settings, as they are written."""
    return list(_descriptions(owner))


def _described(owner: type[Any], key: str) -> str:
    return _descriptions(owner).get(key) or "a value"


def _descriptions(owner: type[Any]) -> dict[str, str | None]:
    """Return what is said of each field, by the name that it is written under."""
    if dataclasses.is_dataclass(owner):
        return {field.name: field.metadata.get("description") for field in dataclasses.fields(owner)}
    return {field.alias or name: field.description for name, field in owner.model_fields.items()}


def _text_keys(values: Any) -> Any:
    """Return plain values with every key as text: YAML also has numbers, dates and nothing as keys."""
    if isinstance(values, Mapping):
        return {str(key): _text_keys(value) for key, value in values.items()}
    return [_text_keys(value) for value in values] if isinstance(values, list) else values
