"""The populations of a comparison: every protocol also with more or fewer users, or those of other data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dprec.components import as_values
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.splits import fitting_split
from simulation.comparison.definition import ComparisonConfig, PopulationOptions
from simulation.comparison.planning import added_baselines
from simulation.comparison.templates import Source, Template, suited
from simulation.protocols.floors import NOTHING_SENT


@dataclass(frozen=True)
class ComparedPopulation:
    """One population."""

    name: str
    """The number of its users, or the kind of its data set."""
    shared: dict[str, Any]
    """What the comparison shares, with the population's data set and split."""


def population_templates(
    config: ComparisonConfig, shared: Mapping[str, Any], source: Source
) -> list[Template]:
    """Return the entries of a comparison on each of its populations, and nothing sent if it has baselines.

    An entry that does not suit the ratings of a population has no template there.

    Parameters
    ----------
    config : ComparisonConfig
        With populations.
    shared : mapping
        What it sets for every protocol.

    Raises
    ------
    InputError
        When there are none, a name is not that of an entry, or the data set cannot be drawn in other sizes.
    """
    assert config.populations is not None
    if not config.populations.users and not config.populations.datasets:
        raise InputError(f"{source}: populations.users", "none", "numbers of users, or datasets")
    names = [entry.name for entry in config.protocols]
    wanted = config.populations.protocols or names
    for name in wanted:
        if name not in names:
            raise InputError(f"{source}: populations.protocols", repr(name), ", ".join(names))
    templates: list[Template] = []
    for population in _populations(config.populations, config, shared, f"{source}: populations"):
        made = [suited(each, population.shared, source) for each in config.protocols if each.name in wanted]
        of_one = [
            replace(each, population=population.name, where=f"{each.where} ({population.name})")
            for each in made
            if isinstance(each, Template)
        ]
        templates += of_one
        if config.baselines:
            templates += added_baselines(of_one, folds=False, baselines=(NOTHING_SENT,))
    return templates


def _populations(
    options: PopulationOptions, config: ComparisonConfig, shared: Mapping[str, Any], where: str
) -> Iterator[ComparedPopulation]:
    drawn = options.dataset or config.dataset
    if options.users and not isinstance(drawn, Synthetic):
        accepted = "kind: synthetic, or populations.datasets, each with the users that it has"
        raise InputError(f"{where}.dataset", repr(drawn.kind), accepted)
    names = [str(users) for users in options.users] + [each.kind for each in options.datasets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(where, f"{name} twice", "each population once")
    sizes = [_sized(drawn, users) for users in options.users if isinstance(drawn, Synthetic)]
    for name, dataset in zip(names, [*sizes, *options.datasets], strict=True):
        fitting = fitting_split(dataset, options.split or config.split)
        yield ComparedPopulation(name, {**shared, "dataset": as_values(dataset), "split": as_values(fitting)})


def _sized(dataset: Synthetic, users: int) -> Synthetic:
    """Return synthetic data of so many users, who have as many ratings each."""
    ratings = round(dataset.ratings / dataset.users * users)
    return replace(dataset, users=users, ratings=min(max(ratings, 1), users * dataset.items))
