"""The entries of a comparison as configurations, on its ratings or on others, and their cells."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dprec.accounting import MatchedBudget
from dprec.errors import InputError, SettingError, within
from dprec.splits import fitting_split
from simulation.comparison.definition import ComparisonConfig, Entry
from simulation.configuration.loading import entries_of
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.presets import presets
from simulation.configuration.strict_yaml import flatten, read_yaml, replace_value
from simulation.storage.directories import cell_key

SHARED = ("dataset", "split", "binarization", "simulation", "evaluation")
"""Keys of a comparison that replace those of every preset."""

COMPOSITION = "protocol.privacy.composition"
"""Key of how the draws about a user share a budget."""


@dataclass(frozen=True)
class Source:
    """Where a comparison comes from."""

    file: Path
    """Its file; presets may lie next to it."""
    typed: str
    """What was typed for it, such as the name of a file of ratings: errors begin with it."""

    def __str__(self) -> str:
        return self.typed


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    key: str
    """Name of its directory in cells/."""
    protocol: str
    """Name of the protocol's entry."""
    epsilon: float | None
    """The budget; None for a protocol without privacy, which runs once rather than per budget."""
    fold: int | str | None
    seed: int
    config: RunConfig
    panel: str | None = None
    baseline: str | None = None
    """Name of the baseline that it is; None for any other protocol."""
    population: str | None = None
    """Of which population it is; None for the comparison's own ratings."""
    quick: bool = False
    """Whether it is of a comparison that runs only some of its cells."""
    where: str = field(default="", compare=False)
    """File and entry, for errors; cells of two files may be equal."""


@dataclass(frozen=True)
class Template:
    """An entry's preset with its changes and with what the comparison shares."""

    entry: Entry
    values: dict[str, Any]
    """The configuration as plain values."""
    run: RunConfig
    """The same configuration, checked."""
    where: str
    """File and entry, for errors."""
    population: str | None = None
    """Of which population it is; None for the comparison's own ratings."""

    @classmethod
    def of(cls, entry: Entry, shared: Mapping[str, Any], source: Source) -> Template:
        """Take the protocol of an entry, its own or its preset's, and apply its changes.

        Parameters
        ----------
        shared : mapping
            What the comparison's file sets of `SHARED`.
        """
        if entry.protocol is not None:
            own: dict[str, Any] = {"protocol": copy.deepcopy(entry.protocol)}
        else:
            own = read_yaml(_preset_file(entry.preset or entry.name, source))
        values = {**own, **copy.deepcopy(dict(shared)), "name": entry.name}
        where = f"{source}: {entry.name}"
        for key, value in entry.changes.items():
            replace_value(values, key, value, where)
        return cls(entry, values, parse_config(values, where), where)

    def cell(self, budget: MatchedBudget | None, fold: int | str | None, seed: int) -> Cell:
        """Return the cell at a budget, a fold and a seed; None leaves the preset's value.

        An entry that sets its composition to the sum keeps it at every delta.
        """
        protocol, split = self.run.protocol, self.run.split
        if budget is not None:
            if flatten(self.entry.changes).get(COMPOSITION) == "sum":
                budget = replace(budget, delta=None)
            with of_entry(self.where), within("protocol"):
                protocol = protocol.at_budget(budget)
        epsilon = None if budget is None else budget.epsilon
        if fold is not None:
            values = copy.copy(self.values) | {"split": copy.copy(self.values["split"])}
            replace_value(values, "split.fold", fold, self.where)
            split = parse_config(values, self.where).split
        return Cell(
            key=cell_key(self.entry.name, epsilon, fold, seed, self.population),
            protocol=self.entry.name,
            epsilon=epsilon,
            fold=fold,
            seed=seed,
            config=self.run.model_copy(update={"seed": seed, "protocol": protocol, "split": split}),
            panel=self.entry.panel,
            baseline=protocol.baseline,
            where=self.where,
            population=self.population,
        )


def middle(epsilons: Sequence[float | None]) -> float | None:
    """Return the middle one of some budgets, by size; of two, the larger. None stands alone."""
    ordered = sorted(epsilons, key=lambda epsilon: epsilon or 0.0)
    return ordered[len(ordered) // 2]


@contextmanager
def of_entry(where: str) -> Iterator[None]:
    """Name the file and the entry of a comparison in any `SettingError` raised in the block."""
    try:
        yield
    except SettingError as error:
        raise InputError(f"{where}: {error.where}", error.found, error.accepted) from None


def _preset_file(name: str, source: Source) -> Path:
    """Return the file of an entry: next to the comparison's file, one folder up, or a preset; or a path."""
    here = source.file.absolute()
    if name.endswith((".yaml", ".yml")):
        return here.parent / Path(name).expanduser()
    beside = [folder / f"{name}.yaml" for folder in here.parents[:2]]
    for file in beside:
        if file.is_file() and file != here:
            return file
    if name in presets():
        return presets()[name]
    accepted = "a file next to it or one folder up, or a name from: dprec list presets"
    raise InputError(f"{source}: protocols", f"no configuration {name}.yaml", accepted)


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
