"""A comparison on other ratings than its own: what suits them runs, the rest is listed with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dprec.errors import InputError
from dprec.splits import fitting_split
from simulation.comparison.definition import ComparisonConfig, Entry
from simulation.comparison.templates import Source, Template
from simulation.configuration.loading import entries_of
from simulation.configuration.strict_yaml import flatten

_DATASET = "dataset"


@dataclass(frozen=True)
class LeftOut:
    """A protocol that does not suit the ratings."""

    name: str
    """Of its entry."""
    reason: str


def with_fitting_split(config: ComparisonConfig) -> ComparisonConfig:
    """Return a comparison whose split its data set has; folds go with the split that they are of."""
    split = fitting_split(config.dataset, config.split)
    if split == config.split:
        return config
    return config.model_copy(update={"split": split, "folds": None})


def suited(entry: Entry, shared: Mapping[str, Any], source: Source) -> Template | LeftOut:
    """Return an entry on other ratings: without what it says of the data set that it was written for.

    Parameters
    ----------
    shared : mapping
        What the comparison sets for every protocol, with the other data set.
    """
    changes, dataset = flatten(entry.changes), entries_of(shared[_DATASET])
    own = [key for key in changes if key.startswith(f"{_DATASET}.")]
    kind = changes.get(f"{_DATASET}.kind")
    if kind is not None and kind != dataset.get("kind"):
        return LeftOut(entry.name, f"it is for the ratings of {kind}")
    plain = _without(entry, [key for key in own if key.split(".")[1] in dataset])
    try:
        return Template.of(plain, shared, source)
    except InputError:
        return Template.of(_without(entry, own), shared, source)


def _without(entry: Entry, keys: Sequence[str]) -> Entry:
    """Return an entry without some of its changes, by their dotted keys."""
    changes = {
        key: value
        for key, value in entry.changes.items()
        if not any(f"{dropped}.".startswith(f"{key}.") for dropped in keys)
    }
    return entry.model_copy(update={"changes": changes})
