"""The contents of a comparison directory: its results, the runs of their cells, and audits beside them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from dprec.accounting import ComparableUnit, note_on_delta, unit_from_text
from simulation.analysis.protocol_results import ProtocolResult, read_results, results_of
from simulation.analysis.vocabulary import grouped_by, listed, loss
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage import directories
from simulation.storage.columns import read_rows
from simulation.storage.files import Document, parse_document, read_text
from simulation.storage.summary import OwnCode, Summary, read_summary


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
        folders = [self.directory / directories.CELLS / key for key in _keys(result)]
        # A table may come from anywhere; its names must not lead out of the directory.
        inside = [folder for folder in folders if folder.parent == self.directory / directories.CELLS]
        return [folder for folder in inside if (folder / directories.SUMMARY).is_file()]

    @cached_property
    def summary(self) -> Callable[[Path], Summary]:
        """What reads the summary of a run directory, and each only once."""
        return cache(read_summary)

    @cached_property
    def summaries(self) -> dict[str, list[Summary]]:
        """The summaries of every protocol's cells, by the protocol's name."""
        every = ((result.name, cell) for result in self.results for cell in self.cells(result))
        return grouped_by((name, self.summary(cell)) for name, cell in every)

    @property
    def _match(self) -> dict[str, Any]:
        match = self.config.get("match")
        return match if isinstance(match, dict) else {}

    @property
    def matched_unit(self) -> ComparableUnit:
        """The unit in which every protocol was given the same epsilon."""
        return "user" if unit_from_text(self._match.get("epsilon")) == "user" else "rating"

    @property
    def epsilons(self) -> list[float]:
        """The budgets that protocols were given unless they had their own."""
        given = self.config.get("epsilons")
        return [
            float(each)
            for each in (given if isinstance(given, list) else ())
            if isinstance(each, int | float)
        ]

    @property
    def matched_delta(self) -> float | None:
        """The delta that every protocol was given beside it; None if losses are added up."""
        delta = self._match.get("delta")
        return delta if isinstance(delta, float) else None

    @property
    def waiting(self) -> str | None:
        """Why there is no answer yet: a protocol has no run. None once each has one."""
        cells = self.config.get("cells")
        planned = cells.values() if isinstance(cells, dict) else ()
        names = {str(cell["name"]) for cell in planned if isinstance(cell, dict) and "name" in cell}
        return no_answer_yet(names, {result.name for result in (*self.results, *self.populations)})

    @property
    def unfinished(self) -> list[str]:
        """Keys of the cells that the configuration asks for but the table lacks."""
        held = {key for result in (*self.results, *self.populations) for key in _keys(result)}
        planned = self.config.get("cells")
        return [str(key) for key in planned if key not in held] if isinstance(planned, dict) else []


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
    if timings.is_file():
        directories.check_table(timings)
    results = read_results(directory / directories.TABLE)
    return ComparisonFiles(
        directory=directory,
        config=read_yaml(config) if config.is_file() else {},
        results=[result for result in results if result.population is None],
        populations=[result for result in results if result.population is not None],
        timings=results_of(read_rows(timings, ("name", "epsilon"))) if timings.is_file() else [],
    )


class _AuditBeside(Document):
    """What is read of an audit."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)

    holds: bool
    promised: float
    lower_bound: float
    power: float
    declared_by: Mapping[str, str] = Field(default_factory=dict)

    @property
    def words(self) -> str:
        """What was found."""
        verdict = "found no evidence against it" if self.holds else "contradicts it"
        measured = f"at ε = {loss(self.promised)} at least {loss(self.lower_bound)} was measured"
        seen = f"a twofold leak would be seen with probability {self.power:.2f} or more"
        return f"the audit {verdict}: {measured}" + (f", and {seen}" if self.holds else "")


def _audits_in(directory: Path) -> list[_AuditBeside]:
    """Return the audits in the folder audits of a directory, by the names of theirs; refuse a damaged one."""
    files = sorted((directory / directories.AUDITS).glob(f"*/{directories.AUDIT}"))
    return [parse_document(_AuditBeside, read_text(file), str(file)) for file in files]


def _declared_in_words(declared_by: Sequence[OwnCode], audits: Iterable[_AuditBeside]) -> str:
    """Say on whose word a promise rests, and what audits of that code found."""
    code = {own.component: own.source for own in declared_by}
    found = [audit.words for audit in audits if dict(audit.declared_by) == code]
    beside = (
        "; ".join(found)
        if found
        else f"no audit of this code is in {directories.AUDITS}/, and nothing is proved"
    )
    return f"ε is declared by {listed(code)}; {beside}."


def declared_in_run(summary: Summary, directory: Path) -> tuple[str, ...]:
    """Return what a run's page says of a promise that is declared; nothing of any other."""
    own = summary.privacy.declared_by
    return (_declared_in_words(own, _audits_in(directory)),) if own else ()


def declared_in_comparison(files: ComparisonFiles) -> Iterator[tuple[str, str]]:
    """Yield the protocols whose promise is declared, and what to say of it."""
    declared = [result for result in files.results if result.status == "declared"]
    audits = _audits_in(files.directory) if declared else []
    yield from dict.fromkeys(
        (result.name, _declared_in_words(files.summary(cell).privacy.declared_by, audits))
        for result in declared
        for cell in files.cells(result)
    )


def declared_lines(directory: Path) -> list[str]:
    """Return, for the terminal, what a comparison has of promises that are declared."""
    return [f"  {name}: {words}" for name, words in declared_in_comparison(read_comparison(directory))]


def notes_on_delta(delta: float, results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Warn where the delta of a comparison is above one in the number of users of its largest population."""
    users = [count for result in results if (count := result.mean("users")) is not None]
    if users and (note := note_on_delta(delta, round(max(users)))):
        yield note
