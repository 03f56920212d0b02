"""Parts of a configuration that a caller in Python gives in place of those of a file or a preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from dprec.binarization import Binarization
from dprec.components import Options
from dprec.datasets import Dataset, HeldRatings, InMemory
from dprec.errors import InputError, SettingError
from dprec.splits import Split
from simulation.configuration.models import EvaluationOptions, SimulationOptions

_MERGED = ("simulation", "evaluation")
"""Parts of which a caller replaces single keys; of the others, which have a kind, the whole."""


class GivenParts(TypedDict, total=False):
    """What a caller can give; what is left out, or None, stays as it is.

    Parameters
    ----------
    dataset : DataFrame, sparse matrix, arrays, Ratings, path, Dataset or mapping, optional
        The ratings: a data frame of pandas or polars with the columns user, item and rating, a SciPy matrix
        of shape (users, items), three arrays (users, items, ratings), a file of ratings, or a data set, as
        such or as in a file.
        For other columns, or a scale that is not found, see `InMemory.of`.
    test : DataFrame, sparse matrix, arrays, Ratings or path, optional
        The ratings to test on; `dataset` is then the train part, a file if this is one.
    split, binarization : Split, Binarization or mapping, optional
        Where the data set lacks the configuration's split and none is given, a random fifth is for testing.
    simulation, evaluation : SimulationOptions, EvaluationOptions or mapping, optional
        Keys to replace in these parts, such as ``{"backend": "local"}``.
    """

    dataset: HeldRatings | Dataset | Mapping[str, Any] | str | Path | None
    test: HeldRatings | str | Path | None
    split: Split | Mapping[str, Any] | None
    binarization: Binarization | Mapping[str, Any] | None
    simulation: SimulationOptions | Mapping[str, Any] | None
    evaluation: EvaluationOptions | Mapping[str, Any] | None


def checked_parts(given: GivenParts, epsilon: str) -> dict[str, Any]:
    """Return what a caller gives, by the keys of a configuration.

    Parameters
    ----------
    epsilon : str
        The configuration's key of the budget, for who takes it for a part.

    Returns
    -------
    dict
        Hold it until the configuration is checked: what is in memory is present only as long.

    Raises
    ------
    InputError
        When the ratings cannot be used, or a part is no mapping.
    TypeError
        When there is no such part.
    """
    if unknown := given.keys() - GivenParts.__annotations__.keys():
        raise TypeError(_unknown(sorted(unknown)[0], dict(given), epsilon))
    parts: dict[str, Any] = {name: part for name, part in given.items() if part is not None}
    dataset, test = parts.pop("dataset", None), parts.pop("test", None)
    for name, part in parts.items():
        if not isinstance(part, Mapping | Options):
            raise InputError(name, f"a value of type {type(part).__name__}", "a mapping, as in a file")
    if dataset is not None:
        parts["dataset"] = _dataset(dataset, test)
    elif test is not None:
        raise InputError("test", "a test part without a train part", "dataset, the train part, too")
    return parts


def _unknown(name: str, given: Mapping[str, Any], epsilon: str) -> str:
    """Return what is said of an argument that there is not: what has its effect, if it is a plain value."""
    found = f"no argument {name!r}; accepted: {', '.join(GivenParts.__annotations__)}"
    value, key = given[name], epsilon if name == "epsilon" else name
    if not isinstance(value, int | float | str):
        return found
    value = [value] if key == "epsilons" else value
    return f'{found}; settings of the configuration by overrides=["{key}={value}"]'


def _dataset(
    dataset: HeldRatings | Dataset | Mapping[str, Any] | str | Path, test: HeldRatings | str | Path | None
) -> Dataset | Mapping[str, Any]:
    """Return the data set that a caller gives, with its test part if there is one."""
    if isinstance(dataset, str | Path) and (test is None or isinstance(test, str | Path)):
        train = "path" if test is None else "train_path"
        return {"kind": "csv", train: str(dataset), **({} if test is None else {"test_path": str(test)})}
    if test is not None and isinstance(dataset, Mapping | Dataset | str | Path):
        accepted = "both parts as files, or both as data frames, matrices, arrays or Ratings"
        raise InputError("test", "a test part, beside a data set of another form", accepted)
    if isinstance(dataset, Mapping | Dataset):
        return dataset
    return _in_memory(dataset, test)


def _in_memory(ratings: HeldRatings, test: HeldRatings | None) -> InMemory:
    try:
        return InMemory.of(ratings, test)
    except SettingError as error:
        accepted = f"{error.accepted}, as dataset=InMemory.of(..., {error.key}=...) of dprec.datasets"
        raise InputError(error.key, error.found, accepted) from None


def replace_parts(values: dict[str, Any], parts: Mapping[str, Any]) -> None:
    """Replace parts of a configuration's values, in place.

    Parameters
    ----------
    values : dict
        As read from YAML.
    parts : mapping
        As from `checked_parts`.
    """
    for name, part in parts.items():
        if name in _MERGED:
            values[name] = entries_of(values.get(name) or {}) | entries_of(part)
        else:
            values[name] = part if isinstance(part, Options) else dict(part)
    if "dataset" in parts:
        values.setdefault("split", {"kind": "holdout"})


def entries_of(part: Options | Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a part by their keys, as in a file."""
    return part.entries() if isinstance(part, Options) else dict(part)


def replaces_dataset(keys: Sequence[str]) -> bool:
    """Return whether replacements, by their dotted keys, name other ratings."""
    return any(key in ("dataset", "dataset.kind") for key in keys)


def replaces_split(keys: Sequence[str]) -> bool:
    """Return whether replacements, by their dotted keys, say how ratings are split."""
    return any(f"{key}.".startswith("split.") for key in keys)
