"""Audits that stand beside a promise which is only declared: of the very code that declares it.

They are the directories of ``dprec audit`` in the folder audits of a run's or a comparison's directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ConfigDict, Field

from simulation.analysis.comparison_files import ComparisonFiles, read_comparison
from simulation.analysis.vocabulary import listed, loss
from simulation.storage.directories import AUDIT, AUDITS
from simulation.storage.files import Document, parse_document, read_text
from simulation.storage.summary import OwnCode, Summary


class AuditBeside(Document):
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
        found = f"at ε = {loss(self.promised)} at least {loss(self.lower_bound)} was measured"
        if not self.holds:
            return f"the audit contradicts it: {found}"
        return f"the audit found no evidence against it: {found}, and a twofold leak would be seen with " + (
            f"probability {self.power:.2f} or more"
        )


def audits_in(directory: Path) -> list[AuditBeside]:
    """Return the audits in the folder audits of a directory, by the names of theirs.

    Raises
    ------
    InputError
        When one is damaged.
    """
    files = sorted((directory / AUDITS).glob(f"*/{AUDIT}"))
    return [parse_document(AuditBeside, read_text(file), str(file)) for file in files]


def declared_in_words(declared_by: Sequence[OwnCode], audits: Iterable[AuditBeside]) -> str:
    """Say on whose word a promise rests, and what audits of that code found."""
    code = {own.component: own.source for own in declared_by}
    found = [audit.words for audit in audits if dict(audit.declared_by) == code]
    beside = "; ".join(found) if found else f"no audit of this code is in {AUDITS}/, and nothing is proved"
    return f"ε is declared by {listed(code)}; {beside}."


def declared_in_run(summary: Summary, directory: Path) -> tuple[str, ...]:
    """Return what a run's page says of a promise that is declared; nothing of any other."""
    own = summary.privacy.declared_by
    return (declared_in_words(own, audits_in(directory)),) if own else ()


def declared_in_comparison(files: ComparisonFiles) -> Iterator[tuple[str, str]]:
    """Yield the protocols whose promise is declared, and what to say of it."""
    declared = [result for result in files.results if result.status == "declared"]
    audits = audits_in(files.directory) if declared else []
    said = dict.fromkeys(
        (result.name, declared_in_words(files.summary(cell).privacy.declared_by, audits))
        for result in declared
        for cell in files.cells(result)
    )
    yield from said


def declared_lines(directory: Path) -> list[str]:
    """Return, for the terminal, what a comparison has of promises that are declared.

    Raises
    ------
    InputError
    """
    return [f"  {name}: {words}" for name, words in declared_in_comparison(read_comparison(directory))]
