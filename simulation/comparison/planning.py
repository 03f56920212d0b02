"""From the definition of a comparison to its cells: every protocol at every epsilon, fold and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from dprec.errors import InputError
from simulation.comparison.definition import ComparisonConfig, Entry
from simulation.comparison.floors import added_floors
from simulation.comparison.templates import SHARED, Cell, Template
from simulation.configuration.dotted_keys import apply_override, flatten
from simulation.configuration.presets import find_configuration
from simulation.configuration.strict_yaml import dump_yaml, parse_yaml, read_yaml
from simulation.configuration.validation import validated

_WRITTEN = ("cells", "ratings")
"""Keys that comparison.yaml adds to the configuration."""


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
        Naming the file and key.
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
    shared = {key: values[key] for key in SHARED if key in values}
    templates = [Template.of(entry, shared, source) for entry in config.protocols]
    for template in templates:
        _check_entry(template, config, source)
    if config.floors:
        templates += added_floors(templates, folds=config.folds is not None)
    cells = [cell for template in templates for cell in _cells(template, config)]
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


def _check_entry(template: Template, config: ComparisonConfig, source: Path) -> None:
    """Refuse an entry that the comparison's axes do not suit."""
    entry, private = template.entry, template.run.protocol.private
    _check_changes(entry, config, private, template.where)
    if config.folds is not None and not hasattr(template.run.split, "fold"):
        kind = template.run.split.kind
        raise InputError(f"{source}: folds", f"a list, with split {kind}", "no folds key")
    if private and not (entry.epsilons or config.epsilons):
        raise InputError(f"{source}: epsilons", "none", f"at least one, for {entry.name}")


def _cells(template: Template, config: ComparisonConfig) -> Iterator[Cell]:
    """Yield the cells of one protocol, in the order of comparison.csv."""
    epsilons: Sequence[float | None] = [None]
    if template.run.protocol.private:
        epsilons = template.entry.epsilons or config.epsilons
    for epsilon, fold, seed in product(epsilons, config.folds or [None], config.seeds):
        yield template.cell(epsilon, fold, seed, config.match.epsilon)


_KEPT_OF_A_BUDGET = ("protocol.privacy.composition", "protocol.privacy.delta")
"""Keys of a budget that stay as they are at every epsilon."""


def _check_changes(entry: Entry, config: ComparisonConfig, private: bool, where: str) -> None:
    """Refuse changes that the comparison's own axes would overwrite."""
    axes = {"name": "the entry's name", "seed": "the comparison's seeds"}
    if config.folds is not None:
        axes["split.fold"] = "the comparison's folds"
    budgets = [
        key
        for key in entry.changes
        if private and key.startswith("protocol.privacy") and key not in _KEPT_OF_A_BUDGET
    ]
    if budgets:
        # A change of the whole protocol may need a budget; there it is replaced without an error.
        raise InputError(f"{where}.set.{budgets[0]}", "a value that would be replaced", "epsilons, and match")
    for key, place in axes.items():
        for changed in flatten(entry.changes):
            if f"{changed}.".startswith(f"{key}."):
                raise InputError(f"{where}.set.{changed}", "a value that would be replaced", place)
