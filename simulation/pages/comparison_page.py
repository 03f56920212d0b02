"""The page of a comparison: which protocol, and at what price."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from simulation.analysis import attacks
from simulation.analysis.answer import answer_sentences
from simulation.analysis.gains import POPULARITY, SETS_ONLY, same_figures
from simulation.analysis.groups import read_groups
from simulation.analysis.populations import Point, courses, population_sentence
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    at_reference,
    declared_in_comparison,
    notes_on_delta,
)
from simulation.analysis.vocabulary import (
    DASH,
    QUICK_IN_WORDS,
    TRUST_IN_WORDS,
    grouped_by,
    listed,
    loss,
    number,
    plural,
    size,
)
from simulation.pages.accuracy import evaluation_plots, noise_plots, population_plot
from simulation.pages.attacks import attack_section
from simulation.pages.comparison_tables import (
    decision,
    grids,
    headline_table,
    published_section,
    results_table,
)
from simulation.pages.deployment import (
    HOW_TO_PROJECT,
    comparison_projections,
    projection_section,
    reference_traffic,
)
from simulation.pages.drawing import Draw
from simulation.pages.evaluation_parts import EvaluationPart, evaluation_parts
from simulation.pages.groups import groups_section
from simulation.pages.looks import looks_of
from simulation.pages.noise import noise_of_comparison
from simulation.pages.page import Cell, Section, bullets, cell, figures, page, render_template, rows_table
from simulation.pages.users import users_section
from simulation.pages.words import comparison_in_words, data_in_words, merged_notes

_UNPROVED = "the ε is {} and not proved; tables hold what is proved, and figures have a †."

_MOST_NAMES = 4
"""Names that a note lists; of more, only their number is said."""


def _first_notes(files: ComparisonFiles) -> list[str]:
    """Return what a reader must know of the whole comparison."""
    bold = Markup("<strong>{}:</strong> {}")
    notes: list[str] = [bold.format("Quick", QUICK_IN_WORDS)] if files.config.get("quick") else []
    left_out = files.config.get("left_out")
    if isinstance(left_out, dict) and left_out:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        notes.append(bold.format("Left out", f"{reasons}."))
    unproved = [result for result in files.results if result.falls_short]
    for word in dict.fromkeys(result.word for result in unproved):
        names = [*dict.fromkeys(result.name for result in unproved if result.word == word)]
        notes.append(bold.format(_few(names), _UNPROVED.format(word)))
    notes += [bold.format(name, words) for name, words in declared_in_comparison(files)]
    if files.matched_delta is not None:
        notes += notes_on_delta(files.matched_delta, files.populations)
    return [*notes, *(note for note, of_all in _notes_of_runs(files) if of_all)]


def _notes_section(files: ComparisonFiles, parts: Sequence[EvaluationPart]) -> Section:
    """Return the section with what holds of some protocols, if there is any such note."""
    notes = [note for note, of_all in _notes_of_runs(files) if not of_all]
    notes += [note for part in parts for note in same_figures(part.results, part.metric)]
    return Section("notes-of-protocols", "Notes on protocols", (bullets(notes),))


def _notes_of_runs(files: ComparisonFiles) -> Iterator[tuple[str, bool]]:
    """Yield the notes of all runs, and whether they hold for every protocol, or every one with a budget."""
    every = [(name, note) for name, own in files.summaries.items() for each in own for note in each.notes]
    results = files.results
    wholes = (
        ("Every protocol and every baseline", {each.name for each in results}),
        ("Every protocol", {each.name for each in results if not each.baseline}),
        ("Every protocol with a budget", {each.name for each in results if each.budget is not None}),
    )
    for names, note, others in merged_notes(every):
        held = ((title, own) for title, own in wholes if len(own) > 1 and own <= set(names))
        title, own = next(held, ("", set()))
        whom = listed([*([title] if title else []), *(name for name in names if name not in own)])
        more = f" (With other numbers in {plural(others, 'more run')}.)" if others else ""
        yield Markup("<strong>{}:</strong> {}").format(whom, note + more), bool(title)


def _few(names: Sequence[str]) -> str:
    return listed(names[:_MOST_NAMES]) + (" and others" if len(names) > _MOST_NAMES else "")


def _evaluation(part: EvaluationPart, draw: Draw, *, main: bool) -> tuple[Markup, list[Section]]:
    """Return what one evaluation answers, and its sections."""
    suffix, plots = part.suffix, evaluation_plots(part)
    # Drawn first, because the headline links to the folder of figures if there is one.
    picture = figures(plots[:1], draw, folded=True) if plots else ""
    answer = render_template(
        "comparison_answer.html",
        title=part.titled("Answer"),
        sentences=answer_sentences(part.answer),
        anchor="answer" if main else f"answer{suffix}",
        decision=decision(part) if main else "",
        headline=headline_table(part),
        grids=grids(part),
        picture=picture,
    )
    every = part.titled("All results: filter, sort, choose columns")
    sections = [
        Section(f"table{suffix}", every, (results_table(part),)),
        population_section(part),
        Section(f"figures{suffix}", part.titled("More figures"), (plots[1:],)),
    ]
    return answer, sections


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison."""
    looks, traffic = looks_of(files.results), reference_traffic(files)
    parts = evaluation_parts(files, looks)
    of_parts = [_evaluation(part, draw, main=part is parts[0]) for part in parts]
    projected = comparison_projections(traffic, population) if population else []
    # The figure of groups has the protocols at the reference budget.
    results = [each for each in at_reference(files.results) if each.baseline in (None, SETS_ONLY)]
    shown = {(each.name, each.budget) for each in results}
    groups = [line for line in read_groups(files.directory) if line.name in looks]
    sections = [
        *(section for _, own in of_parts for section in own),
        attack_section(attacks.of_results(files.results), looks),
        groups_section(groups, [line for line in groups if (line.name, line.epsilon) in shown], looks),
        users_section(files, traffic, looks),
        Section("noise-section", "Noise of the mechanisms", (noise_of_comparison(files, looks),)),
        *published_section(files),
        *([projection_section(projected, population)] if population else []),
        _notes_section(files, parts),
        Section(
            "provenance",
            "How it was made",
            (
                data_in_words(files),
                "comparison.csv holds the figures of every run, timing.csv how long each took, cells/ the "
                "runs themselves, comparison.yaml the configuration, and figures/ the figures as SVG.",
                "" if population else HOW_TO_PROJECT,
            ),
        ),
    ]
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    folded = [replace(section, folded=True) for section in sections]
    answered = Markup("").join(answer for answer, _ in of_parts) if parts else None
    words, notes = comparison_in_words(files) + _progress(files), _first_notes(files)
    return page(title, "dprec comparison", words, notes, folded, draw, answered, scripts=("decision.js",))


def _progress(files: ComparisonFiles) -> str:
    """Say how far a comparison is that runs or was interrupted."""
    if not files.unfinished:
        return ""
    planned = len(files.config["cells"])
    return (
        f" {planned - len(files.unfinished)} of {plural(planned, 'run')} are finished, without "
        f"{_few(files.unfinished)}: load the page again while it runs; after an interrupt, --resume goes on."
    )


def population_section(part: EvaluationPart) -> Section:
    """Return the section, if any protocol was run with several numbers of users, or degrees of noise."""
    noise = noise_plots(part)
    if not part.courses:
        return Section(f"tau{part.suffix}", part.titled("How much noise a protocol stands"), (noise,))
    together = grouped_by(((each.ratings, each.budget or 0.0), each) for each in part.courses)
    plots = [population_plot(*key, together[key], part) for key in sorted(together)]
    content = population_sentence(part.courses) or "", _populations_table(part), [*plots, *noise]
    return Section(f"users{part.suffix}", part.titled("How many users before it is worth it"), content)


def _populations_table(part: EvaluationPart) -> Markup:
    """Return from how many users on each protocol is worth it, and what it reaches at each number."""
    lines, metric = part.courses, part.metric
    results = [*part.results, *part.files.populations]
    names = dict.fromkeys(each.name for each in results if each.baseline == POPULARITY)
    beaten = dict.fromkeys(dict.fromkeys(course.base for course in lines), lines)
    beaten |= {name: courses(results, metric, name) for name in names if name not in beaten}
    needed = [
        {(each.name, each.budget, each.ratings): each.users_needed for each in every}
        for every in beaten.values()
    ]

    def reached(point: Point | None) -> tuple[float | None, str]:
        if point is None:
            return None, DASH
        sent = point.result.mean("uplink_message_mean_per_user")
        words = ["" if sent is None else size(sent), "by τ" if point.result.mean("represents") else ""]
        written = number(point.accuracy, metric.digits - 1), ", ".join(filter(None, words))
        return point.accuracy, Markup("{}<br><small>{}</small>").format(*written)

    counts = sorted({point.users for course in lines for point in course.points})
    rows: list[Sequence[Cell]] = [
        (
            course.name,
            cell(course.budget, loss),
            TRUST_IN_WORDS[course.points[0].result.trust],
            *(each.get((course.name, course.budget, course.ratings)) for each in needed),
            *map(reached, map({point.users: point for point in course.points}.get, counts)),
        )
        for course in lines
    ]
    users = [(f"beats {base}", "users") for base in beaten] + [(f"{each:,.0f}", "users") for each in counts]
    caption = f"From how many users on: {metric.label}, and bytes of messages up"
    return rows_table(caption, ["protocol", "ε", "trust", *users], rows)
