"""The notes of a comparison: those that a reader needs first, and those of single protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from simulation.analysis.comparison_files import ComparisonFiles, declared_in_comparison, notes_on_delta
from simulation.analysis.vocabulary import QUICK_IN_WORDS, listed, plural
from simulation.pages.page import Section
from simulation.pages.words import merged_notes

_UNFINISHED = (
    "While the comparison runs, this page is written again now and then: load it again. "
    "After an interrupt or a failure, --resume goes on."
)

_UNPROVED = "the ε is {} and not proved; tables hold what is proved, and figures have a †."

_MOST_NAMES = 4
"""Names that a note lists; of more, only their number is said."""


def first_notes(files: ComparisonFiles) -> list[str]:
    """Return what a reader must know of the whole comparison."""
    notes: list[str] = []
    if files.unfinished:
        planned = len(files.config["cells"])
        notes.append(
            f"{planned - len(files.unfinished)} of {plural(planned, 'run')} are finished, without "
            f"{_few(files.unfinished)}. {_UNFINISHED}"
        )
    if files.config.get("quick"):
        notes.append(Markup("<strong>Quick:</strong> {}").format(QUICK_IN_WORDS))
    left_out = files.config.get("left_out")
    if isinstance(left_out, dict) and left_out:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        notes.append(Markup("<strong>Left out:</strong> {}.").format(reasons))
    unproved = [result for result in files.results if result.falls_short]
    for word in dict.fromkeys(result.word for result in unproved):
        names = [*dict.fromkeys(result.name for result in unproved if result.word == word)]
        notes.append(Markup("<strong>{}:</strong> {}").format(_few(names), _UNPROVED.format(word)))
    notes += [
        Markup("<strong>{}:</strong> {}").format(name, words) for name, words in declared_in_comparison(files)
    ]
    if files.matched_delta is not None:
        notes += notes_on_delta(files.matched_delta, files.populations)
    return [*notes, *(note for note, of_all in _notes_of_runs(files) if of_all)]


def notes_sections(files: ComparisonFiles) -> list[Section]:
    """Return the section with what holds of some protocols, if there is any such note."""
    notes = [note for note, of_all in _notes_of_runs(files) if not of_all]
    if not notes:
        return []
    lines = Markup("").join(Markup("<li>{}</li>").format(note) for note in notes)
    content = (Markup("<ul>{}</ul>").format(lines),)
    return [Section("notes-of-protocols", "Notes on protocols", content)]


def _notes_of_runs(files: ComparisonFiles) -> Iterator[tuple[str, bool]]:
    """Yield the notes of all runs, and whether they hold for every protocol, or every one with a budget."""
    every = [
        (name, note)
        for name, summaries in files.summaries.items()
        for summary in summaries
        for note in summary.notes
    ]
    protocols = {result.name for result in files.results if not result.baseline}
    budgeted = {result.name for result in files.results if result.budget is not None}
    rows = {result.name for result in files.results}
    wholes = (
        ("Every protocol and every baseline", rows),
        ("Every protocol", protocols),
        ("Every protocol with a budget", budgeted),
    )
    for names, note, others in merged_notes(every):
        held = ((title, own) for title, own in wholes if len(own) > 1 and own <= set(names))
        title, own = next(held, ("", set()))
        whom = listed([*([title] if title else []), *(name for name in names if name not in own)])
        more = f" (With other numbers in {plural(others, 'more run')}.)" if others else ""
        yield Markup("<strong>{}:</strong> {}").format(whom, note + more), bool(title)


def _few(names: Sequence[str]) -> str:
    return listed(names[:_MOST_NAMES]) + (" and others" if len(names) > _MOST_NAMES else "")
