"""The page of a comparison: which protocol, and at what price."""

from __future__ import annotations

from dataclasses import replace

from simulation.analysis.comparison_files import ComparisonFiles
from simulation.pages.comparison_page import (
    comparison_answer,
    evaluation_plots,
    evaluation_sections,
    first_notes,
    notes_sections,
)
from simulation.pages.comparison_sections import (
    mechanisms_sections,
    read_noise,
    sampled_noise_section,
    user_section,
)
from simulation.pages.comparison_tables import published_section
from simulation.pages.deployment import (
    HOW_TO_PROJECT,
    comparison_projections,
    projection_sections,
    reference_traffic,
)
from simulation.pages.evaluation_parts import evaluation_parts
from simulation.pages.figures.looks import looks_of
from simulation.pages.figures.rendering import Draw
from simulation.pages.page import Section, page, paragraph
from simulation.pages.words import comparison_in_words, data_in_words


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    population : float or None
        Number of users in a deployment.
    draw : callable
        Renders a figure and writes its files.
    """
    looks, traffic = looks_of(files.results, by_trust=files.matched_unit == "user"), reference_traffic(files)
    parts = evaluation_parts(files, looks)
    picture = None
    sections: list[Section] = []
    for part in parts:
        plots, main = evaluation_plots(part), part is parts[0]
        if main and plots:
            picture = draw(plots.pop(0))
        sections += evaluation_sections(part, plots, draw, main=main)
    sections += [
        user_section(files, traffic, looks, draw),
        *mechanisms_sections(files, looks, draw),
        *sampled_noise_section(read_noise(files.directory), looks, draw),
        *published_section(files),
        *projection_sections(comparison_projections(traffic, population) if population else [], population),
        *notes_sections(files),
        _provenance(files, projected=population is not None),
    ]
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    answer = comparison_answer(parts, picture) if parts else None
    folded = [replace(section, folded=True) for section in sections]
    return page(title, "dprec comparison", comparison_in_words(files), first_notes(files), folded, answer)


def _provenance(files: ComparisonFiles, *, projected: bool) -> Section:
    words = (
        "comparison.csv holds the figures of every run, timing.csv how long each took, cells/ the runs "
        "themselves, comparison.yaml the configuration, and figures/ the figures as PNG and SVG."
    )
    hint = () if projected else (paragraph(HOW_TO_PROJECT),)
    return Section(
        "provenance", "How it was made", (paragraph(data_in_words(files)), paragraph(words), *hint)
    )
