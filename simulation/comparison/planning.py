"""From the definition of a comparison to its cells: every protocol at every epsilon, fold and seed.

To its entries come the baselines, once for each thing that its protocols predict, and other populations.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count, product
from pathlib import Path
from typing import Any, TypeGuard

from dprec.accounting import MatchedBudget
from dprec.components import as_values
from dprec.datasets import Dataset, Synthetic, holds_pairs
from dprec.datasets.columns import ABSENT
from dprec.errors import InputError, SettingError, within
from dprec.errors import listed as names_accepted
from dprec.protocols.base import BASELINE_PRESETS, INFORMED_BASELINES, TOLD
from dprec.schedules import Fresh
from dprec.splits import fitting_split
from simulation.analysis.gains import NOTHING_SENT, POPULARITY
from simulation.analysis.vocabulary import grouped_by, listed
from simulation.comparison.templates import Cell, ComparisonConfig, Entry
from simulation.configuration import strict_yaml
from simulation.configuration.loading import changed, entries_of, needs_fitting_split, replaces_dataset
from simulation.configuration.models import SOURCES, RunConfig, parse_config, validated, with_sources
from simulation.storage.directories import cell_key

_SHARED = ("dataset", "split", "binarization", "attacks", "simulation", "evaluation")
"""Keys of a comparison that replace those of every preset."""

_GROUPS = "groups"
"""Key of a comparison that is one of its protocols' evaluation."""

_WRITTEN = ("cells", "ratings", "left_out", SOURCES)
"""Keys that comparison.yaml adds to the configuration."""

_DELTA, _COMPOSITION = "protocol.privacy.delta", "protocol.privacy.composition"
"""Keys of a budget that stay as they are at every epsilon."""

_ON_ANY_RATINGS, _ON_ANY_PAIRS = "compare-systems", "compare-pairs"
"""The comparisons of a file of ratings, and of pairs, that is named in place of a comparison."""

_CONFIGURATIONS = (".yaml", ".yml", ".json", "")
"""Suffixes of configurations; a file with any other is one of ratings."""

_LONGEST_PANEL = 40
"""Characters of a panel in a name; the names of runs are limited."""


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
    left_out: dict[str, str] = field(default_factory=dict)
    """Why protocols do not suit the ratings, by the names of their entries."""

    def without(
        self, left_out: Mapping[str, str], of_populations: Mapping[tuple[str, str], str]
    ) -> Comparison:
        """Return the comparison without some protocols, and without baselines that only they had.

        Parameters
        ----------
        left_out : mapping
            Why protocols suit no ratings, by their names.
        of_populations : mapping
            Why they do not suit a population, by their names and that of the population.

        Raises
        ------
        InputError
            When no protocol remains.
        """
        entries = [entry for entry in self.config.protocols if entry.name not in left_out]
        named = {*(entry.name for entry in entries), *(self.config.only or ())}
        cells = self._cells_of(named - left_out.keys())
        if not cells:
            reason = next(iter(left_out.values()))
            raise InputError("protocols", f"none suits the ratings: {reason}", "another data set")
        listed = {entry.name for entry in self.config.protocols} | {cell.protocol for cell in cells}
        return replace(
            self,
            config=self.config.model_copy(update={"protocols": entries}),
            cells=tuple(
                cell
                for cell in cells
                if cell.protocol not in left_out and (cell.protocol, cell.population) not in of_populations
            ),
            left_out=self.left_out
            | {name: reason for name, reason in left_out.items() if name in listed}
            | _once({key: reason for key, reason in of_populations.items() if key[0] not in left_out}),
        )

    def only(self, names: Sequence[str], where: str) -> Comparison:
        """Return the comparison of some of its protocols, each as configured.

        ``names``: as in comparison.csv; ``where``: their key, for errors.
        Raises InputError for a name that it does not have, and where none of them suits the ratings.
        """
        available = dict.fromkeys([*(cell.protocol for cell in self.cells), *self.left_out])
        if unknown := [name for name in names if name not in available]:
            accepted = names_accepted(list(available), unknown[0])
            raise InputError(where, f"no protocol {unknown[0]!r}", accepted)
        left_out = {name: reason for name, reason in self.left_out.items() if name in names}
        cells = self._cells_of(names)
        if not cells:
            reason = next(iter(left_out.values()))
            raise InputError(where, f"none that suits the ratings: {reason}", "others, or another data set")
        return replace(self, cells=tuple(cells), left_out=left_out)

    def _cells_of(self, names: Collection[str]) -> list[Cell]:
        """Return the cells of some protocols, and of the baselines that predict the same."""
        folds = self.config.folds is not None
        groups = {cell.key: predicted(cell.config, cell.panel, folds=folds) for cell in self.cells}
        wanted = {groups[cell.key] for cell in self.cells if cell.protocol in names}
        return [
            cell
            for cell in self.cells
            if cell.protocol in names
            or (self.config.baselines and cell.baseline not in (None, TOLD) and groups[cell.key] in wanted)
        ]

    def to_yaml(self, fingerprints: Mapping[str, str]) -> str:
        """Return what the result depends on: the comparison, every cell's configuration and the ratings.

        Parameters
        ----------
        fingerprints : mapping
            Fingerprints of the train and test ratings of each protocol's first cell, by the protocol's name.
        """
        config = self.config.with_absolute_paths()
        values = config.model_dump(mode="json", by_alias=True, exclude_none=True)
        values["ratings"] = dict(fingerprints)
        if self.left_out:
            values["left_out"] = self.left_out
        values["cells"] = {cell.key: cell.config.plain_values() for cell in self.cells}
        sources = {name: digest for cell in self.cells for name, digest in cell.config.sources.items()}
        return strict_yaml.dump_yaml(with_sources(values, sources))


def on_populations(name: str, populations: Sequence[str]) -> str:
    """Return the name of a protocol on populations; without any, on the comparison's own ratings, its own."""
    numbers = [f"{int(population):,}" for population in populations if population.isdecimal()]
    others = [population for population in populations if not population.isdecimal()]
    words = [*([f"{listed(numbers)} users"] if numbers else []), *others]
    return f"{name} of {listed(words)}" if words else name


def _once(unsuited: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Return why protocols do not suit populations, once for all of which the same holds.

    ``unsuited``: by the protocol's name and that of the population.
    """
    by_name = grouped_by(((name, why), population) for (name, population), why in unsuited.items())
    alike = grouped_by(((tuple(populations), why), name) for (name, why), populations in by_name.items())
    return {on_populations(listed(names), populations): why for (populations, why), names in alike.items()}


def compares(config: object) -> TypeGuard[str | Path | Mapping[str, Any]]:
    """Return whether a configuration is that of a comparison, or a file of ratings, and not that of a run."""
    if isinstance(config, str | Path):
        if Path(config).suffix.lower() not in _CONFIGURATIONS and Path(config).is_file():
            return True
        config = strict_yaml.read_yaml(strict_yaml.find_configuration(config, strict_yaml.OF_EITHER))
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
    strict_yaml.check_named(config)
    file, source, replaced = Path("comparison"), str(config), list[str]()
    if isinstance(config, Mapping):
        source, values = "comparison", copy.deepcopy(dict(config))
    elif Path(config).suffix.lower() not in _CONFIGURATIONS and Path(config).is_file():
        usual = _ON_ANY_PAIRS if _asks_for_pairs(overrides) or holds_pairs(source) else _ON_ANY_RATINGS
        file = strict_yaml.find_configuration(usual)
        values, name = strict_yaml.read_yaml(file), Path(config).name
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name.split(".", maxsplit=1)[0]).strip("._-")
        derived = {"dataset": {"kind": "csv", "path": source}, "name": slug or _ON_ANY_RATINGS}
        values |= {**derived, "title": f"{values['title']} on {name}"}
        replaced = list(derived)
    else:
        file = strict_yaml.find_configuration(config, "a file of a comparison or of ratings")
        source, values = str(file), strict_yaml.read_yaml(file)
    if "protocol" in values and "protocols" not in values:
        named = source if isinstance(config, Mapping) else config
        raise InputError(str(named), "the configuration of a run", f"a comparison's, or: dprec run {named}")
    values = {key: value for key, value in values.items() if key not in _WRITTEN}
    replaced += changed(values, overrides, parts)
    if isinstance(entries := values.get("protocols"), list):
        values["protocols"] = [_as_entry(entry) for entry in entries]
    with strict_yaml.overrides_named(overrides):
        return _Planner(values, file, source, replaced).planned()


def _asks_for_pairs(overrides: Sequence[str]) -> bool:
    """Return whether overrides make pairs of a file of ratings: they leave ratings out, or cut them."""
    overridden: dict[str, Any] = {}
    for override in overrides:
        if override.startswith("dataset."):
            strict_yaml.apply_override(overridden, override)
    dataset = overridden.get("dataset", {})
    return dataset.get("rating_column") == ABSENT or "positive" in dataset


def _as_entry(entry: Any) -> Any:
    """Return an entry that is written as a name, or as the path of a file, with its keys."""
    if not isinstance(entry, str):
        return entry
    file = Path(entry)
    return {"name": file.stem, "preset": entry} if file.suffix in _CONFIGURATIONS[:2] else {"name": entry}


@contextmanager
def of_entry(where: str) -> Iterator[None]:
    """Name the file and the entry of a comparison in any `SettingError` raised in the block."""
    try:
        yield
    except SettingError as error:
        raise InputError(f"{where}: {error.where}", error.found, error.accepted) from None


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


class _Planner:
    """Makes the cells of a comparison.

    ``file``: of the comparison; presets may lie next to it.
    ``source``: what was typed for it, such as the name of a file of ratings: errors begin with it.
    ``replaced``: keys of what a caller has replaced in the file.
    """

    def __init__(self, values: dict[str, Any], file: Path, source: str, replaced: Sequence[str]) -> None:
        self._file, self._source, self._other_data = file, source, replaces_dataset(replaced)
        match values:
            case {"split": {"kind": "predefined"} as split, "folds": [fold, *_]}:
                values["split"] = {"fold": fold, **split}
        config = validated(ComparisonConfig, values, source)
        if needs_fitting_split(replaced):
            split = fitting_split(config.dataset, config.split)
            if split != config.split:
                # Folds go with the split that they are of.
                config = config.model_copy(update={"split": split, "folds": None})
            values["split"] = config.model_dump(mode="json")["split"]
        self._config = config
        self._shared = {key: values[key] for key in (*_SHARED, _GROUPS) if key in values}

    def planned(self) -> Comparison:
        """Return the comparison with its cells, the baselines included."""
        config, protocols = self._config, f"{self._source}: protocols"
        config = config.model_copy(update={"protocols": [*config.promised, *config.protocols]})
        for axis in ("seeds", "folds", "epsilons"):
            _check_once(getattr(config, axis) or (), f"{self._source}: {axis}", "{} twice", "each once")
        names = [entry.name for entry in config.protocols]
        _check_once(names, protocols, "two protocols named {!r}", "each name once")
        templates, left_out = self._templates(config.protocols, self._shared, suiting=self._other_data)
        if not templates:
            reason = next(iter(left_out.values()))
            raise InputError(protocols, "none that suits the ratings", reason)
        for template in templates:
            self._check(template)
        entries = [template.entry for template in templates]
        self._config = config.model_copy(update={"protocols": entries})
        if config.baselines:
            templates += _added_baselines(templates, folds=config.folds is not None)
        if config.populations is not None:
            templates += self._population_templates()
        cells = [cell for template in templates for cell in self._cells(template)]
        keys, accepted = [cell.key for cell in cells], "each epsilon, fold and seed once"
        _check_once(keys, self._source, "the run {} twice", accepted)
        comparison = Comparison(self._config, tuple(cells), self._other_data, left_out)
        return comparison if config.only is None else comparison.only(config.only, f"{self._source}: only")

    def _templates(
        self, entries: Sequence[Entry], shared: Mapping[str, Any], *, suiting: bool
    ) -> tuple[list[Template], dict[str, str]]:
        """Return entries as configurations, and why some do not suit the ratings.

        ``shared``: what every protocol has of the comparison.
        ``suiting``: whether these are other ratings than those that the entries were written for: they are
        then taken without what they say of their data set.
        """
        templates, left_out = [], {}
        for entry in entries:
            changes = strict_yaml.flatten(entry.changes)
            dataset, kind = entries_of(shared["dataset"]), changes.get("dataset.kind")
            if not suiting:
                templates.append(self._template(entry, shared))
            elif kind is not None and kind != dataset.get("kind"):
                left_out[entry.name] = f"it is for the ratings of {kind}"
            else:
                dataset_keys = [key for key in changes if key.startswith("dataset.")]
                clashing = [key for key in dataset_keys if key.split(".")[1] in dataset]
                try:
                    templates.append(self._template(_without(entry, clashing), shared))
                except InputError:
                    templates.append(self._template(_without(entry, dataset_keys), shared))
        return templates, left_out

    def _template(self, entry: Entry, shared: Mapping[str, Any]) -> Template:
        """Take the protocol of an entry, its own or its preset's, and apply its changes."""
        if entry.protocol is not None:
            preset: dict[str, Any] = {"protocol": copy.deepcopy(entry.protocol)}
        else:
            preset = strict_yaml.read_yaml(self._preset_file(entry.preset or entry.name))
        values = {**preset, **copy.deepcopy(dict(shared)), "name": entry.name}
        where = f"{self._source}: {entry.name}"
        if (groups := values.pop(_GROUPS, None)) and not values.get("binarization"):
            values["evaluation"] = {**values.get("evaluation", {}), _GROUPS: groups}
        for key, value in entry.changes.items():
            strict_yaml.replace_value(values, key, value, where)
        return Template(entry, values, parse_config(values, where), where)

    def _preset_file(self, name: str) -> Path:
        """Return the file of an entry: next to the comparison's, one folder up, or a preset; or a path."""
        here = self._file.absolute()
        if name.endswith((".yaml", ".yml")):
            return here.parent / Path(name).expanduser()
        beside = [folder / f"{name}.yaml" for folder in here.parents[:2]]
        for file in beside:
            if file.is_file() and file != here:
                return file
        if name in strict_yaml.presets():
            return strict_yaml.presets()[name]
        accepted = "a file next to it or one folder up, or a name from: dprec list"
        raise InputError(f"{self._source}: protocols", f"no configuration {name}.yaml", accepted)

    def _check(self, template: Template) -> None:
        """Refuse an entry that the comparison's axes do not suit, or whose changes they would overwrite."""
        config, entry, private = self._config, template.entry, template.run.protocol.facts.calibrated
        axes = {"name": "the entry's name", "seed": "the comparison's seeds"}
        if config.match.delta is not None:
            axes[_DELTA] = "the comparison's match.delta"
        if config.folds is not None:
            axes["split.fold"] = "the comparison's folds"
        # A change of the whole protocol may need a budget; there it is replaced without an error.
        refused = {
            key: "epsilons, and match"
            for key in entry.changes
            if private and key.startswith("protocol.privacy") and key not in (_COMPOSITION, _DELTA)
        }
        for change, (key, place) in product(strict_yaml.flatten(entry.changes), axes.items()):
            if f"{change}.".startswith(f"{key}."):
                refused.setdefault(change, place)
        for key, place in refused.items():
            raise InputError(f"{template.where}.set.{key}", "a value that would be replaced", place)
        if config.folds is not None and not hasattr(template.run.split, "fold"):
            kind = template.run.split.kind
            raise InputError(f"{self._source}: folds", f"a list, with split {kind}", "no folds key")
        if private and not (entry.epsilons or config.epsilons):
            raise InputError(f"{self._source}: epsilons", "none", f"at least one, for {entry.name}")

    def _population_templates(self) -> list[Template]:
        """Return the entries on each population, and what is to be beaten there.

        An entry that does not suit the ratings of a population has no template there.
        """
        config, options, where = self._config, self._config.populations, f"{self._source}: populations"
        assert options is not None
        if not options.users and not options.datasets:
            raise InputError(f"{where}.users", "none", "numbers of users, or datasets")
        names = [entry.name for entry in config.protocols]
        if unknown := [name for name in options.protocols or () if name not in names]:
            raise InputError(f"{where}.protocols", repr(unknown[0]), ", ".join(names))
        entries = [entry for entry in config.protocols if entry.name in (options.protocols or names)]
        source = options.dataset or config.dataset
        populations = [(str(users), _sized(source, users)) for users in options.users]
        populations += [(dataset.kind, dataset) for dataset in options.datasets]
        _check_once([name for name, _ in populations], where, "{} twice", "each population once")
        templates: list[Template] = []
        for name, dataset in populations:
            split = fitting_split(dataset, options.split or config.split)
            shared = {**self._shared, "dataset": as_values(dataset), "split": as_values(split)}
            of_one = [
                replace(template, population=name, where=f"{template.where} ({name})")
                for template in self._templates(entries, shared, suiting=True)[0]
            ]
            templates += of_one
            if config.baselines:
                templates += _added_baselines(of_one, folds=False, baselines=(NOTHING_SENT, POPULARITY))
        return templates

    def _cells(self, template: Template) -> Iterator[Cell]:
        """Yield the cells of one protocol, in the order of comparison.csv."""
        config, entry, run = self._config, template.entry, template.run
        epsilons: Sequence[float | None] = [None]
        folds: Sequence[int | str | None] = config.folds or [None]
        seeds: Sequence[int] = config.seeds
        budgets = entry.epsilons or config.epsilons
        if template.population is not None and config.populations is not None:
            folds, budgets = [None], config.populations.epsilons or budgets
        if run.protocol.facts.calibrated:
            epsilons = budgets
        if config.quick:
            epsilons, folds, seeds = [middle(epsilons)], folds[:1], seeds[:1]
        # An entry that sets its composition to the sum keeps it at every delta.
        summed = strict_yaml.flatten(entry.changes).get(_COMPOSITION) == "sum"
        delta = None if summed else config.match.delta
        for epsilon, fold, seed in product(epsilons, folds, seeds):
            protocol, split = run.protocol, run.split
            if epsilon is not None:
                with of_entry(template.where), within("protocol"):
                    protocol = protocol.at_budget(MatchedBudget(epsilon, config.match.epsilon, delta))
            if fold is not None:
                of_fold = {**entries_of(template.values["split"]), "fold": fold}
                split = parse_config({**template.values, "split": of_fold}, template.where).split
            yield Cell(
                key=cell_key(entry.name, epsilon, fold, seed, template.population),
                protocol=entry.name,
                epsilon=epsilon,
                fold=fold,
                seed=seed,
                config=run.model_copy(update={"seed": seed, "protocol": protocol, "split": split}),
                panel=entry.panel,
                baseline=protocol.facts.baseline,
                public=run.dataset.public_items,
                population=template.population,
                stated=protocol.stated,
                quick=config.quick,
                where=template.where,
            )


def _check_once(names: Sequence[Hashable], where: str, found: str, accepted: str) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InputError(where, found.format(twice[0]), accepted)


def middle(epsilons: Sequence[float | None]) -> float | None:
    """Return the middle one of some budgets, by size; of two, the larger. None stands alone."""
    ordered = sorted(epsilons, key=lambda epsilon: epsilon or 0.0)
    return ordered[len(ordered) // 2]


def _without(entry: Entry, keys: Sequence[str]) -> Entry:
    """Return an entry without some of its changes, by their dotted keys."""
    changes = {
        key: value
        for key, value in entry.changes.items()
        if not any(f"{dropped}.".startswith(f"{key}.") for dropped in keys)
    }
    return entry.model_copy(update={"changes": changes})


def _sized(dataset: Dataset, users: int) -> Dataset:
    """Return data of so many users: drawn, with as many ratings each, or copies of those there are."""
    if not isinstance(dataset, Synthetic) or dataset.copies is not None:
        return replace(dataset, copies=users)
    ratings = round(dataset.ratings / dataset.users * users)
    return replace(dataset, users=users, ratings=min(max(ratings, 1), users * dataset.items))


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


def _added_baselines(
    templates: Sequence[Template], *, folds: bool, baselines: Sequence[str] | None = None
) -> list[Template]:
    """Return the baselines that a comparison's entries lack, of everything that they predict.

    ``baselines``: only these; by default all.
    """
    groups = list(
        grouped_by(
            (predicted(template.run, template.entry.panel, folds=folds), template) for template in templates
        ).values()
    )
    names = {template.entry.name for template in templates}
    added = []
    for group in groups:
        kind = group[0].run.dataset.kind
        for baseline, preset, like, form in _wanted_baselines(group):
            if baselines is None or baseline in baselines:
                words = [preset, *form, *_distinguishing(group[0], [members[0] for members in groups])]
                named = [words, [*words, *([] if kind in words else [kind])]]
                numbered = ([*words, str(number)] for number in count(2))
                name = next(
                    name for parts in chain(named, numbered) if (name := "-".join(parts)) not in names
                )
                names.add(name)
                added.append(_baseline(preset, name, like))
    return added


def _wanted_baselines(group: Sequence[Template]) -> Iterator[tuple[str, str, Template, Sequence[str]]]:
    """Yield the baselines that entries which predict the same lack: name, preset, what it is like, words.

    A baseline knows of the items what the entries know. Where only some know something, one stands beside
    them that knows nothing. What is listed with other settings than those of the preset replaces none.
    """
    protocols = [template for template in group if template.run.protocol.facts.baseline is None] or group
    knowing: dict[str, Template] = {}
    for template in sorted(protocols, key=lambda template: not template.run.dataset.public_items):
        knowing.setdefault(template.run.dataset.public_items, template)
    first = next(iter(knowing.values()))
    for baseline, preset in BASELINE_PRESETS[group[0].run.protocol.facts.predicts].items():
        informed = INFORMED_BASELINES.get(preset)
        forms = [(preset, first)] if informed != preset else []
        forms += [
            (informed, like)
            for read_publicly, like in knowing.items()
            if informed and (read_publicly or not forms)
        ]
        for form, like in forms:
            public, protocol = like.run.dataset.public_items, _baseline(form, form, like).run.protocol
            same = [template for template in group if template.run.protocol == protocol]
            if not any(form != informed or template.run.dataset.public_items == public for template in same):
                without = informed == form and not public and len(knowing) > 1
                yield baseline, form, like, ["without-items"] if without else []


def _distinguishing(first: Template, firsts: Sequence[Template]) -> Iterator[str]:
    """Yield what tells a group from the others in words, given a template of each."""
    kind, signs = first.run.dataset.kind, [template.run.binarization is not None for template in firsts]
    if kind != firsts[0].run.dataset.kind:
        yield kind
    if first.run.binarization is not None and not all(signs):
        yield "signs"
    # A panel becomes a part of a directory's name.
    panel = re.sub(r"[^A-Za-z0-9]+", "-", first.entry.panel or "")[:_LONGEST_PANEL].strip("-")
    if panel and len({template.entry.panel for template in firsts}) > 1:
        yield panel


def _baseline(baseline: str, name: str, like: Template) -> Template:
    """Return a baseline that predicts what another entry does."""
    shared = {key: like.values[key] for key in _SHARED if key in like.values}
    values = {**strict_yaml.read_yaml(strict_yaml.presets()[baseline]), **copy.deepcopy(shared), "name": name}
    if (schedule := like.run.schedule) is not None:
        # Baselines of any kind run at the end of each of the same periods.
        most = schedule.division.most
        plain = Fresh(days=schedule.days, collections=None if most is None else most - 1)
        values["schedule"] = as_values(plain)
    entry = Entry(name=name, preset=baseline, panel=like.entry.panel)
    return Template(entry, values, parse_config(values, like.where), like.where, like.population)
