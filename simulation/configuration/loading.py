"""Loads a configuration: a file, a preset or plain values, with parts that a caller replaces."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict

from dprec.binarization import Binarization
from dprec.components import Options
from dprec.datasets import Dataset, HeldRatings, InMemory, holds_profiles
from dprec.errors import InputError, SettingError
from dprec.schedules import Schedule
from dprec.splits import Split, fitting_split
from simulation.configuration import strict_yaml
from simulation.configuration.models import EvaluationOptions, RunConfig, SimulationOptions, parse_config

_MERGED = ("simulation", "evaluation")
"""Parts of which a caller replaces single keys; of the others, which have a kind, the whole."""


_RENAMED = {"population": "users_a_day"}
"""What old arguments are called now."""

_ARGUMENTS = ("output", "overrides", "resume", "save_split", "users_a_day")
"""Further arguments of those who take parts."""

DATASET = "dataset.yaml"
"""File with settings of a data set in the folder of its parts."""


class GivenParts(TypedDict, total=False):
    """What a caller can give; what is left out, or None, stays as it is.

    Parameters
    ----------
    dataset : DataFrame, list of tuples, sparse matrix, arrays, Ratings, path, Dataset or mapping, optional
        The ratings: a data frame of pandas or polars with the columns user, item and rating, a list of tuples
        (user, item, rating), a SciPy matrix of shape (users, items), three arrays (users, items, ratings), a
        series of pandas that is indexed by user and item, a mapping from users to their ratings by item, a
        file of ratings, or a data set, as such or as in a file.
        For other columns, or a scale that is not found, see `InMemory.of`.
    test : DataFrame, sparse matrix, arrays, Ratings or path, optional
        The ratings to test on; `dataset` is then the train part, a file if this is one.
    schedule : Schedule or mapping, optional
        When devices are asked, in the course of time; the split is then not used.
    split, binarization : Split, Binarization or mapping, optional
        Where the data set lacks the configuration's split and none is given, a random fifth is for testing.
    simulation, evaluation : SimulationOptions, EvaluationOptions or mapping, optional
        Keys to replace in these parts, such as ``{"backend": "local"}``.
    """

    dataset: HeldRatings | Dataset | Mapping[str, Any] | str | Path | None
    test: HeldRatings | str | Path | None
    schedule: Schedule | Mapping[str, Any] | None
    split: Split | Mapping[str, Any] | None
    binarization: Binarization | Mapping[str, Any] | None
    simulation: SimulationOptions | Mapping[str, Any] | None
    evaluation: EvaluationOptions | Mapping[str, Any] | None


def checked_parts(given: GivenParts, epsilon: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a caller gives, by the keys of a configuration.

    ``epsilon``: the configuration's key of the budget, for who takes it for a part. ``overrides``: those of
    `load`, among which a rule of what counts as positive says how numbers in memory are read. Hold the result
    until the configuration is checked: what is in memory is present only as long. Raises InputError when the
    ratings cannot be used, or a part is no mapping. Raises TypeError when there is no such part.
    """
    strict_yaml.check_overrides(overrides)
    argument_names = GivenParts.__annotations__
    if unknown := sorted(given.keys() - argument_names):
        name, value = unknown[0], dict(given)[unknown[0]]
        if now := _RENAMED.get(name):
            raise TypeError(f"argument {name!r}: an old name; accepted: {now}")
        message = f"no argument {name!r}; accepted: {', '.join(argument_names)}"
        if meant := get_close_matches(name, _ARGUMENTS, n=1):
            message += f"; did you mean {meant[0]}?"
        elif isinstance(value, int | float | str):  # which may have its effect as a setting
            key = epsilon if name == "epsilon" else name
            written = f"{key}={[value] if key == 'epsilons' else value}"
            message += f'; settings of the configuration by overrides=["{written}"]'
        raise TypeError(message)
    parts: dict[str, Any] = {name: part for name, part in given.items() if part is not None}
    dataset, test = parts.pop("dataset", None), parts.pop("test", None)
    for name, part in parts.items():
        if not isinstance(part, Mapping | Options):
            raise InputError(name, f"a value of type {type(part).__name__}", "a mapping, as in a file")
    if dataset is not None:
        parts["dataset"] = _dataset(dataset, test, overrides)
    elif test is not None:
        raise InputError("test", "a test part without a train part", "dataset, the train part, too")
    return parts


def _dataset(
    dataset: HeldRatings | Dataset | Mapping[str, Any] | str | Path,
    test: HeldRatings | str | Path | None,
    overrides: Sequence[str],
) -> Dataset | Mapping[str, Any]:
    """Return the data set that a caller gives, with its test part if there is one."""
    if isinstance(dataset, str | Path) and test is None:
        return dataset_at(str(dataset))
    if isinstance(dataset, str | Path) and isinstance(test, str | Path):
        return {"kind": "csv", "train_path": str(dataset), "test_path": str(test)}
    if isinstance(dataset, Mapping) and holds_profiles(dataset):
        return _in_memory(dataset, test, overrides)
    if test is not None and isinstance(dataset, Mapping | Dataset | str | Path):
        accepted = "both parts as files, or both as data frames, matrices, arrays or Ratings"
        raise InputError("test", "a test part, beside a data set of another form", accepted)
    return dataset if isinstance(dataset, Mapping | Dataset) else _in_memory(dataset, test, overrides)


def _in_memory(dataset: Any, test: Any, overrides: Sequence[str]) -> Dataset:
    """Return the data set of ratings that a caller holds."""
    values: dict[str, Any] = {}
    for override in overrides:
        if override.startswith("dataset.positive="):
            strict_yaml.apply_override(values, override)
    rule = strict_yaml.at(values, "dataset", "positive")
    try:
        return InMemory.of(dataset, test, positive=rule if isinstance(rule, str) else None)
    except SettingError as error:
        accepted = f"{error.accepted}, as dataset=InMemory.of(..., {error.key}=...) of dprec.datasets"
        raise InputError(error.key, error.found, accepted) from None


def changed(values: dict[str, Any], overrides: Sequence[str], parts: Mapping[str, Any] | None) -> list[str]:
    """Replace parts of a configuration's values and then single ones, in place; return their dotted keys."""
    parts = parts or {}
    for name, part in parts.items():
        if name in _MERGED:
            values[name] = entries_of(values.get(name) or {}) | entries_of(part)
        else:
            values[name] = part if isinstance(part, Options) else dict(part)
    if "dataset" in parts:
        values.setdefault("split", {"kind": "holdout"})
    for override in overrides:
        strict_yaml.apply_override(values, override)
        if isinstance(file := values.get("dataset"), str):
            values["dataset"] = dataset_at(file)
    return [*parts, *(override.partition("=")[0] for override in overrides)]


def dataset_at(path: str) -> dict[str, Any]:
    """Return the settings of a file of ratings, or of the folder of their parts, which may have its own."""
    file = os.path.join(os.path.expanduser(path), DATASET)
    settings = strict_yaml.read_yaml(Path(file)) if os.path.isfile(file) else {}
    return {**settings, "kind": "csv", "path": path}


def entries_of(part: Options | Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a part by their keys, as in a file."""
    return part.entries() if isinstance(part, Options) else dict(part)


def replaces_dataset(keys: Sequence[str]) -> bool:
    """Return whether replacements, by their dotted keys, name other ratings."""
    return any(key in ("dataset", "dataset.kind") for key in keys)


def needs_fitting_split(keys: Sequence[str]) -> bool:
    """Return whether replacements name other ratings, and not how these are split."""
    return replaces_dataset(keys) and not any(f"{key}.".startswith("split.") for key in keys)


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

    Raises
    ------
    InputError
        Naming the file, the key, what was found and what is accepted.
    """
    strict_yaml.check_overrides(overrides)
    if isinstance(config, RunConfig):
        if not overrides and not parts:
            return config
        config = dict(config)
    if isinstance(config, Mapping):
        values, source = copy.deepcopy(dict(config)), "configuration"
    elif isinstance(config, str | Path):
        path = strict_yaml.find_configuration(config)
        values, source = strict_yaml.read_yaml(path), str(path)
    else:
        accepted = "a file, the name of a preset, a mapping or a RunConfig"
        raise InputError("config", f"a value of type {type(config).__name__}", accepted)
    if "protocols" in values and "protocol" not in values:
        raise InputError(source, "the configuration of a comparison", f"a run's, or: dprec compare {source}")
    replaced = changed(values, overrides, parts)
    with strict_yaml.overrides_named(overrides):
        loaded = parse_config(values, source)
    if needs_fitting_split(replaced):
        loaded = loaded.model_copy(update={"split": fitting_split(loaded.dataset, loaded.split)})
    return loaded
