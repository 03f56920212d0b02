"""Loads a configuration, given as a file, a preset's name or plain values, into the checked model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dprec.errors import InputError
from dprec.splits import fitting_split
from simulation.configuration.loading import replace_parts, replaces_dataset, replaces_split
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.presets import find_configuration
from simulation.configuration.strict_yaml import apply_override, check_overrides, read_yaml


def load(
    config: RunConfig | Mapping[str, Any] | str | Path,
    overrides: Sequence[str] = (),
    parts: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Load the configuration of a run.

    Where the data set is replaced and the split is not, the split becomes one that the data set admits.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A file, the name of a preset, the values that a file would hold, or a loaded configuration. In a
        mapping, a component may also be an instance.
    overrides : sequence of str
        ``dotted.key=value`` replacements; each value is YAML.
    parts : mapping, optional
        Parts to replace before these, as from `simulation.configuration.loading.checked_parts`.

    Returns
    -------
    RunConfig

    Raises
    ------
    InputError
        Naming the file, the key, what was found and what is accepted.
    """
    check_overrides(overrides)
    if isinstance(config, RunConfig):
        if not overrides and not parts:
            return config
        config = dict(config)
    values, source = _values_of(config)
    if "protocols" in values and "protocol" not in values:
        raise InputError(source, "the configuration of a comparison", f"a run's, or: dprec compare {source}")
    replace_parts(values, parts or {})
    for override in overrides:
        apply_override(values, override)
    loaded = parse_config(values, source)
    replaced = [*(parts or {}), *(override.partition("=")[0] for override in overrides)]
    if replaces_dataset(replaced) and not replaces_split(replaced):
        loaded = loaded.model_copy(update={"split": fitting_split(loaded.dataset, loaded.split)})
    return loaded


def _values_of(config: Mapping[str, Any] | str | Path) -> tuple[dict[str, Any], str]:
    """Return the values of a configuration that may be changed, and where they come from."""
    if isinstance(config, Mapping):
        return copy.deepcopy(dict(config)), "configuration"
    if not isinstance(config, str | Path):
        accepted = "a file, the name of a preset, a mapping or a RunConfig"
        raise InputError("config", f"a value of type {type(config).__name__}", accepted)
    path = find_configuration(config)
    return read_yaml(path), str(path)
