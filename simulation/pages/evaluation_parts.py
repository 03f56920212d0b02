"""What a comparison's page shows of one evaluation: its results, their looks, their runs, and its names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from simulation.analysis.answer import Answer, answer_to, by_trust
from simulation.analysis.populations import Course, courses
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    Evaluation,
    ProtocolResult,
    at_reference,
    by_evaluation,
    distinguishing_words,
)
from simulation.analysis.vocabulary import Metric
from simulation.pages.looks import Looks
from simulation.storage.directories import REPORT

Key = tuple[str, float | None]
"""Protocol and budget of a result."""


def representative_runs(files: ComparisonFiles) -> dict[Key, Path]:
    """Return a run directory for each protocol: at the reference budget, of the first fold and seed."""
    every = [result for own in by_evaluation(files.results).values() for result in at_reference(own)]
    # What baselines are needs no page.
    results = [result for result in every if result.baseline is None]
    return {(result.name, result.budget): cells[0] for result in results if (cells := files.cells(result))}


@dataclass(frozen=True, eq=False)
class EvaluationPart:
    """One thing that is predicted, which shares no table and no axis with others."""

    files: ComparisonFiles
    evaluation: Evaluation
    results: Sequence[ProtocolResult]
    looks: Looks
    """Of all protocols of the page."""
    words: tuple[str, ...]
    """What distinguishes it from the others of the page; empty if there is one only."""
    suffix: str
    """The same, in anchors and in the names of files."""
    links: Mapping[Key, str]
    """Addresses of the pages of runs, from the comparison's page."""

    @property
    def metric(self) -> Metric:
        """Its main metric."""
        return self.evaluation.metric

    @cached_property
    def answer(self) -> Answer:
        """What is said of it first."""
        files = self.files
        return answer_to(
            self.results, self.metric, files.matched_unit, files.matched_delta, waiting=files.waiting
        )

    @cached_property
    def courses(self) -> list[Course]:
        """How its protocols do with other numbers of users."""
        return courses([*self.results, *self.files.populations], self.metric)

    @cached_property
    def anchors(self) -> dict[Key, str]:
        """Anchors of the rows of all results; two never share one."""
        anchors: dict[Key, str] = {}
        for result in self.results:
            words = [self.suffix, result.name.lower(), "" if result.budget is None else f"{result.budget:g}"]
            parts = (re.sub(r"[^a-z0-9.]+", "-", each).strip("-") for each in words if each)
            anchor = "-".join(["row", *parts])
            while anchor in anchors.values():
                anchor += "+"
            anchors[result.name, result.budget] = anchor
        return anchors

    def link(self, result: ProtocolResult, words: str) -> Markup:
        """Return a link to the row of a result."""
        return Markup('<a href="#{}">{}</a>').format(self.anchors[result.name, result.budget], words)

    def titled(self, title: str) -> str:
        """Return the title of a section, with what distinguishes it from others of its kind."""
        return f"{title} ({', '.join(self.words)})" if self.words else title


def evaluation_parts(files: ComparisonFiles, looks: Looks) -> list[EvaluationPart]:
    """Return the parts of a comparison, the main one first; none where no accuracy was measured."""
    groups = by_evaluation(files.results)
    links = {
        key: quote((folder / REPORT).relative_to(files.directory).as_posix())
        for key, folder in representative_runs(files).items()
        if (folder / REPORT).is_file()
    }
    per_user = files.matched_unit == "user"
    parts: list[EvaluationPart] = []
    for evaluation, own in groups.items():
        words = tuple(distinguishing_words(evaluation, list(groups)))
        suffix = _suffix(words, [part.suffix for part in parts])
        results = by_trust(own) if per_user else own
        parts.append(EvaluationPart(files, evaluation, results, looks, words, suffix, links))
    return parts


def _suffix(words: Sequence[str], taken: Sequence[str]) -> str:
    """Return the suffix that distinguishes a group's figures from others in their file names."""
    # Whatever a table holds, a figure stays in its directory.
    suffix = "".join("-" + re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)
    return f"{suffix}-{len(taken) + 1}" if suffix in taken else suffix
