"""Validates plain values against a model, and reports the first error in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from dprec.components import Instances, Options, is_ours, parse_json, plain
from dprec.errors import InputError, SettingError

ModelT = TypeVar("ModelT", bound=BaseModel)

_DEEPEST = 50
"""Deepest nesting of mappings and lists; no configuration reaches ten."""


def validated(model: type[ModelT], values: Mapping[str, Any], source: str) -> ModelT:
    """Validate plain values against a model.

    Parameters
    ----------
    values : mapping
        As read from YAML; those made in Python may hold components and numbers of NumPy.
    source : str
        Where they come from, for the error.

    Raises
    ------
    InputError
        One line for the first error: the source and key, what was found and what is accepted.
    """
    instances = Instances()
    try:
        # As JSON, because only from JSON does a strict model take a mapping for a component.
        plain_values = _plain(values, source, instances)
        text = json.dumps(plain_values, default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(source, "an unpaired Unicode surrogate", "valid Unicode text") from None
    try:
        return parse_json(model, text, instances)
    except SettingError as error:
        where = f"{source}: {error.key}" if error.key else source
        raise InputError(where, error.found, error.accepted) from None


def _plain(values: Any, source: str, instances: Instances, depth: int = 0) -> Any:
    """Return plain values with every key as text: in YAML, a key may also be a number, a date or null.

    Configurations made in Python may hold numbers and arrays of NumPy, settings, and components, of which
    those from elsewhere stay instances: no name may lead to their class.
    """
    values = values.tolist() if isinstance(values, np.ndarray) else plain(values)
    if isinstance(values, Options):
        values = values.entries() if is_ours(type(values)) else instances.keep(values)
    if depth > _DEEPEST:
        raise InputError(source, "values nested too deeply", f"at most {_DEEPEST} levels")
    if isinstance(values, Mapping):
        return {str(key): _plain(value, source, instances, depth + 1) for key, value in values.items()}
    return (
        [_plain(value, source, instances, depth + 1) for value in values]
        if isinstance(values, list)
        else values
    )
