"""The section of a comparison's page about the number of users that a protocol needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from simulation.analysis.columns import BUDGET, BYTES_DOWN, BYTES_UP, TRUST
from simulation.analysis.gains import gain_digits
from simulation.analysis.populations import Course, population_sentences
from simulation.analysis.vocabulary import Metric
from simulation.pages.comparison_tables import heading, named_cell, result_cell
from simulation.pages.figures.accuracy import draw_accuracy_against_users
from simulation.pages.figures.looks import Looks, trust_in_words
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Cell, Column, Section, figures, number_cell, paragraph, table

_WORDS = (
    "What a protocol learns improves with the number of users; with nothing sent, nothing does. From how "
    "many users on a protocol is better by more than the uncertainty of the difference, interpolated on a "
    "logarithmic axis between those that were run:"
)


def population_section(
    courses: Sequence[Course], metric: Metric, looks: Looks, draw: Draw, suffix: str
) -> list[Section]:
    """Return the section, if any protocol was run with several numbers of users.

    Parameters
    ----------
    suffix : str
        What distinguishes its figures from others of their kind.
    """
    if not courses:
        return []
    sentences = Markup("<ul>{}</ul>").format(
        Markup("").join(Markup("<li>{}</li>").format(each) for each in population_sentences(courses))
    )
    together = sorted(courses, key=_together)
    plots = [_plot(list(own), metric, looks, suffix) for _, own in groupby(together, key=_together)]
    content = (
        paragraph(_WORDS),
        sentences,
        figures([draw(plot) for plot in plots]),
        _table(courses, metric, looks),
    )
    return [Section(f"users{suffix}", "How many users before it is worth it", content)]


def _together(course: Course) -> tuple[str, float]:
    """Return what is the same of courses that share a figure."""
    return course.ratings, course.budget or 0.0


def _plot(courses: Sequence[Course], metric: Metric, looks: Looks, suffix: str) -> Plot:
    ratings, budget = _together(courses[0])
    lines = [
        f"{each.name} {each.points[0].accuracy:.3f} with {each.points[0].users:,.0f} users to "
        f"{each.points[-1].accuracy:.3f} with {each.points[-1].users:,.0f}; it "
        f"{each.verdict}"
        for each in courses
    ]
    read = ["Solid line without markers: nothing sent; shaded: worse than that."]
    if any(course.crossing for course in courses):
        read.append("A ring is where a protocol begins to beat it by more than the uncertainty.")
    given = "" if ratings == "synthetic" else f"-{ratings}"
    return Plot(
        f"accuracy-users-{budget:g}{given}{suffix}",
        f"{metric.label} against the number of users, ε = {budget:g}",
        " ".join([*read, *trust_in_words({each.name: looks[each.name] for each in courses})]),
        f"{metric.label} against the number of users, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_users(style, courses, metric, looks),
    )


def _table(courses: Sequence[Course], metric: Metric, looks: Looks) -> Markup:
    costs = (BYTES_UP[0], BYTES_DOWN[0])
    columns = [
        Column("protocol", numeric=False),
        heading(TRUST),
        heading(BUDGET),
        Column("users"),
        Column(metric.label),
        Column("against nothing sent"),
        *map(heading, costs),
        Column("users needed", numeric=False),
    ]
    rows = [
        [
            named_cell(point.result, looks, {}),
            result_cell(TRUST, point.result),
            result_cell(BUDGET, point.result),
            number_cell(point.users, 0),
            number_cell(point.accuracy, metric.digits),
            Cell(point.against.written(gain_digits(metric)), point.against.mean),
            *(result_cell(column, point.result) for column in costs),
            Cell(course.users_needed, course.crossing),
        ]
        for course in courses
        for point in course.points
    ]
    return table("One line per protocol, budget and number of users", columns, rows)
