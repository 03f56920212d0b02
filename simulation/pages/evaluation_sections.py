"""The sections of a comparison's page about one evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from dprec.privacy.units import COMPARABLE_UNITS
from simulation.analysis.populations import courses
from simulation.analysis.protocol_results import reference_budget
from simulation.analysis.sentences import item_set_sentences, verdict_sentences
from simulation.pages.comparison_plots import bytes_plot, epsilon_plot, round_plot, traces_of
from simulation.pages.comparison_sections import population_section, trust_sections
from simulation.pages.comparison_tables import best_table, headline_table, results_table
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import EpsilonAxis
from simulation.pages.figures.noise import distance_plot
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Section, figures, paragraph


def evaluation_plots(part: EvaluationPart) -> list[Plot]:
    """Return the figures of accuracy against privacy, bytes and rounds; that against epsilon comes first."""
    files, results, metric = part.files, part.results, part.metric
    looks, suffix = part.looks, part.suffix
    delta = files.matched_delta
    units = sorted(COMPARABLE_UNITS, key=lambda unit: unit != files.matched_unit)
    axes = [EpsilonAxis(unit) for unit in units] if delta is None else [EpsilonAxis("user", delta)]
    if any(result.falls_short for result in results):
        axes.insert(0, EpsilonAxis(files.matched_unit, delta=delta, asked=True))
    plots = [plot for axis in axes if (plot := epsilon_plot(results, metric, axis, looks, suffix))]
    if metric.column == "rmse" and (distances := distance_plot(results, looks)):
        plots.append(distances)
    if by_bytes := bytes_plot(results, metric, looks, suffix):
        plots.append(by_bytes)
    traces = traces_of(files, results, metric)
    # With a single evaluated round, accuracy against bytes shows it all.
    if any(trace.accuracy.size > 1 for trace in traces):
        plots.append(round_plot(traces, results, metric, looks, suffix, reference_budget(files.results)))
    return plots


def evaluation_sections(
    part: EvaluationPart, plots: Sequence[Plot], draw: Draw, *, main: bool
) -> list[Section]:
    """Return the sections of one evaluation.

    Parameters
    ----------
    plots : sequence of Plot
        Those of its figures that the answer does not show.
    draw : callable
        Renders a figure and writes its files.
    main : bool
        Whether its headline is part of the answer already.
    """
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
        Section(f"best{suffix}", part.titled("Most accurate at each budget"), (*_sentences(part), best))
    )
    if plots:
        drawn = figures([draw(plot) for plot in plots])
        sections.append(Section(f"figures{suffix}", part.titled("Accuracy, privacy and bytes"), (drawn,)))
    table = results_table(part)
    sections.append(Section(f"table{suffix}", part.titled("Every protocol, every figure"), (table,)))
    return sections


def _sentences(part: EvaluationPart) -> list[str]:
    """Return what is said of every budget against nothing sent, and of the visible set."""
    group, unit = {part.evaluation: part.results}, part.files.matched_unit
    said = (*verdict_sentences(group, unit).values(), *item_set_sentences(group, unit).values())
    return [paragraph(sentence) for sentence in said]
