"""Describes what was run, from the configuration and the descriptions of its components."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dprec.accounting import UNITS_IN_WORDS
from dprec.completion import COMPLETIONS
from dprec.components import Registry, summary_of
from dprec.mechanisms import MECHANISMS
from dprec.schedules import SCHEDULES
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    by_evaluation,
    reference_budget,
)
from simulation.analysis.vocabulary import listed, plural
from simulation.configuration.strict_yaml import at
from simulation.protocols import PROTOCOLS
from simulation.storage.run_files import RunRecord


def run_in_words(run: RunRecord) -> str:
    """Describe a run: its population, and how devices and server work together."""
    summary = run.summary
    data = summary.dataset
    people = _population(data.model_dump(), lists=data.scale is None)
    if summary.devices == "deployed":
        people = f"Deployed: {data.users:,} people are enrolled, each with a device; {data.items:,} items."
    who = _WHO_PREDICTS.get(str(at(run.config, "protocol", "personalization")))
    if summary.protocol != "one-shot" or not who:
        return f"{people} {_about(PROTOCOLS, summary.protocol)}"
    schedule = at(run.config, "schedule", "kind")
    if schedule is None:
        return f"{people} {_ONE_REPORT} {who}."
    return f"{people} {_about(SCHEDULES, str(schedule))} {who[0].upper()}{who[1:]}."


_ONE_REPORT = "Every user sends one perturbed report;"
_WHO_PREDICTS = {
    "none": "the server completes the matrix from all of them",
    "on-device": "every device predicts, from its own ratings and what the server tells all of the items",
}


def components_in_words(run: RunRecord) -> str:
    """Describe the mechanism, the budget and the completion of a run, and the seed of a simulation."""
    summary, protocol = run.summary, at(run.config, "protocol")
    sentences = []
    if (at(protocol, "mechanism", "kind") or "none") != "none":
        sentences.append(_described("Mechanism", MECHANISMS, summary.mechanism))
    if epsilon := at(protocol, "privacy", "epsilon"):
        unit: Any = at(protocol, "privacy", "per")
        per = UNITS_IN_WORDS.get(unit, f"per {unit}")
        sentences.append(f"The budget is {_chosen(epsilon)} {per}.")
    sentences.append(_described("Completion", COMPLETIONS, summary.completion))
    if summary.devices == "simulated":
        sentences.append(f"Seed {run.config.get('seed', 0)}.")
    return " ".join(sentences)


def _chosen(epsilon: float | str | dict[str, float]) -> str:
    """Return the epsilon, or which shares of the users choose which, or where this is said, in words."""
    if isinstance(epsilon, str):
        return f"everybody's own, from column {epsilon!r} of the users' table,"
    if not isinstance(epsilon, dict):
        return f"ε = {epsilon:g}"
    parts = [
        f"{share:.0%} of users {f'ε = {chosen}' if float(chosen) else 'refuse'}"
        for chosen, share in epsilon.items()
    ]
    return f"everybody's own ({', '.join(parts)})"


def comparison_in_words(files: ComparisonFiles) -> str:
    """Describe a comparison."""
    results = files.results
    names = list(dict.fromkeys(result.name for result in results if result.baseline is None))
    baselines = {result.name for result in results if result.baseline}
    budgets = sorted({result.budget for result in results if result.budget is not None})
    runs = [row for result in results for row in result.rows]
    seeds, folds = ({str(row[key]) for row in runs if row.get(key) is not None} for key in ("seed", "fold"))
    at_budgets = ""
    if budgets:
        values = listed(f"{budget:g}" for budget in budgets)
        at_budgets = f" at {plural(len(budgets), 'budget')}, ε = {values} per {files.matched_unit},"
    beside = f" beside {plural(len(baselines), 'baseline')}" if baselines else ""
    repeats = (plural(len(own), word) for own, word in ((seeds, "seed"), (folds, "fold")) if own)
    sets = " and ".join(dict.fromkeys(str(row.get("dataset")) for row in runs))
    compared = f"{plural(len(names), 'protocol')}{beside}{at_budgets}"
    return f"{compared} over {' and '.join(repeats)}: {plural(len(runs), 'run')} on {sets}."


def data_in_words(files: ComparisonFiles) -> str:
    """Describe the ratings of a comparison, and what its protocols were given."""
    first = [own[0].rows[0] for own in by_evaluation(files.results).values()]
    populations = dict.fromkeys(
        _population({**row, "kind": row.get("dataset")}, lists=row.get("ndcg_at_10") not in (None, ""))
        for row in first
    )
    return " ".join(
        [*populations, f"Every protocol with a budget was given the same ε per {files.matched_unit}."]
    )


def _population(dataset: Mapping[str, Any], *, lists: bool) -> str:
    """Describe the population and its ratings, or its sets of items."""
    counts = [dataset.get(key) for key in ("users", "items", "train_ratings", "test_ratings")]
    if None in counts:
        return f"Data: {dataset.get('kind')}."
    users, items, train, test = (int(count) for count in counts if count is not None)
    if lists:
        return (
            f"{users:,} people with {train:,} items in their sets, of {items:,} ({dataset['kind']}); "
            f"accuracy is measured on {test:,} held-out items."
        )
    return (
        f"{users:,} people and their {train:,} ratings of {items:,} items ({dataset['kind']}); "
        f"accuracy is measured on {test:,} held-out ratings."
    )


def merged_notes(notes: Iterable[tuple[str, str]]) -> list[tuple[Sequence[str], str, int]]:
    """Merge notes that differ in numbers alone: protocols, the first note, and how many others there are."""
    merged: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, note in notes:
        names, texts = merged.setdefault(re.sub(r"\d[\d.,]*", "#", note), ({}, {}))
        names[name] = None
        texts[note] = None
    return [(list(names), next(iter(texts)), len(texts) - 1) for names, texts in merged.values()]


def label_of(result: ProtocolResult, reference: float | None) -> str:
    """Name a result, with its budget if that is not the reference budget."""
    if result.budget is None or result.budget == reference:
        return result.name
    return f"{result.name} (ε {result.budget:g})"


def at_budget(files: ComparisonFiles) -> str:
    """Return what a caption says of the budget at which protocols are shown."""
    reference = reference_budget(files.results)
    return "" if reference is None else f" ε = {reference:g} unless the label says otherwise."


def _about(registry: Registry[Any], kind: str) -> str:
    return summary_of(registry[kind]) if kind in registry.kinds else _own(registry.name.capitalize(), kind)


def _described(what: str, registry: Registry[Any], kind: str) -> str:
    known = kind in registry.kinds
    return f"{what} ({kind}): {summary_of(registry[kind])}" if known else _own(what, kind)


def _own(what: str, kind: str) -> str:
    """Name a component that is not ours; one of a user is called by its module and class."""
    return f"{what}: {kind}, your own." if ":" in kind else f"{what}: {kind}."
