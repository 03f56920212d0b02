"""From the definition of a comparison to its cells: every protocol at every epsilon, fold and seed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from dprec.errors import InputError, within
from dprec.privacy.units import ComparableUnit
from simulation.comparison.definition import ComparisonConfig, Entry
from simulation.configuration.dotted_keys import apply_override, flatten, replace_value
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.presets import find_configuration, presets
from simulation.configuration.strict_yaml import dump_yaml, parse_yaml, read_yaml
from simulation.configuration.validation import validated
from simulation.storage.names import cell_key

_SHARED = ("dataset", "split", "binarization", "simulation", "evaluation")
"""Keys of a comparison that replace those of every preset."""

_WRITTEN = ("cells", "ratings")
"""Keys that comparison.yaml adds to the configuration."""


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Parameters
    ----------
    key : str
        Name of its directory in cells/.
    protocol : str
        Name of the protocol's entry.
    epsilon : float or None
        The budget; None for a protocol without privacy, which runs once rather than per budget.
    fold : int, str or None
    seed : int
    config : RunConfig
    panel : str or None
    """

    key: str
    protocol: str
    epsilon: float | None
    fold: int | str | None
    seed: int
    config: RunConfig
    panel: str | None = None


@dataclass(frozen=True)
class Comparison:
    """A comparison, ready to run.

    Parameters
    ----------
    config : ComparisonConfig
    cells : tuple of Cell
        In the order of comparison.csv.
    """

    config: ComparisonConfig
    cells: tuple[Cell, ...]

    def to_yaml(self, fingerprints: Mapping[str, str]) -> str:
        """Return what the result depends on: the comparison, every cell's configuration and the ratings.

        Parameters
        ----------
        fingerprints : mapping
            Fingerprints of the train and test ratings of each protocol's first cell, by the protocol's name.
        """
        values = self.config.model_dump(mode="json", by_alias=True, exclude_none=True)
        values["ratings"] = dict(fingerprints)
        values["cells"] = {cell.key: parse_yaml(cell.config.to_yaml(), cell.key) for cell in self.cells}
        return dump_yaml(values)


def load_comparison(path: str | Path, overrides: Sequence[str] = ()) -> Comparison:
    """Read a comparison and the presets that it names.

    Parameters
    ----------
    path : str or Path
        Path of its file, or the name of a preset.
    overrides : sequence of str
        ``dotted.key=value`` replacements.

    Raises
    ------
    InputError
        Naming the file and key; every cell is checked before anything runs.
    """
    source = find_configuration(path)
    values = read_yaml(source)
    if "protocol" in values and "protocols" not in values:
        raise InputError(str(path), "the configuration of a run", f"a comparison's, or: dprec run {path}")
    values = {key: value for key, value in values.items() if key not in _WRITTEN}
    for override in overrides:
        apply_override(values, override)
    entries = values.get("protocols")
    if isinstance(entries, list):
        values["protocols"] = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    config = validated(ComparisonConfig, values, str(source))
    _check_names(config, source)
    shared = {key: values[key] for key in _SHARED if key in values}
    cells = [cell for entry in config.protocols for cell in _cells(entry, config, shared, source)]
    _check_keys(cells, source)
    return Comparison(config, tuple(cells))


def _check_names(config: ComparisonConfig, source: Path) -> None:
    names = [entry.name for entry in config.protocols]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{source}: protocols", f"two protocols named {name!r}", "each name once")


def _check_keys(cells: Sequence[Cell], source: Path) -> None:
    keys = [cell.key for cell in cells]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(str(source), f"the run {key} twice", "each epsilon, fold and seed once")


def _cells(entry: Entry, config: ComparisonConfig, shared: Mapping[str, Any], source: Path) -> Iterator[Cell]:
    """Yield the cells of one protocol, in the order of comparison.csv."""
    template = _Template.of(entry, shared, source)
    private = template.run.protocol.private
    _check_changes(entry, config, private, template.where)
    if config.folds is not None and not hasattr(template.run.split, "fold"):
        kind = template.run.split.kind
        raise InputError(f"{source}: folds", f"a list, with split {kind}", "no folds key")
    epsilons: Sequence[float | None] = (entry.epsilons or config.epsilons) if private else [None]
    if not epsilons:
        raise InputError(f"{source}: epsilons", "none", f"at least one, for {entry.name}")
    for epsilon, fold, seed in product(epsilons, config.folds or [None], config.seeds):
        yield template.cell(epsilon, fold, seed, config.match.epsilon)


@dataclass(frozen=True)
class _Template:
    """An entry's preset with its changes and with what the comparison shares.

    Parameters
    ----------
    entry : Entry
    values : dict
        The configuration as plain values.
    run : RunConfig
        The same configuration, checked.
    where : str
        File and entry, for errors.
    """

    entry: Entry
    values: dict[str, Any]
    run: RunConfig
    where: str

    @classmethod
    def of(cls, entry: Entry, shared: Mapping[str, Any], source: Path) -> _Template:
        """Read the preset of an entry and apply its changes."""
        preset = read_yaml(_preset_file(entry.preset or entry.name, source))
        values = {**preset, **copy.deepcopy(dict(shared)), "name": entry.name}
        where = f"{source}: {entry.name}"
        for key, value in entry.changes.items():
            replace_value(values, key, value, where)
        return cls(entry, values, parse_config(values, where), where)

    def cell(self, epsilon: float | None, fold: int | str | None, seed: int, unit: ComparableUnit) -> Cell:
        """Return the cell at a budget, a fold and a seed; None leaves the preset's value."""
        protocol, split = self.run.protocol, self.run.split
        if epsilon is not None:
            with within("protocol"):
                protocol = protocol.at_budget(epsilon, unit)
        if fold is not None:
            values = {**self.values, "split": {**self.values["split"], "fold": fold}}
            split = parse_config(values, self.where).split
        config = self.run.model_copy(update={"seed": seed, "protocol": protocol, "split": split})
        name = self.entry.name
        return Cell(cell_key(name, epsilon, fold, seed), name, epsilon, fold, seed, config, self.entry.panel)


def _check_changes(entry: Entry, config: ComparisonConfig, private: bool, where: str) -> None:
    """Refuse changes that the comparison's own axes would overwrite."""
    axes = {"name": "the entry's name", "seed": "the comparison's seeds"}
    if config.folds is not None:
        axes["split.fold"] = "the comparison's folds"
    budgets = [key for key in entry.changes if private and key.startswith("protocol.privacy")]
    if budgets:
        # A change of the whole protocol may need a budget; there it is replaced without an error.
        raise InputError(f"{where}.set.{budgets[0]}", "a value that would be replaced", "epsilons, and match")
    for key, place in axes.items():
        for changed in flatten(entry.changes):
            if f"{changed}.".startswith(f"{key}."):
                raise InputError(f"{where}.set.{changed}", "a value that would be replaced", place)


def _preset_file(name: str, source: Path) -> Path:
    """Return the file of an entry: next to the comparison's file, one folder up, or a preset."""
    beside = [folder / f"{name}.yaml" for folder in source.absolute().parents[:2]]
    for file in beside:
        if file.is_file() and file != source.absolute():
            return file
    if name in presets():
        return presets()[name]
    accepted = "a file next to it or one folder up, or a name from: dprec list presets"
    raise InputError(f"{source}: protocols", f"no configuration {name}.yaml", accepted)
