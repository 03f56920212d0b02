"""The configuration of a comparison: protocols x epsilons x folds x seeds."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dprec.errors import InputError, within
from dprec.options import Options, option
from dprec.privacy.units import ComparableUnit, unit_from_text
from simulation.configuration.dotted_keys import apply_override, flatten, replace_value
from simulation.configuration.models import EvaluationOptions, RunConfig, SimulationOptions, parse_config
from simulation.configuration.presets import find_configuration, presets
from simulation.configuration.strict_yaml import dump_yaml, parse_yaml, read_yaml
from simulation.configuration.validation import validated
from simulation.protocols.components import AnyBinarization, AnyDataset, AnySplit
from simulation.storage.names import cell_key

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_SHARED = ("dataset", "split", "binarization", "simulation", "evaluation")
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchOptions(Options):
    """What makes protocols comparable."""

    epsilon: Annotated[ComparableUnit, BeforeValidator(unit_from_text)] = option(
        "The unit in which every protocol gets the same epsilon.", "rating"
    )


class Entry(BaseModel):
    """One protocol of a comparison."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=_NAME)] = Field(description="Its name in tables and plots.")
    preset: str | None = Field(
        default=None,
        description="Name of a preset, or of a file NAME.yaml here or one folder above; by default, name.",
    )
    changes: dict[str, Any] = Field(
        default_factory=dict, alias="set", description="Values to replace in it, by dotted key."
    )
    epsilons: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None, description="Epsilons of this protocol alone, in place of the comparison's."
    )
    panel: str | None = Field(
        default=None, description="Tables and figures that it shares with others of the same panel only."
    )


class PublishedCost(BaseModel):
    """What a paper says that a protocol sends, to be shown beside what was measured."""

    model_config = _STRICT

    label: str = Field(description="The protocol, by its name in this comparison or as the paper calls it.")
    up: str = Field(description="From the user to the server, as printed.")
    down: str = Field(description="From the server to the user, as printed.")
    source: str = Field(description="Where it is printed.")


class ComparisonConfig(BaseModel):
    """Everything that a comparison depends on."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=_NAME)] = Field(description="Name of the comparison.")
    title: str | None = Field(default=None, description="What it shows, for the report.")
    dataset: AnyDataset = Field(description="The ratings, the same for every protocol.")
    split: AnySplit = Field(description="The split, the same for every protocol.")
    binarization: AnyBinarization | None = Field(
        default=None, description="Where ratings are cut into +1 and -1; by default each preset's own."
    )
    folds: list[int] | list[str] | None = Field(
        default=None, min_length=1, description="Values for the split's fold; by default its own."
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        default=[0], min_length=1, description="Seeds; everything is drawn anew for each."
    )
    epsilons: list[Annotated[float, Field(gt=0)]] = Field(
        default_factory=list, description="Budgets for the protocols that take one."
    )
    match: MatchOptions = Field(default=MatchOptions(), description="What makes protocols comparable.")
    protocols: list[Entry] = Field(min_length=1, description="What is compared.")
    published: list[PublishedCost] | None = Field(
        default=None, description="Published costs, shown in the report beside the measured ones."
    )
    noise_samples: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Draws from the noise of every one-shot mechanism that reveals the rated items, at every "
        "epsilon, shown in the report beside its theory; by default none.",
    )
    simulation: SimulationOptions = Field(default=SimulationOptions(), description="How it is simulated.")
    evaluation: EvaluationOptions = Field(default=EvaluationOptions(), description="How it is judged.")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Parameters
    ----------
    key : str
        Its directory below cells/.
    protocol : str
        Name of the protocol's entry.
    epsilon : float or None
        The budget; None for a protocol without privacy, which runs once for all budgets.
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


@dataclasses.dataclass(frozen=True)
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
            Of the ratings of each protocol's first cell, train and test, by its name.
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
        Of its file, or the name of a preset.
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
    for made in ("cells", "ratings"):
        values.pop(made, None)
    for override in overrides:
        apply_override(values, override)
    entries = values.get("protocols")
    if isinstance(entries, list):
        values["protocols"] = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    config = validated(ComparisonConfig, values, str(source))
    names = [entry.name for entry in config.protocols]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{source}: protocols", f"two protocols named {name!r}", "each name once")
    cells = [cell for entry in config.protocols for cell in _cells(entry, config, values, source)]
    keys = [cell.key for cell in cells]
    for cell in cells:
        if keys.count(cell.key) > 1:
            raise InputError(str(source), f"the run {cell.key} twice", "each epsilon, fold and seed once")
    return Comparison(config, tuple(cells))


def _cells(entry: Entry, config: ComparisonConfig, values: Mapping[str, Any], source: Path) -> list[Cell]:
    """Return the cells of one protocol: every epsilon, fold and seed."""
    preset = read_yaml(_preset_file(entry.preset or entry.name, source))
    shared = {key: values[key] for key in _SHARED if key in values}
    base = {**preset, **copy.deepcopy(shared), "name": entry.name}
    where = f"{source}: {entry.name}"
    for key, value in entry.changes.items():
        replace_value(base, key, value, where)
    template = parse_config(base, where)
    _check_changes(entry, config, template.protocol.private, where)
    if config.folds is not None and not hasattr(template.split, "fold"):
        raise InputError(f"{source}: folds", f"a list, with split {template.split.kind}", "no folds key")
    epsilons: Sequence[float | None] = (
        entry.epsilons or config.epsilons if template.protocol.private else [None]
    )
    if not epsilons:
        raise InputError(f"{source}: epsilons", "none", f"at least one, for {entry.name}")
    cells = []
    for epsilon, fold, seed in product(epsilons, config.folds or [None], config.seeds):
        protocol = template.protocol
        if epsilon is not None:
            with within("protocol"):
                protocol = protocol.at_budget(epsilon, config.match.epsilon)
        split = template.split
        if fold is not None:
            split = parse_config({**base, "split": {**base["split"], "fold": fold}}, where).split
        run = template.model_copy(update={"seed": seed, "protocol": protocol, "split": split})
        key = cell_key(entry.name, epsilon, fold, seed)
        cells.append(Cell(key, entry.name, epsilon, fold, seed, run, entry.panel))
    return cells


def _check_changes(entry: Entry, config: ComparisonConfig, private: bool, where: str) -> None:
    """Refuse changes that the comparison's own axes would overwrite."""
    axes = {"name": "the entry's name", "seed": "the comparison's seeds"}
    if config.folds is not None:
        axes["split.fold"] = "the comparison's folds"
    given = [key for key in entry.changes if private and key.startswith("protocol.privacy")]
    if given:
        # Inside a whole protocol a budget may be needed, and is then only replaced.
        raise InputError(f"{where}.set.{given[0]}", "a value that would be replaced", "epsilons, and match")
    for key, place in axes.items():
        for changed in flatten(entry.changes):
            if f"{changed}.".startswith(f"{key}."):
                raise InputError(f"{where}.set.{changed}", "a value that would be replaced", place)


def _preset_file(name: str, source: Path) -> Path:
    """Return the file of an entry: next to the comparison's, a folder above, or a preset's."""
    beside = [folder / f"{name}.yaml" for folder in source.absolute().parents[:2]]
    for file in beside:
        if file.is_file() and file != source.absolute():
            return file
    if name in presets():
        return presets()[name]
    accepted = "a file next to it or one folder above, or a name of: dprec list presets"
    raise InputError(f"{source}: protocols", f"no configuration {name}.yaml", accepted)
