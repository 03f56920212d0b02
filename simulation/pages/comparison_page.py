"""The page of a comparison: which protocol, and at what price."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from dprec.privacy.units import COMPARABLE_UNITS
from simulation.analysis.at_each_trust import by_trust
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.delta_notes import notes_on_delta
from simulation.analysis.evaluations import Evaluation, distinguishing_words
from simulation.analysis.measures import Measure
from simulation.analysis.populations import Course, courses
from simulation.analysis.seen_sets import seen_set_sentences
from simulation.analysis.selection import reference_budget
from simulation.analysis.settings import Setting, by_evaluation, by_protocol
from simulation.analysis.verdicts import verdict_sentences
from simulation.analysis.vocabulary import listed, plural
from simulation.pages.comparison_plots import bytes_plot, epsilon_plot, round_plot, traces_of
from simulation.pages.comparison_tables import best_table, published_section, settings_table
from simulation.pages.deployment import (
    HOW_TO_PROJECT,
    comparison_projections,
    projection_sections,
    reference_traffic,
)
from simulation.pages.figures.accuracy_by_epsilon import EpsilonAxis
from simulation.pages.figures.bounded_distance import distance_plot
from simulation.pages.figures.looks import Looks, looks_of
from simulation.pages.figures.rendering import Draw
from simulation.pages.noise_sections import mechanisms_sections, read_noise, sampled_noise_section
from simulation.pages.page import Section, dashed, figures, page, paragraph
from simulation.pages.population_section import population_section
from simulation.pages.trust_section import trust_section
from simulation.pages.user_section import user_section
from simulation.pages.words import comparison_in_words, merged_notes


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    files : ComparisonFiles
    population : float or None
        Number of users in a deployment.
    draw : callable
        Renders a figure and writes its files.
    """
    groups = by_evaluation(files.settings)
    per_user = files.matched_unit == "user"
    looks = looks_of(files.settings, by_trust=per_user)
    for evaluation, own in groups.items():
        looks |= looks_of(own, by_trust=per_user)
        groups[evaluation] = by_trust(own) if per_user else own
    traffic = reference_traffic(files)
    sections: list[Section] = []
    suffixes: list[str] = []
    for evaluation, settings in groups.items():
        words = distinguishing_words(evaluation, list(groups))
        suffixes.append(_suffix(words, suffixes))
        every = courses([*settings, *files.populations], evaluation.measure)
        sections += _accuracy_sections(files, evaluation, settings, looks, draw, words, suffixes[-1], every)
    sections += [
        user_section(files, traffic, looks, draw),
        *mechanisms_sections(files, draw),
        *sampled_noise_section(read_noise(files.directory), looks, draw),
        *published_section(files),
        *projection_sections(comparison_projections(traffic, population) if population else [], population),
        _provenance(projected=population is not None),
    ]
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    return page(title, "dprec comparison", comparison_in_words(files), _notes(files), sections)


def _suffix(words: Sequence[str], taken: Sequence[str]) -> str:
    """Return the suffix that distinguishes a group's figures from others in their file names."""
    # Whatever a table holds, a figure stays in its directory.
    suffix = "".join("-" + re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)
    return f"{suffix}-{len(taken) + 1}" if suffix in taken else suffix


def _notes(files: ComparisonFiles) -> list[str]:
    every = [
        (name, note)
        for name, summaries in files.summaries.items()
        for summary in summaries
        for note in summary.notes
    ]
    floors = {setting.name for setting in files.settings if setting.floor}
    protocols = set(by_protocol(files.settings)) - floors
    groups = by_evaluation(files.settings)
    notes = _headed("Against nothing sent", verdict_sentences(groups, files.matched_unit), list(groups))
    notes += _headed("The visible set", seen_set_sentences(groups, files.matched_unit), list(groups))
    if files.matched_delta is not None:
        notes += notes_on_delta(files.matched_delta, files.populations)
    if files.unfinished:
        missing = listed(files.unfinished[:4]) + (" and others" if len(files.unfinished) > 4 else "")
        notes.append(f"{plural(len(files.unfinished), 'unfinished run')} left out: {missing}.")
    left_out = files.config.get("left_out")
    for name, reason in left_out.items() if isinstance(left_out, dict) else ():
        notes.append(Markup("<strong>{}:</strong> left out: {}.").format(name, reason))
    for names, note, others in merged_notes(every):
        all_of_several = len(protocols) > 1 and protocols <= set(names)
        also = [name for name in names if name in floors]
        whom = listed(["Every protocol", *also] if all_of_several else names)
        more = f" (With other numbers in {plural(others, 'more run')}.)" if others else ""
        notes.append(Markup("<strong>{}:</strong> {}").format(whom, note + more))
    return notes


def _headed(title: str, sentences: Mapping[Evaluation, str], every: Sequence[Evaluation]) -> list[str]:
    """Return a note for every sentence, which says what it is about if several things are predicted."""
    return [
        Markup("<strong>{}:</strong> {}").format(
            ", ".join([title, *distinguishing_words(evaluation, every)]), sentence
        )
        for evaluation, sentence in sentences.items()
    ]


def _accuracy_sections(
    files: ComparisonFiles,
    evaluation: Evaluation,
    settings: list[Setting],
    looks: Looks,
    draw: Draw,
    words: Sequence[str],
    suffix: str,
    every: Sequence[Course],
) -> list[Section]:
    measure = evaluation.measure
    of_what = f" ({', '.join(words)})" if words else ""
    answers = []
    if files.matched_unit == "user":
        matched = files.epsilons, files.matched_delta
        answers = [trust_section(settings, measure, looks, every, matched, of_what, suffix)]
    return [
        *answers,
        *population_section(every, measure, looks, draw, suffix),
        Section(
            f"best{suffix}",
            f"Most accurate at each budget{of_what}",
            (best_table(settings, measure, looks),),
        ),
        Section(
            f"figures{suffix}",
            f"Accuracy, privacy and bytes{of_what}",
            _drawn(files, settings, measure, looks, draw, suffix),
        ),
        Section(
            f"table{suffix}",
            f"Every protocol, every figure{of_what}",
            (settings_table(files, settings, measure, looks),),
        ),
    ]


def _drawn(
    files: ComparisonFiles,
    settings: list[Setting],
    measure: Measure,
    looks: Looks,
    draw: Draw,
    suffix: str,
) -> tuple[str, ...]:
    """Return the figures of accuracy against privacy, bytes and rounds."""
    delta = files.matched_delta
    axes = [EpsilonAxis(unit) for unit in COMPARABLE_UNITS] if delta is None else [EpsilonAxis("user", delta)]
    if any(setting.falls_short for setting in settings):
        axes.insert(0, EpsilonAxis(files.matched_unit, delta=delta, asked=True))
    rendered = [draw(plot) for axis in axes if (plot := epsilon_plot(settings, measure, axis, looks, suffix))]
    if measure.column == "rmse" and (distances := distance_plot(settings, looks)):
        rendered.append(draw(distances))
    if by_bytes := bytes_plot(settings, measure, looks, suffix):
        rendered.append(draw(by_bytes))
    traces = traces_of(files, settings, measure)
    one_round = all(trace.accuracy.size <= 1 for trace in traces)
    if not one_round:
        reference = reference_budget(files.settings)
        rendered.append(draw(round_plot(traces, settings, measure, looks, suffix, reference)))
    return (figures(rendered), *([dashed(_ONE_ROUND)] if one_round else []))


_ONE_ROUND = (
    "By round: every protocol here has a single evaluated round, so accuracy against bytes shows it all."
)


def _provenance(*, projected: bool) -> Section:
    words = (
        "comparison.csv holds the figures of every run, timing.csv how long each took, cells/ the runs "
        "themselves, comparison.yaml the configuration, and figures/ the figures as PNG and SVG."
    )
    hint = () if projected else (paragraph(HOW_TO_PROJECT),)
    return Section("provenance", "How it was made", (paragraph(words), *hint))
