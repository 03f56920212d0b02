"""From the definition of a comparison to its cells: every protocol at every epsilon, fold and seed.

To its entries come the baselines, once for each thing that its protocols predict, and other populations.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, product
from pathlib import Path
from typing import Any, TypeGuard

from dprec.components import as_values
from dprec.datasets import Dataset, Synthetic, holds_pairs
from dprec.errors import InputError
from dprec.protocols.base import BASELINE_PRESETS, INFORMED_BASELINES
from dprec.schedules import Fresh
from dprec.splits import fitting_split
from simulation.analysis.gains import NOTHING_SENT, POPULARITY
from simulation.analysis.vocabulary import grouped_by
from simulation.comparison.templates import (
    COMPOSITION,
    GROUPS,
    SHARED,
    Cell,
    ComparisonConfig,
    Entry,
    LeftOut,
    Source,
    Template,
    middle,
    suited,
    with_fitting_split,
)
from simulation.configuration import strict_yaml
from simulation.configuration.loading import changed, needs_fitting_split, replaces_dataset
from simulation.configuration.models import SOURCES, RunConfig, parse_config, validated, with_sources

_LONGEST_PANEL = 40
"""Characters of a panel in a name; the names of runs are limited."""


def _added_baselines(
    templates: Sequence[Template], *, folds: bool, baselines: Sequence[str] | None = None
) -> list[Template]:
    """Return the baselines that a comparison's entries lack, of everything that they predict.

    ``baselines``: only these; by default all.
    """
    groups = list(
        grouped_by((predicted(each.run, each.entry.panel, folds=folds), each) for each in templates).values()
    )
    names = {template.entry.name for template in templates}
    added = []
    for group in groups:
        for baseline, preset, like, form in _wanted_baselines(group):
            if baselines is None or baseline in baselines:
                words = [preset, *form, *_distinguishing(group[0], [own[0] for own in groups])]
                kind = group[0].run.dataset.kind
                named = [words, [*words, *([] if kind in words else [kind])]]
                numbered = ([*words, str(number)] for number in count(2))
                name = next(name for own in chain(named, numbered) if (name := "-".join(own)) not in names)
                names.add(name)
                added.append(_baseline(preset, name, like))
    return added


def _wanted_baselines(group: Sequence[Template]) -> Iterator[tuple[str, str, Template, Sequence[str]]]:
    """Yield the baselines that entries which predict the same lack: name, preset, what it is like, words.

    A baseline knows of the items what the entries know. Where only some know something, one stands beside
    them that knows nothing. What is listed with other settings than those of the preset replaces none.
    """
    protocols = [each for each in group if each.run.protocol.facts.baseline is None] or group
    knowing: dict[str, Template] = {}
    for each in sorted(protocols, key=lambda each: not each.run.dataset.public_items):
        knowing.setdefault(each.run.dataset.public_items, each)
    first = next(iter(knowing.values()))
    for baseline, preset in BASELINE_PRESETS[group[0].run.protocol.facts.predicts].items():
        informed = INFORMED_BASELINES.get(preset)
        forms = [(preset, first)] if informed != preset else []
        forms += [(informed, like) for known, like in knowing.items() if informed and (known or not forms)]
        for form, like in forms:
            public, made = like.run.dataset.public_items, _baseline(form, form, like).run.protocol
            same = [each for each in group if each.run.protocol == made]
            if not any(form != informed or each.run.dataset.public_items == public for each in same):
                without = informed == form and not public and len(knowing) > 1
                yield baseline, form, like, ["without-items"] if without else []


def predicted(config: RunConfig, panel: str | None, *, folds: bool) -> str:
    """Return what a configuration predicts, as text: ratings, how they are split and cut, and the panel.

    Public data about items and users change no rating, and neither does the fold of a comparison that has
    several.
    """
    values = config.model_dump(mode="json", include={"dataset", "split", "binarization"})
    for about in ("items", "users"):
        # In data that are drawn, it is their number.
        if type(values["dataset"].get(about)) is not int:
            values["dataset"].pop(about, None)
    if folds:
        del values["split"]["fold"]
    if config.schedule is not None:
        values["split"] = as_values(config.division)
    return json.dumps([values, panel], sort_keys=True)


def _distinguishing(first: Template, firsts: Sequence[Template]) -> Iterator[str]:
    """Yield what tells a group from the others in words, given a template of each."""
    kind, signs = first.run.dataset.kind, [each.run.binarization is not None for each in firsts]
    if kind != firsts[0].run.dataset.kind:
        yield kind
    if first.run.binarization is not None and not all(signs):
        yield "signs"
    # A panel becomes a part of a directory's name.
    panel = re.sub(r"[^A-Za-z0-9]+", "-", first.entry.panel or "")[:_LONGEST_PANEL].strip("-")
    if panel and len({each.entry.panel for each in firsts}) > 1:
        yield panel


def _baseline(baseline: str, name: str, like: Template) -> Template:
    """Return a baseline that predicts what another entry does."""
    shared = {key: like.values[key] for key in SHARED if key in like.values}
    values = {**strict_yaml.read_yaml(strict_yaml.presets()[baseline]), **copy.deepcopy(shared), "name": name}
    if (schedule := like.run.schedule) is not None:
        # Baselines of any kind run at the end of each of the same periods.
        most = schedule.division.most
        plain = Fresh(days=schedule.days, collections=None if most is None else most - 1)
        values["schedule"] = as_values(plain)
    entry = Entry(name=name, preset=baseline, panel=like.entry.panel)
    return Template(entry, values, parse_config(values, like.where), like.where, like.population)


def _population_templates(
    config: ComparisonConfig, shared: Mapping[str, Any], source: Source
) -> list[Template]:
    """Return the entries of a comparison on each of its populations, and what is to be beaten there.

    An entry that does not suit the ratings of a population has no template there.
    """
    options, where = config.populations, f"{source}: populations"
    assert options is not None
    if not options.users and not options.datasets:
        raise InputError(f"{where}.users", "none", "numbers of users, or datasets")
    names = [entry.name for entry in config.protocols]
    wanted = options.protocols or names
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(f"{where}.protocols", repr(unknown[0]), ", ".join(names))
    given = options.dataset or config.dataset
    populations = [(str(users), _sized(given, users)) for users in options.users]
    populations += [(each.kind, each) for each in options.datasets]
    _check_once([name for name, _ in populations], where, "{} twice", "each population once")
    templates: list[Template] = []
    for name, dataset in populations:
        split = fitting_split(dataset, options.split or config.split)
        values = {**shared, "dataset": as_values(dataset), "split": as_values(split)}
        made = [suited(each, values, source) for each in config.protocols if each.name in wanted]
        of_one = [
            replace(each, population=name, where=f"{each.where} ({name})")
            for each in made
            if isinstance(each, Template)
        ]
        templates += of_one
        if config.baselines:
            templates += _added_baselines(of_one, folds=False, baselines=(NOTHING_SENT, POPULARITY))
    return templates


def _sized(dataset: Dataset, users: int) -> Dataset:
    """Return data of so many users: drawn, with as many ratings each, or copies of those there are."""
    if not isinstance(dataset, Synthetic) or dataset.copies is not None:
        return replace(dataset, copies=users)
    ratings = round(dataset.ratings / dataset.users * users)
    return replace(dataset, users=users, ratings=min(max(ratings, 1), users * dataset.items))


_WRITTEN = ("cells", "ratings", "left_out", SOURCES)
"""Keys that comparison.yaml adds to the configuration."""

_ON_ANY_RATINGS, _ON_ANY_PAIRS = "compare-systems", "compare-pairs"
"""The comparisons of a file of ratings, and of pairs, that is named in place of a comparison."""

_POSITIVE = "dataset.positive"

_CONFIGURATIONS = (".yaml", ".yml", ".json", "")
"""Suffixes of configurations; a file with any other is one of ratings."""


@dataclass(frozen=True)
class Comparison:
    """A comparison, ready to run."""

    config: ComparisonConfig
    cells: tuple[Cell, ...]
    """In the order of comparison.csv."""
    other_data: bool = False
    """Whether its ratings are not those that its file names; a protocol that does not suit them is left out,
    which is otherwise an error.
    """
    left_out: tuple[LeftOut, ...] = ()

    @property
    def attacked(self) -> bool:
        """Whether any of its runs is."""
        return any(cell.config.attacks for cell in self.cells)

    def without(self, left_out: Sequence[LeftOut]) -> Comparison:
        """Return the comparison without some protocols, and without baselines that only they had.

        Raises
        ------
        InputError
            When no protocol remains.
        """
        names = {each.name for each in left_out}
        entries = [entry for entry in self.config.protocols if entry.name not in names]
        if not entries:
            raise InputError("protocols", f"none suits the ratings: {left_out[0].reason}", "another data set")
        kept = {entry.name for entry in entries}
        groups = {self._predicted(cell) for cell in self.cells if cell.protocol in kept}
        of_kept_groups = [cell for cell in self.cells if self._predicted(cell) in groups]
        listed = {entry.name for entry in self.config.protocols} | {cell.protocol for cell in of_kept_groups}
        return replace(
            self,
            config=self.config.model_copy(update={"protocols": entries}),
            cells=tuple(cell for cell in of_kept_groups if cell.protocol not in names),
            left_out=(*self.left_out, *(each for each in left_out if each.name in listed)),
        )

    def _predicted(self, cell: Cell) -> str:
        return predicted(cell.config, cell.panel, folds=self.config.folds is not None)

    def to_yaml(self, fingerprints: Mapping[str, str]) -> str:
        """Return what the result depends on: the comparison, every cell's configuration and the ratings.

        Parameters
        ----------
        fingerprints : mapping
            Fingerprints of the train and test ratings of each protocol's first cell, by the protocol's name.
        """
        values = self.config.model_dump(mode="json", by_alias=True, exclude_none=True)
        values["ratings"] = dict(fingerprints)
        if self.left_out:
            values["left_out"] = {each.name: each.reason for each in self.left_out}
        values["cells"] = {cell.key: cell.config.plain_values() for cell in self.cells}
        sources = {name: digest for cell in self.cells for name, digest in cell.config.sources.items()}
        return strict_yaml.dump_yaml(with_sources(values, sources))


def compares(config: object) -> TypeGuard[str | Path | Mapping[str, Any]]:
    """Return whether a configuration is that of a comparison, or a file of ratings, and not that of a run."""
    if isinstance(config, str | Path):
        if Path(config).suffix.lower() not in _CONFIGURATIONS and Path(config).is_file():
            return True
        config = strict_yaml.read_yaml(strict_yaml.find_configuration(config))
    return isinstance(config, Mapping) and "protocols" in config


def load_comparison(
    config: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    parts: Mapping[str, Any] | None = None,
) -> Comparison:
    """Read a comparison and the presets that it names.

    Parameters
    ----------
    config : str, Path or mapping
        Path of its file, the name of a preset, or the values of one; or a file of ratings, on which the
        published systems and ours are compared.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    parts : mapping, optional
        Parts to replace before these, as from `simulation.configuration.loading.checked_parts`.

    Raises
    ------
    InputError
        Naming the file and key.
    """
    strict_yaml.check_overrides(overrides)
    cuts = any(override.partition("=")[0].strip() == _POSITIVE for override in overrides)
    values, source, replaced = _read(config, implicit=cuts)
    replaced += changed(values, overrides, parts)
    entries = values.get("protocols")
    if isinstance(entries, list):
        values["protocols"] = [_as_entry(entry) for entry in entries]
    checked = validated(ComparisonConfig, values, str(source))
    other_data = replaces_dataset(replaced)
    if needs_fitting_split(replaced):
        checked = with_fitting_split(checked)
        values["split"] = checked.model_dump(mode="json")["split"]
    return _planned(checked, values, source, other_data)


def _as_entry(entry: Any) -> Any:
    """Return an entry that is written as a name, or as the path of a file, with its keys."""
    if not isinstance(entry, str):
        return entry
    file = Path(entry)
    return {"name": file.stem, "preset": entry} if file.suffix in _CONFIGURATIONS[:2] else {"name": entry}


def _read(
    config: str | Path | Mapping[str, Any], *, implicit: bool
) -> tuple[dict[str, Any], Source, list[str]]:
    """Return the values of a comparison, their source, and the keys that are replaced in it already.

    ``implicit``: whether ratings in a file are to become pairs.
    """
    if isinstance(config, Mapping):
        source, values, replaced = Source(Path("comparison"), "comparison"), copy.deepcopy(dict(config)), []
    elif Path(config).suffix.lower() not in _CONFIGURATIONS and Path(config).is_file():
        usual = _ON_ANY_PAIRS if implicit or holds_pairs(str(config)) else _ON_ANY_RATINGS
        source = Source(strict_yaml.find_configuration(usual), str(config))
        values, file = strict_yaml.read_yaml(source.file), Path(config).name
        own = {"dataset": {"kind": "csv", "path": str(config)}, "name": _slug(file)}
        values |= {**own, "title": f"{values['title']} on {file}"}
        replaced = list(own)
    else:
        found, replaced = strict_yaml.find_configuration(config), list[str]()
        source, values = Source(found, str(found)), strict_yaml.read_yaml(found)
    if "protocol" in values and "protocols" not in values:
        named = source if isinstance(config, Mapping) else config
        raise InputError(str(named), "the configuration of a run", f"a comparison's, or: dprec run {named}")
    return {key: value for key, value in values.items() if key not in _WRITTEN}, source, replaced


def _slug(file: str) -> str:
    """Return the name of a file as the name of a comparison."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", file.split(".", maxsplit=1)[0]).strip("._-") or _ON_ANY_RATINGS


def _planned(
    config: ComparisonConfig, values: dict[str, Any], source: Source, other_data: bool
) -> Comparison:
    """Return a comparison with its cells, the baselines included."""
    names, protocols = [entry.name for entry in config.protocols], f"{source}: protocols"
    _check_once(names, protocols, "two protocols named {!r}", "each name once")
    shared = {key: values[key] for key in (*SHARED, GROUPS) if key in values}
    make = suited if other_data else Template.of
    made = [make(entry, shared, source) for entry in config.protocols]
    left_out = tuple(each for each in made if isinstance(each, LeftOut))
    templates = [each for each in made if isinstance(each, Template)]
    if not templates:
        raise InputError(protocols, "none that suits the ratings", left_out[0].reason)
    for template in templates:
        _check_entry(template, config, source)
    config = config.model_copy(update={"protocols": [template.entry for template in templates]})
    if config.baselines:
        templates += _added_baselines(templates, folds=config.folds is not None)
    if config.populations is not None:
        templates += _population_templates(config, shared, source)
    cells = [cell for template in templates for cell in _cells(template, config)]
    keys, accepted = [cell.key for cell in cells], "each epsilon, fold and seed once"
    _check_once(keys, str(source), "the run {} twice", accepted)
    return Comparison(config, tuple(cells), other_data, left_out)


def _check_once(names: Sequence[str], where: str, found: str, accepted: str) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(where, found.format(twice[0]), accepted)


def _check_entry(template: Template, config: ComparisonConfig, source: Source) -> None:
    """Refuse an entry that the comparison's axes do not suit."""
    entry, private = template.entry, template.run.protocol.facts.calibrated
    _check_changes(entry, config, private, template.where)
    if config.folds is not None and not hasattr(template.run.split, "fold"):
        kind = template.run.split.kind
        raise InputError(f"{source}: folds", f"a list, with split {kind}", "no folds key")
    if private and not (entry.epsilons or config.epsilons):
        raise InputError(f"{source}: epsilons", "none", f"at least one, for {entry.name}")


def _cells(template: Template, config: ComparisonConfig) -> Iterator[Cell]:
    """Yield the cells of one protocol, in the order of comparison.csv."""
    epsilons: Sequence[float | None] = [None]
    folds: Sequence[int | str | None] = config.folds or [None]
    given = template.entry.epsilons or config.epsilons
    if template.population is not None and config.populations is not None:
        folds, given = [None], config.populations.epsilons or given
    if template.run.protocol.facts.calibrated:
        epsilons = given
    seeds: Sequence[int] = config.seeds
    if config.quick:
        epsilons, folds, seeds = [middle(epsilons)], folds[:1], seeds[:1]
    for epsilon, fold, seed in product(epsilons, folds, seeds):
        budget = None if epsilon is None else config.match.budget(epsilon)
        yield replace(template.cell(budget, fold, seed), quick=config.quick)


_DELTA = "protocol.privacy.delta"

_KEPT_OF_A_BUDGET = (COMPOSITION, _DELTA)
"""Keys of a budget that stay as they are at every epsilon."""


def _check_changes(entry: Entry, config: ComparisonConfig, private: bool, where: str) -> None:
    """Refuse changes that the comparison's own axes would overwrite."""
    axes = {"name": "the entry's name", "seed": "the comparison's seeds"}
    if config.match.delta is not None:
        axes[_DELTA] = "the comparison's match.delta"
    if config.folds is not None:
        axes["split.fold"] = "the comparison's folds"
    for key in entry.changes:
        # A change of the whole protocol may need a budget; there it is replaced without an error.
        if private and key.startswith("protocol.privacy") and key not in _KEPT_OF_A_BUDGET:
            raise InputError(f"{where}.set.{key}", "a value that would be replaced", "epsilons, and match")
    for key, place in axes.items():
        for own in strict_yaml.flatten(entry.changes):
            if f"{own}.".startswith(f"{key}."):
                raise InputError(f"{where}.set.{own}", "a value that would be replaced", place)
