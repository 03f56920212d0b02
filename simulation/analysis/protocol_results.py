"""The results of a comparison: each protocol at each budget, averaged over folds and seeds.

Everything here is read from comparison.csv alone, so that a table can be studied without the runs that
made it.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeGuard

from dprec.accounting import (
    LEAST_TRUST_FIRST,
    ComparableUnit,
    Status,
    Trust,
    unit_from_text,
)
from dprec.errors import InputError
from simulation.analysis.vocabulary import (
    METRICS,
    Average,
    Metric,
    average,
    grouped_by,
    listed,
    loss,
    metrics_in,
    profiles_compared,
    server_sees,
    unit_in_words,
)
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage import directories
from simulation.storage.column import Column
from simulation.storage.columns import figure, figures_of, read_rows
from simulation.storage.files import Row, read_text
from simulation.storage.summary import NEARLY_ALL, OwnCode, Summary, read_summary

_CELL = ("name", "epsilon", "fold", "seed", "panel", "population", "dataset", "users", "items")
"""What tells the runs of a comparison apart."""


@dataclass(frozen=True)
class Evaluation:
    """What was predicted and how it was measured; results of two evaluations share no table and no axis."""

    metric: Metric
    dataset: str
    """Kind of the data set."""
    items: float | None
    """Size of its catalogue."""
    panel: str | None
    """Panel in which the comparison shows it."""
    population: str | None = None
    """Of which population it is; None for the comparison's own ratings."""


def distinguishing_words(evaluation: Evaluation, evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the words that distinguish an evaluation from the others of a comparison."""

    def described(compared: Evaluation) -> tuple[str, ...]:
        return (
            compared.metric.label,
            compared.dataset,
            f"{compared.items or 0:.0f} items",
            compared.panel or "others",
        )

    places = zip(*map(described, evaluations), strict=True)
    return [word for word, words in zip(described(evaluation), places, strict=True) if len(set(words)) > 1]


EPSILON: dict[ComparableUnit, Column[Any]] = {
    "rating": figure(lambda run: run.privacy.epsilon_per_rating),
    "user": figure(lambda run: run.privacy.epsilon_per_user.max),
}
"""The largest proved losses, by their unit."""

CLAIMED: dict[ComparableUnit, Column[Any]] = {
    "rating": figure(lambda run: run.privacy.epsilon_claimed.per_rating),
    "user": figure(lambda run: run.privacy.epsilon_claimed.per_user),
}
"""The largest that are claimed or declared and not proved."""

COMPOSED = figure(lambda run: run.privacy.epsilon_composed.max)
BYTES = (
    figure(lambda run: run.traffic.uplink.message_mean_per_user),
    figure(lambda run: run.traffic.downlink.message_mean_per_user),
)
PAYLOAD_BYTES = (
    figure(lambda run: run.traffic.uplink.payload_mean_per_user),
    figure(lambda run: run.traffic.downlink.payload_mean_per_user),
)
NETWORK_BYTES = (
    figure(lambda run: run.traffic.uplink.network_mean_per_user),
    figure(lambda run: run.traffic.downlink.network_mean_per_user),
)
REPRESENTS = figure(lambda run: run.dataset.represents)

NEEDED_TRUST = "needed_trust"
"""Column of the trust that a run needs, where that is not what it was granted."""

_USERS = figure(lambda run: run.dataset.users)
_STATUS = figure(lambda run: run.privacy.status)
_ITEMS = figure(lambda run: run.dataset.items)
_DATASET = figure(lambda run: run.dataset.kind)
_TRUST = figure(lambda run: run.privacy.trust)
_HIDES = figure(lambda run: run.privacy.hides_rated_items)
_UNLINKED = figure(lambda run: run.privacy.unlinked)
_DELTA = figure(lambda run: run.privacy.delta)
_PER = "per"
_ANY_TWO = figure(lambda run: run.privacy.epsilon_any_two)
_NDCG = figure(lambda run: run.accuracy.ndcg_at_10)
_WHOLE_LISTS = figure(lambda run: run.accuracy.whole_lists)
_PARTS = (
    figure(lambda run: run.protocol),
    figure(lambda run: run.mechanism),
    figure(lambda run: run.completion),
)
"""The kinds of components; a gradient report is a mechanism."""

_NEEDED = ("name", "epsilon", *(column.name for column in (_STATUS, *EPSILON.values(), *BYTES)))
_WEAKEST_FIRST: tuple[Status, ...] = ("none", "declared", "claimed", "proved")

AnyColumn = Column[Any] | str
"""A column that is declared, or the name of one of which a table alone knows."""


def _name(column: AnyColumn) -> str:
    return column if isinstance(column, str) else column.name


@dataclass(frozen=True)
class ProtocolResult:
    """One protocol at one budget."""

    name: str
    budget: float | None
    """The epsilon that it was given, in the comparison's unit; None without privacy."""
    rows: tuple[Row, ...]
    """Its lines of comparison.csv, one per fold and seed."""

    def average(self, column: AnyColumn) -> Average | None:
        """Return mean of a column, and its spreads over seeds and over folds; None if it does not apply."""
        return average(self.rows, _name(column))

    def mean(self, column: AnyColumn) -> float | None:
        """Return the mean of a column; None if it does not apply."""
        return None if (average := self.average(column)) is None else average.mean

    def value(self, column: Column[Any]) -> float | None:
        """Return what stands for a column, averaged as is declared; None if it does not apply."""
        if column.averaged != "largest":
            return self.mean(column)
        values = [row.get(column.name) for row in self.rows]
        finite = [float(cell) for cell in values if _is_finite(cell)]
        return max(finite) if finite and len(finite) == len(values) else None

    def flag(self, column: AnyColumn) -> bool:
        """Return whether a column holds for any of the runs."""
        return any(str(row.get(_name(column))) == "True" for row in self.rows)

    def has(self, column: AnyColumn) -> bool:
        """Return whether any of the lines has a value in a column."""
        return any(row.get(_name(column)) not in (None, "") for row in self.rows)

    def text(self, column: AnyColumn) -> str | None:
        """Return the texts in a column, each once; None if it is empty."""
        texts = (str(row[_name(column)]) for row in self.rows if row.get(_name(column)))
        return ", ".join(dict.fromkeys(texts)) or None

    @property
    def users(self) -> float | None:
        """The users whom its figures are about: of the population that is represented, if one is."""
        return self.mean(REPRESENTS) or self.mean(_USERS)

    def epsilon(self, unit: ComparableUnit) -> float | None:
        """Return the largest proved loss in a unit, over users and runs; None where there is none."""
        return self.value(EPSILON[unit])

    def claimed(self, unit: ComparableUnit) -> float | None:
        """Return the largest loss in a unit that is claimed or declared and not proved; None where none."""
        return self.value(CLAIMED[unit])

    def promised(self, unit: ComparableUnit) -> float | None:
        """Return the largest loss in a unit that is proved, or else claimed; None without a bound."""
        claimed = None if self.status == "proved" else self.claimed(unit)
        return self.epsilon(unit) if claimed is None else claimed

    @cached_property
    def composed(self) -> float | None:
        """The largest loss per user by composition, over users and runs; None where there is none."""
        return self.value(COMPOSED)

    @cached_property
    def delta(self) -> float | None:
        """The largest delta with which losses were composed; None where there is none."""
        return self.value(_DELTA)

    @property
    def any_two(self) -> float | None:
        """The largest loss between any two profiles, over users and runs; None where none is proved."""
        return self.value(_ANY_TWO)

    @cached_property
    def status(self) -> Status:
        """How far its promise carries, in the weakest of its runs."""
        statuses = {row.get(_STATUS.name) for row in self.rows}
        return next((status for status in _WEAKEST_FIRST if status in statuses), "none")

    @cached_property
    def trust(self) -> Trust:
        """The trust that is granted, the most among its runs; central where nothing is said of it."""
        granted = {row.get(_TRUST.name) for row in self.rows}
        return next((trust for trust in reversed(LEAST_TRUST_FIRST) if trust in granted), "central")

    @cached_property
    def needed_trust(self) -> Trust:
        """The trust that its runs need, which may be less than what was granted."""
        needed = {row.get(NEEDED_TRUST) or row.get(_TRUST.name) for row in self.rows}
        return next((trust for trust in reversed(LEAST_TRUST_FIRST) if trust in needed), "central")

    @cached_property
    def hides(self) -> bool:
        """Whether the item set is hidden from all who are not trusted with it."""
        return self.flag(_HIDES)

    @property
    def hides_from_server(self) -> bool:
        """Whether nobody sees which items a user rated, a trusted server included."""
        return self.hides and self.needed_trust != "central"

    @property
    def in_random_order(self) -> bool:
        """Whether it is a list of which nothing is known: nothing is sent, and nothing public read."""
        return self.lists and self.baseline == "nothing-sent" and not self.has("public_items")

    @property
    def falls_short(self) -> bool:
        """Whether it was given a budget of which it is not proved that it is kept."""
        return self.budget is not None and self.status != "proved"

    @property
    def asked_per_user(self) -> bool:
        """Whether its budget is for a whole user, as far as that is known."""
        return self.text(_PER) == "user"

    def asked_otherwise(self, unit: ComparableUnit) -> str:
        """Return for what its budget is, where that is not a unit, and its delta if no loss holds without."""
        budget_unit = self.text(_PER)
        if budget_unit is None or self.asked_per_user is (unit == "user"):
            return ""
        needed = self.asked_per_user and self.promised("user") is None and self.delta is not None
        return f" per {budget_unit}" + (f", δ = {self.delta:g}" if needed else "")

    @property
    def word(self) -> str:
        """What a promise is that is not proved: declared by a user-defined class, or claimed."""
        return "declared" if self.status == "declared" else "claimed"

    @property
    def private(self) -> bool:
        """Whether a privacy loss is bounded at all, of one release or composed."""
        bounds = self.epsilon("rating"), self.epsilon("user"), self.composed
        return any(bound is not None for bound in bounds)

    @property
    def baseline(self) -> str | None:
        """Which baseline it is: one of `dprec.protocols.base.BASELINES`, or `TOLD`; None for a protocol."""
        return self._of_all("baseline")

    @property
    def own(self) -> bool:
        """Whether any part of it is user-defined: named ``module:Class``, or with a loss that it declares."""
        return self.status == "declared" or any(":" in (self.text(part) or "") for part in _PARTS)

    @property
    def title(self) -> str:
        """Its name, which says of what is user-defined that it is."""
        return f"{self.name} (your own)" if self.own else self.name

    @property
    def reference(self) -> bool:
        """Whether it is a protocol with neither a budget nor a bound on a privacy loss."""
        return self.baseline is None and self.budget is None and not self.private

    def label(self, reference: float | None) -> str:
        """Return its name, with its budget if that is not the reference budget."""
        return self.name if self.budget in (None, reference) else f"{self.name} (ε {self.budget:g})"

    def profiles_compared(self, epsilon: float | None, link: str = ", ") -> str:
        """Return what qualifies one of its losses per user, which goes after the number."""
        return profiles_compared(epsilon, hides_rated_items=self.hides, link=link)

    @property
    def server_sees(self) -> str:
        """What the server learns directly from the devices, in words."""
        return server_sees(
            trust=self.needed_trust,
            hides_rated_items=self.hides,
            unlinked=self.flag(_UNLINKED),
            declared=self.status == "declared",
            sends=self.mean(BYTES[0]) != 0,
            spends=0 not in (self.epsilon("rating"), self.epsilon("user")),
            lists=self.lists,
        )

    @property
    def lists(self) -> bool:
        """Whether it predicts lists of items, not ratings."""
        return self.mean(_NDCG) is not None

    @cached_property
    def bytes_per_user(self) -> float | None:
        """Mean bytes of a user's messages, both directions together."""
        return self._sum(BYTES)

    @cached_property
    def network_bytes_per_user(self) -> float | None:
        """Mean bytes that a network carries for a user, both ways together; None if that is not known."""
        return self._sum(NETWORK_BYTES)

    def _sum(self, columns: Sequence[Column[Any]]) -> float | None:
        means = [self.mean(column) for column in columns]
        return None if None in means else sum(filter(None, means))

    @property
    def evaluation(self) -> Evaluation | None:
        """What it predicted, with its main metric."""
        metric = next((metric for metric in METRICS if self.average(metric.column)), None)
        return None if metric is None else Evaluation(metric, *self.data)

    @property
    def data(self) -> tuple[str, float | None, str | None, str | None]:
        """Kind of the data set, size of its catalogue, panel and population."""
        kind = str(self.rows[0].get(_DATASET.name))
        return kind, self.mean(_ITEMS), self._of_all("panel"), self.population

    @property
    def population(self) -> str | None:
        """Of which population it is; None for the comparison's own ratings."""
        return self._of_all("population")

    def _of_all(self, name: str) -> str | None:
        """Return the text in a column that is the same in all lines; None if it is empty."""
        return str(self.rows[0].get(name) or "") or None


def read_results(path: Path) -> list[ProtocolResult]:
    """Read comparison.csv.

    Raises
    ------
    InputError
        When it is no such table, or two lines are of one run, which a mean would count twice.
    """
    rows, lines = read_rows(path, _NEEDED), dict[tuple[object, ...], int]()
    for place, row in enumerate(rows, 2):
        if row.get("seed") is not None:
            cell = tuple(row.get(column) for column in _CELL)
            if (first := lines.setdefault(cell, place)) != place:
                accepted = "one line for each name, epsilon, fold, seed and population"
                raise InputError(f"{path}, line {place}", f"the run of line {first} again", accepted)
    return results_of(rows)


def result_of(summary: Summary) -> ProtocolResult:
    """Return the figures of a single run."""
    return ProtocolResult(summary.name, None, (figures_of(summary.as_json()),))


def results_of(rows: Sequence[Row]) -> list[ProtocolResult]:
    """Group the lines of a comparison into results, in the order of the lines."""
    groups = grouped_by(
        ((row["name"], row["epsilon"] or None, row.get("population") or None), row) for row in rows
    )
    return [
        ProtocolResult(name, None if budget is None else float(budget), tuple(group))
        for (name, budget, _), group in groups.items()
    ]


def metrics_of(results: Sequence[ProtocolResult]) -> list[Metric]:
    """Return the metrics that any of some results has, in the order of `metrics_in`.

    Those of the first k items are left out where nearly all users have no more.
    """
    columns = dict.fromkeys(column for result in results for row in result.rows for column in row)
    shares = [share for result in results if (share := result.mean(_WHOLE_LISTS)) is not None]
    if shares and min(shares) >= NEARLY_ALL:
        columns = {name: None for name in columns if not name.endswith("_at_k")}
    metrics = metrics_in(columns)
    return [metric for metric in metrics if any(result.average(metric.column) for result in results)]


def by_evaluation(results: Sequence[ProtocolResult]) -> dict[Evaluation, list[ProtocolResult]]:
    """Group results by what they predicted, in their order."""
    predicted = [(result.evaluation, result) for result in results]
    return grouped_by((evaluation, result) for evaluation, result in predicted if evaluation)


def by_protocol(results: Sequence[ProtocolResult]) -> dict[str, list[ProtocolResult]]:
    """Group results by protocol, in their order."""
    return grouped_by((result.name, result) for result in results)


def by_accuracy(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the results that have a metric, the most accurate first."""
    ranked = [
        (metric.sort_key(mean), result)
        for result in results
        if (mean := result.mean(metric.column)) is not None
    ]
    return [result for _, result in sorted(ranked, key=lambda entry: (entry[0], entry[1].name))]


def _is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def reference_budget(results: Sequence[ProtocolResult]) -> float | None:
    """Return the budget that most protocols share; among several, the one nearest to 1."""
    budgets = [result.budget for result in results if result.budget is not None]
    if not budgets:
        return None
    return min(set(budgets), key=lambda budget: (-budgets.count(budget), abs(math.log(budget)), budget))


def reference_in_words(results: Sequence[ProtocolResult]) -> str:
    """Return what a caption says of the budget at which protocols are shown."""
    reference = reference_budget(results)
    return "" if reference is None else f" ε = {reference:g} unless the label says otherwise."


def at_reference(results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return one result per protocol: at the reference budget, or at its nearest."""
    reference = reference_budget(results)

    def distance(result: ProtocolResult) -> float:
        return abs(math.log(result.budget / reference)) if result.budget and reference else 0.0

    return [min(of_protocol, key=distance) for of_protocol in by_protocol(results).values()]


@dataclass(frozen=True, eq=False)
class ComparisonFiles:
    """A comparison."""

    directory: Path
    config: dict[str, Any]
    """As in comparison.yaml."""
    results: list[ProtocolResult]
    """From comparison.csv, on the comparison's own ratings."""
    populations: list[ProtocolResult]
    """From comparison.csv, on the other populations."""
    timings: list[ProtocolResult]
    """From timing.csv; empty where there is none."""

    def cells(self, result: ProtocolResult) -> list[Path]:
        """Return the existing run directories of a result, in the order of its lines."""
        parent = self.directory / directories.CELLS
        folders = [parent / key for key in _keys(result)]
        # A table may come from anywhere; its names must not lead out of the directory.
        return [
            folder
            for folder in folders
            if folder.parent == parent and (folder / directories.SUMMARY).is_file()
        ]

    @cached_property
    def shown_cells(self) -> list[tuple[ProtocolResult, Path]]:
        """A run of every protocol but baselines: at the reference budget, of the first fold and seed."""
        results = [result for group in by_evaluation(self.results).values() for result in at_reference(group)]
        protocols = [(result, self.cells(result)) for result in results if result.baseline is None]
        return [(result, cells[0]) for result, cells in protocols if cells]

    @cached_property
    def summary(self) -> Callable[[Path], Summary]:
        """What reads the summary of a run directory, and each only once."""
        return cache(read_summary)

    @cached_property
    def summaries(self) -> dict[str, list[Summary]]:
        """The summaries of every protocol's cells, by the protocol's name."""
        cells = ((result.name, cell) for result in self.results for cell in self.cells(result))
        return grouped_by((name, self.summary(cell)) for name, cell in cells)

    @property
    def matched_unit(self) -> ComparableUnit:
        """The unit in which every protocol was given the same epsilon."""
        return "user" if unit_from_text(self._part("match").get("epsilon")) == "user" else "rating"

    @property
    def unit_in_words(self) -> str:
        """The same in words."""
        listing = bool(self.results) and all(result.lists for result in self.results)
        return unit_in_words(self.matched_unit, lists=listing)

    @property
    def matched_delta(self) -> float | None:
        """The delta that every protocol was given beside it; None if losses are added up."""
        delta = self._part("match").get("delta")
        return delta if isinstance(delta, float) else None

    @property
    def epsilons(self) -> list[float]:
        """The budgets that protocols ran at, of those that they were given unless they had their own."""
        configured, ran_at = self.config.get("epsilons"), {result.budget for result in self.results}
        return [float(epsilon) for epsilon in configured or () if epsilon in ran_at]

    @property
    def waiting(self) -> str | None:
        """Why there is no answer yet: a protocol has no run. None once each has one."""
        cells = self._part("cells").values()
        names = {str(cell["name"]) for cell in cells if isinstance(cell, dict) and "name" in cell}
        return no_answer_yet(names, {result.name for result in (*self.results, *self.populations)})

    @property
    def unfinished(self) -> list[str]:
        """Keys of the cells that the configuration asks for but the table lacks."""
        tabulated = {key for result in (*self.results, *self.populations) for key in _keys(result)}
        return [key for key in self._part("cells") if key not in tabulated]

    def _part(self, name: str) -> dict[str, Any]:
        """Return a mapping of the configuration; a table may lie alone, without one."""
        part = self.config.get(name)
        return part if isinstance(part, dict) else {}


def no_answer_yet(planned: Collection[str], run: Collection[str]) -> str | None:
    """Say how many of a comparison's protocols have a run, while some have none."""
    have = sum(name in run for name in planned)
    return None if have == len(planned) else f"no answer yet: {have} of {len(planned)} protocols have a run"


def _keys(result: ProtocolResult) -> list[str]:
    """Return the keys of a result's cells, in the order of its lines."""
    return [
        directories.cell_key(result.name, result.budget, row.get("fold"), row.get("seed"), result.population)
        for row in result.rows
    ]


def read_comparison(directory: Path) -> ComparisonFiles:
    """Read a comparison directory; its cells are read on demand."""
    config, timings = directory / directories.COMPARISON, directory / directories.TIMINGS
    results = read_results(directory / directories.TABLE)
    return ComparisonFiles(
        directory=directory,
        config=read_yaml(config) if config.is_file() else {},
        results=[result for result in results if result.population is None],
        populations=[result for result in results if result.population is not None],
        timings=results_of(read_rows(timings, ("name", "epsilon"))) if timings.is_file() else [],
    )


def _declared_in_words(declared_by: Sequence[OwnCode], directory: Path) -> str:
    """Say on whose word a promise rests, and what audits of that code found that lie in the directory.

    Raises InputError where one of them is damaged.
    """
    code, verdicts = {declared.component: declared.source for declared in declared_by}, []
    for file in sorted((directory / directories.AUDITS).glob(f"*/{directories.AUDIT}")):
        audit = directories.parse_audit(read_text(file), str(file))
        if isinstance(audit, directories.AuditRecord) and audit.declared_by == code:
            verdict = "found no evidence against it" if audit.holds else "contradicts it"
            measured = f"at ε = {loss(audit.promised)} at least {loss(audit.lower_bound)} was measured"
            detection = f", and a twofold leak would be seen with probability {audit.power:.2f} or more"
            verdicts.append(f"the audit {verdict}: {measured}{detection if audit.holds else ''}")
    none = f"no audit of this code is in {directories.AUDITS}/, and nothing is proved"
    return f"ε is declared by {listed(code)}; {'; '.join(verdicts) or none}."


def declared_in_run(summary: Summary, directory: Path) -> tuple[str, ...]:
    """Return what a run's page says of a promise that is declared; nothing of any other."""
    declared_by = summary.privacy.declared_by
    return (_declared_in_words(declared_by, directory),) if declared_by else ()


def declared_in_comparison(files: ComparisonFiles) -> Iterator[tuple[str, str]]:
    """Yield the protocols whose promise is declared, and what to say of it."""
    declared = [result for result in files.results if result.status == "declared"]
    yield from dict.fromkeys(
        (result.name, _declared_in_words(files.summary(cell).privacy.declared_by, files.directory))
        for result in declared
        for cell in files.cells(result)
    )


def declared_lines(directory: Path) -> list[str]:
    """Return, for the terminal, what a comparison has of promises that are declared."""
    return [f"  {name}: {words}" for name, words in declared_in_comparison(read_comparison(directory))]
