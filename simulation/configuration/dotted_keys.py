"""Dotted keys: flatten, look up and replace the nested values of a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dprec.components import Options
from dprec.errors import InputError
from simulation.configuration.strict_yaml import parse_yaml


def check_overrides(overrides: Sequence[str]) -> None:
    """Refuse overrides that are no sequence of texts: a text is a sequence too, of its characters.

    Raises
    ------
    InputError
    """
    if isinstance(overrides, str) or not all(isinstance(override, str) for override in overrides):
        raise InputError("overrides", repr(overrides), 'a list of texts, such as ["seed=1"]')


def apply_override(values: dict[str, Any], override: str) -> None:
    """Replace one value, in place; see `simulation.load`."""
    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        raise InputError("overrides", repr(override), "dotted.key=value")
    value = parse_yaml(text, f"overrides {key}")
    for name, held in flatten(value).items():
        if held is None and ":" in name:  # YAML takes {kind:csv} for a key without a value
            first, _, rest = name.rpartition(".")[2].partition(":")
            raise InputError(f"overrides {key}", repr(text), f"a space after a colon: {first}: {rest}")
    replace_value(values, key, value, "overrides")


def flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as a single one with dotted keys."""
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        key: value
        for name, inner in values.items()
        for key, value in flatten(inner, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def at(values: Any, *keys: str) -> Any:
    """Return the value under a path of keys in nested mappings; None if there is none."""
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values


def replace_value(values: dict[str, Any], key: str, value: Any, source: str) -> None:
    """Replace the value under a dotted key, in place.

    Missing mappings on the way are created, and components on the way become mappings.
    """
    *parents, last = key.split(".")
    target: Any = values
    for position, part in enumerate(parents):
        if isinstance(target.setdefault(part, {}), Options):
            target[part] = target[part].entries()
        target = target[part]
        if not isinstance(target, dict):
            where = ".".join(parents[: position + 1])
            raise InputError(f"{source} {key}", f"{where} is {target!r}", "a key below a mapping")
    target[last] = value
