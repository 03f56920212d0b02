"""The page of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simulation.analysis.vocabulary import listed, plural
from simulation.pages.deployment import HOW_TO_PROJECT, projection_sections, run_projections
from simulation.pages.figures.rendering import Draw
from simulation.pages.page import Section, figures, page, paragraph, render_template
from simulation.pages.run_page import run_answer, summary_plot, user_bytes_plot
from simulation.pages.run_sections import (
    completion_sections,
    example_sections,
    noise_sections,
    ranking_sections,
    rounds_sections,
    user_table,
)
from simulation.pages.words import components_in_words, run_in_words
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import DatasetSummary


def run_page(
    run: RunFiles, config_text: str, population: float | None, draw: Draw, declared: Sequence[str] = ()
) -> str:
    """Return the page of a run.

    Parameters
    ----------
    config_text : str
        Contents of config.yaml.
    population : float or None
        Number of users in a deployment.
    draw : callable
        Renders a figure and writes its files.
    declared : sequence of str
        What there is to say of a promise that a class from outside dprec declares.
    """
    summary = run.summary
    notes = [*declared, *summary.notes, *_unknown_entities(summary.dataset)]
    answer = run_answer(summary, draw(summary_plot(run)))
    projected = projection_sections(run_projections(run, population) if population else [], population)
    sections = [
        *example_sections(run),
        *ranking_sections(run),
        Section("users", "Bytes and ε per user", (user_table(run), figures([draw(user_bytes_plot(run))]))),
        *noise_sections(run, draw),
        *rounds_sections(run, draw),
        *completion_sections(run, draw),
        _provenance(run, config_text, projected=population is not None),
    ]
    folded = [replace(section, folded=True) for section in sections]
    return page(summary.name, "dprec run", run_in_words(run), notes, [*projected, *folded], answer)


def _unknown_entities(dataset: DatasetSummary) -> list[str]:
    unknown = [
        plural(count, entity)
        for entity, count in (
            ("user", dataset.users_only_in_test),
            ("item", dataset.items_only_in_test),
        )
        if count
    ]
    return [f"Only in the test ratings, never in the training ratings: {listed(unknown)}."] if unknown else []


def _provenance(run: RunFiles, config_text: str, *, projected: bool) -> Section:
    summary = run.summary
    seconds, environment = summary.time, summary.environment
    versions = ", ".join(f"{key} {value}" for key, value in environment.items() if isinstance(value, str))
    words = (
        f"{seconds.total_s:.1f} s in total: {seconds.clients_s:.1f} s on the devices, "
        f"{seconds.server_s:.1f} s on the server, {seconds.startup_s:.1f} s to start up; peak memory "
        f"{summary.peak_memory_mb:,.0f} MB. {versions}."
    )
    return Section(
        "provenance",
        "How it was made",
        (
            paragraph(components_in_words(run)),
            paragraph(words),
            *(() if projected else (paragraph(HOW_TO_PROJECT),)),
            render_template("configuration.html", config=config_text),
        ),
    )
