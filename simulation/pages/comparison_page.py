"""The page of a comparison: which protocol, and at what price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from simulation.analysis.answer import at_each_trust
from simulation.analysis.comparison_files import ComparisonFiles, declared_in_comparison, notes_on_delta
from simulation.analysis.populations import courses
from simulation.analysis.sentences import (
    answer_sentences,
    item_set_sentence,
    trust_sentences,
    verdict_sentence,
)
from simulation.analysis.vocabulary import QUICK_IN_WORDS, listed, plural
from simulation.pages.comparison_plots import bytes_plot, epsilon_axes, epsilon_plot, round_plot, traces_of
from simulation.pages.comparison_sections import (
    mechanisms_sections,
    population_section,
    read_noise,
    sampled_noise_section,
    trust_sections,
    user_section,
)
from simulation.pages.comparison_tables import best_table, headline_table, published_section, results_table
from simulation.pages.deployment import (
    HOW_TO_PROJECT,
    comparison_projections,
    projection_sections,
    reference_traffic,
)
from simulation.pages.evaluation_parts import EvaluationPart, evaluation_parts
from simulation.pages.figures.looks import looks_of
from simulation.pages.figures.noise import distance_plot
from simulation.pages.figures.rendering import Draw, Plot, Rendered
from simulation.pages.page import Section, figures, page, paragraph, render_template
from simulation.pages.words import comparison_in_words, data_in_words, merged_notes

_UNFINISHED = (
    "While the comparison runs, this page is written again now and then: load it again. "
    "After an interrupt or a failure, --resume goes on."
)

_UNPROVED = "the ε is {} and not proved; tables hold what is proved, and figures have a †."

_MOST_NAMES = 4
"""Names that a note lists; of more, only their number is said."""


def _first_notes(files: ComparisonFiles) -> list[str]:
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


def _notes_sections(files: ComparisonFiles) -> list[Section]:
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


def _comparison_answer(parts: Sequence[EvaluationPart], picture: Rendered | None) -> Markup:
    """Return what a reader came for."""
    main = parts[0]
    drawn = figures([picture], folded=True) if picture else None
    said = [(part, *_first_and_others(part)) for part in parts]
    return render_template(
        "comparison_answer.html",
        said=said,
        picture=drawn,
        headline=headline_table(main),
        several=len(parts) > 1,
    )


def _first_and_others(part: EvaluationPart) -> tuple[str, tuple[str, ...]]:
    """Return the first sentence, and those after it."""
    answer, files = part.answer, part.files
    if files.matched_unit == "user" and answer.budget is not None:
        delta = files.matched_delta
        at_trusts = at_each_trust(part.results, part.metric, budgets=[answer.budget], delta=delta)
        first, *others = trust_sentences(answer, at_trusts, delta)
    else:
        first, *others = answer_sentences(answer, files.matched_unit)
    return first, tuple(others)


def evaluation_plots(part: EvaluationPart) -> list[Plot]:
    """Return the figures of accuracy against privacy, bytes and rounds; that against epsilon comes first."""
    files, results, metric = part.files, part.results, part.metric
    looks, suffix = part.looks, part.suffix
    axes = epsilon_axes(results, files.matched_unit, files.matched_delta)
    plots = [plot] if (plot := epsilon_plot(results, metric, axes, looks, suffix)) else []
    if metric.column == "rmse" and (distances := distance_plot(results)):
        plots.append(distances)
    if by_bytes := bytes_plot(results, metric, looks, suffix):
        plots.append(by_bytes)
    traces = traces_of(files, results, metric)
    # With a single evaluated round, accuracy against bytes shows it all.
    if any(trace.y.size > 1 for trace in traces):
        plots.append(round_plot(traces, results, metric, looks, suffix))
    return plots


def _evaluation_sections(
    part: EvaluationPart, plots: Sequence[Plot], draw: Draw, *, main: bool
) -> list[Section]:
    """Return the sections of one evaluation."""
    files, metric, looks, suffix = part.files, part.metric, part.looks, part.suffix
    every = courses([*part.results, *files.populations], metric)
    sections = []
    if not main:
        sections.append(Section(f"headline{suffix}", part.titled("Protocols"), (headline_table(part),)))
    if files.matched_unit == "user":
        sections += trust_sections(part, every)
    sections += population_section(every, metric, looks, draw, suffix)
    best = best_table(part)
    sections.append(
        Section(f"best{suffix}", part.titled("Most accurate at each budget"), (*_of_budgets(part), best))
    )
    if plots:
        drawn = figures([draw(plot) for plot in plots])
        sections.append(Section(f"figures{suffix}", part.titled("Accuracy, privacy and bytes"), (drawn,)))
    table = results_table(part)
    sections.append(Section(f"table{suffix}", part.titled("Every protocol, every figure"), (table,)))
    return sections


def _of_budgets(part: EvaluationPart) -> list[str]:
    """Return what is said of every budget against nothing sent, and of item sets."""
    said = (
        verdict_sentence(part.results, part.metric, part.files.matched_unit),
        item_set_sentence(part.results, part.metric, part.files.matched_unit),
    )
    return [paragraph(sentence) for sentence in said if sentence]


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison."""
    looks, traffic = looks_of(files.results), reference_traffic(files)
    parts = evaluation_parts(files, looks)
    picture = None
    sections: list[Section] = []
    for part in parts:
        plots, main = evaluation_plots(part), part is parts[0]
        if main and plots:
            picture = draw(plots.pop(0))
        sections += _evaluation_sections(part, plots, draw, main=main)
    sections += [
        user_section(files, traffic, looks, draw),
        *mechanisms_sections(files, looks, draw),
        *sampled_noise_section(read_noise(files.directory), draw),
        *published_section(files),
        *projection_sections(comparison_projections(traffic, population) if population else [], population),
        *_notes_sections(files),
        _provenance(files, projected=population is not None),
    ]
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    answer = _comparison_answer(parts, picture) if parts else None
    folded = [replace(section, folded=True) for section in sections]
    return page(title, "dprec comparison", comparison_in_words(files), _first_notes(files), folded, answer)


def _provenance(files: ComparisonFiles, *, projected: bool) -> Section:
    words = (
        "comparison.csv holds the figures of every run, timing.csv how long each took, cells/ the runs "
        "themselves, comparison.yaml the configuration, and figures/ the figures as SVG."
    )
    hint = () if projected else (paragraph(HOW_TO_PROJECT),)
    return Section(
        "provenance", "How it was made", (paragraph(data_in_words(files)), paragraph(words), *hint)
    )
