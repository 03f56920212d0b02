"""The settings that trials may choose: given in a file, or derived from the options of the components."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprec.components import Options, option
from dprec.errors import InputError, SettingError, listed
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten, read_yaml

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Scalar = bool | int | float | str

_DERIVED = ("completion", "recommendation", "step")
"""Parts of a protocol whose numbers are tuned unless a file says otherwise."""

_DERIVED_NUMBERS = ("rank", "ridge", "step")
"""Numbers of a protocol itself that are."""

_EFFORT = frozenset({"iterations", "tolerance", "sweeps", "epochs", "max_rank", "epsilon", "failure"})
"""Numbers that say how long a computation goes on, or how private it is."""

_FACTOR = 4
"""How far a derived range reaches below and above the configured value."""


@dataclass(frozen=True, kw_only=True)
class Range(Options):
    """Numbers from low to high, both included; whole ones if both ends and the setting are whole."""

    low: int | float = option("Smallest value.")
    high: int | float = option("Largest value.")
    log: bool = option("Whether every ratio, instead of every difference, is as likely.", False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise SettingError("high", f"{self.high:g}", f"more than low, {self.low:g}")
        if self.log and self.low <= 0:
            raise SettingError("low", f"{self.low:g}", "more than 0, with log: true")

    def holds(self, value: object) -> bool:
        """Return whether a value may be chosen."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def as_written(self) -> dict[str, Any]:
        """Return the range as a file has it."""
        return {"low": self.low, "high": self.high, "log": self.log}

    def distribution(self) -> BaseDistribution:
        """Return what Optuna draws from."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choices:
    """Some values, each as likely."""

    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Return whether a value may be chosen."""
        return value in self.values

    def as_written(self) -> list[Scalar]:
        """Return the choices as a file has them."""
        return list(self.values)

    def distribution(self) -> BaseDistribution:
        """Return what Optuna draws from."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)


Space = dict[str, Range | Choices]
"""What may be chosen, by the dotted key of the setting."""


def read_space(path: Path) -> Space:
    """Read a search space: under every dotted key ``{low, high, log}`` or a list of values."""
    values = read_yaml(path)
    if not values:
        raise InputError(str(path), "no settings", "dotted keys with {low, high} or a list of values")
    return {key: _parsed(value, f"{path}: {key}", key) for key, value in values.items()}


def _parsed(value: Any, where: str, key: object) -> Range | Choices:
    named = isinstance(key, str) and key.startswith("protocol.") and not key.startswith("protocol.privacy")
    if not named:
        raise InputError(where, repr(key), "a setting of the protocol, such as protocol.completion.rank")
    if isinstance(value, list) and len(value) > 1 and all(map(_is_choice, value)):
        return Choices(tuple(value))
    if not isinstance(value, Mapping) or not value.keys() <= {"low", "high", "log"}:
        raise InputError(where, repr(value), "{low: ..., high: ..., log: true|false}, or a list of values")
    try:
        return Range(**value)
    except TypeError:
        raise InputError(where, repr(dict(value)), "low and high") from None
    except SettingError as error:
        raise InputError(f"{where}.{error.key}", error.found, error.accepted) from None


def _is_choice(value: object) -> bool:
    return isinstance(value, Scalar) and not (isinstance(value, float) and not math.isfinite(value))


def applicable(space: Space, configs: Mapping[str, RunConfig], source: str) -> dict[str, Space]:
    """Return the part of a space that each configuration has, or raise InputError for an unknown key."""
    known = {name: set(_settings(config)) for name, config in configs.items()}
    every = sorted(set().union(*known.values()))
    for key in space:
        if key not in every:
            raise InputError(f"{source}: {key}", "no such setting", listed(every, key))
    parts = {name: {key: space[key] for key in space if key in own} for name, own in known.items()}
    for name, part in parts.items():
        if not part:
            raise InputError(source, f"no setting of {name}", "at least one for every configuration")
    return parts


def _settings(config: RunConfig) -> dict[str, Any]:
    values = flatten(config.model_dump(mode="json")["protocol"], "protocol")
    return {key: value for key, value in values.items() if not key.startswith("protocol.privacy")}


def current(config: RunConfig, space: Space) -> dict[str, Scalar]:
    """Return the configured values of a space's settings, where the space has them."""
    values = _settings(config)
    return {key: values[key] for key in space if space[key].holds(values[key])}


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


def _ranges(options: Any, prefix: str, names: tuple[str, ...] | None = None) -> Iterator[tuple[str, Range]]:
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
            yield f"{prefix}.{field.name}", Range(low=low, high=high, log=True)
