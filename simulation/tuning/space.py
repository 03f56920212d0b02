"""Which settings trials may choose: as a file says, or around the numbers that are configured."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dprec.components import Options
from dprec.errors import InputError, listed
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.files import Document, parse_document

Scalar = bool | int | float | str

Space = dict[str, Any]
"""What may be chosen, by the dotted key of the setting: distributions of Optuna."""

_DERIVED = ("completion", "recommendation", "step")
"""Parts of a protocol whose numbers are tuned unless a file says otherwise."""

_DERIVED_NUMBERS = ("rank", "ridge", "step")
"""Numbers of a protocol itself that are."""

_EFFORT = frozenset({"iterations", "tolerance", "sweeps", "epochs", "max_rank", "epsilon", "failure"})
"""Numbers that say how long a computation goes on, or how private it is."""

_FACTOR = 4
"""How far a derived range reaches below and above the configured value."""


def read_space(path: Path, configs: Mapping[str, RunConfig]) -> dict[str, Space]:
    """Read a search space: under every dotted key ``{low, high, log}`` or a list of values.

    Numbers are whole if both ends are, and with ``log`` every ratio, instead of every difference, is as
    likely. Returns the part of the space that each configuration has. Raises InputError, also for a key that
    none of them has, and a configuration that has none of the keys.
    """
    values = read_yaml(path)
    if not values:
        raise InputError(str(path), "no settings", "dotted keys with {low, high} or a list of values")
    space = {key: _parsed(value, f"{path}: {key}", key) for key, value in values.items()}
    settings = {name: _settings(config).keys() for name, config in configs.items()}
    every = sorted(set[str]().union(*settings.values()))
    for key in space:
        if key not in every:
            raise InputError(f"{path}: {key}", "no such setting", listed(every, key))
    parts = {name: {key: space[key] for key in space if key in keys} for name, keys in settings.items()}
    for name, part in parts.items():
        if not part:
            raise InputError(str(path), f"no setting of {name}", "at least one for every configuration")
    return parts


class _Range(Document):
    low: int | float
    high: int | float
    log: bool = False


def _parsed(value: Any, where: str, key: object) -> Any:
    """Return what Optuna draws from."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(key, str) or not key.startswith("protocol.") or key.startswith("protocol.privacy"):
        raise InputError(where, repr(key), "a setting of the protocol, such as protocol.completion.rank")
    if isinstance(value, list) and len(value) > 1 and all(isinstance(choice, Scalar) for choice in value):
        return CategoricalDistribution(value)
    if not isinstance(value, Mapping):
        raise InputError(where, repr(value), "{low: ..., high: ..., log: true|false}, or a list of values")
    limits = parse_document(_Range, json.dumps(value, default=str), where)
    if not limits.low < limits.high:
        raise InputError(f"{where}.high", f"{limits.high:g}", f"more than low, {limits.low:g}")
    if limits.log and limits.low <= 0:
        raise InputError(f"{where}.low", f"{limits.low:g}", "more than 0, with log: true")
    if isinstance(limits.low, int) and isinstance(limits.high, int):
        return IntDistribution(limits.low, limits.high, log=limits.log)
    return FloatDistribution(limits.low, limits.high, log=limits.log)


def as_written(space: Space) -> dict[str, Any]:
    """Return a space as a file has it."""
    return {
        key: {"low": distribution.low, "high": distribution.high, "log": distribution.log}
        if hasattr(distribution, "low")
        else [*distribution.choices]
        for key, distribution in space.items()
    }


def _settings(config: RunConfig) -> dict[str, Any]:
    values = flatten(config.model_dump(mode="json")["protocol"], "protocol")
    return {key: value for key, value in values.items() if not key.startswith("protocol.privacy")}


def current(config: RunConfig, space: Space) -> dict[str, Scalar]:
    """Return the configured values of a space's settings, where the space has them."""
    values = {key: value for key, value in _settings(config).items() if key in space}
    return {
        key: values[key]
        for key, distribution in space.items()
        if (
            isinstance(values[key], int | float) and distribution.low <= values[key] <= distribution.high
            if hasattr(distribution, "low")
            else values[key] in distribution.choices
        )
    }


def derived_space(config: RunConfig) -> Space:
    """Return ranges around the numbers of a protocol's completion, factors and steps.

    Each reaches from a quarter of the configured value to four times it, within the setting's bounds, every
    ratio as likely. A setting of 0 stays, as do those that bound the work.
    """
    space: Space = dict(_ranges(config.protocol, "protocol", _DERIVED_NUMBERS))
    for part in _DERIVED:
        options = getattr(config.protocol, part, None)
        if isinstance(options, Options):
            space |= _ranges(options, f"protocol.{part}")
    if not space:
        found = "no configured number of its completion or steps to tune"
        raise InputError(config.name, found, "a search space (--space), or a protocol with one")
    return space


def _ranges(options: Any, prefix: str, names: tuple[str, ...] | None = None) -> Iterator[tuple[str, Any]]:
    from optuna.distributions import FloatDistribution, IntDistribution

    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        wanted = field.name not in _EFFORT if names is None else field.name in names
        if not wanted or isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            continue
        low = max(value / _FACTOR, field.metadata.get("ge", 0))
        high = min(value * _FACTOR, field.metadata.get("le", float("inf")))
        if "lt" in field.metadata:
            # A share below 1 halves its distance from the bound at most.
            high = min(high, (value + field.metadata["lt"]) / 2)
        if isinstance(value, int):
            low, high = max(1, round(low)), int(high)
        if low < high:
            kind = IntDistribution if isinstance(value, int) else FloatDistribution
            yield f"{prefix}.{field.name}", kind(low, high, log=True)
