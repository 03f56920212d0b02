"""The section of a comparison's page about the number of users that a protocol needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from simulation.analysis.columns import BUDGET, BYTES_DOWN, BYTES_UP, TRUST
from simulation.analysis.floors import gain_digits
from simulation.analysis.measures import Measure
from simulation.analysis.populations import Course, population_sentences
from simulation.pages.figures.accuracy_by_users import draw_accuracy_against_users
from simulation.pages.figures.looks import Looks, trust_in_words
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.markup import Cell, Column, number_cell, table
from simulation.pages.page import Section, figures, paragraph
from simulation.pages.setting_cells import heading, named_cell, setting_cell

_WORDS = (
    "What a protocol learns improves with the number of users; with nothing sent, nothing does. From how "
    "many users on a protocol is better by more than the uncertainty of the difference, interpolated on a "
    "logarithmic axis between those that were run:"
)


def population_section(
    courses: Sequence[Course], measure: Measure, looks: Looks, draw: Draw, suffix: str
) -> list[Section]:
    """Return the section, if any protocol was run with several numbers of users.

    Parameters
    ----------
    courses : sequence of Course
    measure : Measure
    looks : mapping
    draw : callable
    suffix : str
        What distinguishes its figures from others of their kind.
    """
    if not courses:
        return []
    sentences = Markup("<ul>{}</ul>").format(
        Markup("").join(Markup("<li>{}</li>").format(each) for each in population_sentences(courses))
    )
    together = sorted(courses, key=_together)
    plots = [_plot(list(own), measure, looks, suffix) for _, own in groupby(together, key=_together)]
    content = (
        paragraph(_WORDS),
        sentences,
        figures([draw(plot) for plot in plots]),
        _table(courses, measure, looks),
    )
    return [Section(f"users{suffix}", "How many users before it is worth it", content)]


def _together(course: Course) -> tuple[str, float]:
    """Return what is the same of courses that share a figure."""
    return course.ratings, course.budget or 0.0


def _plot(courses: Sequence[Course], measure: Measure, looks: Looks, suffix: str) -> Plot:
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
        f"{measure.label} against the number of users, ε = {budget:g}",
        " ".join([*read, *trust_in_words({each.name: looks[each.name] for each in courses})]),
        f"{measure.label} against the number of users, on a logarithmic axis. {'; '.join(lines)}.",
        lambda style: draw_accuracy_against_users(style, courses, measure, looks),
    )


def _table(courses: Sequence[Course], measure: Measure, looks: Looks) -> Markup:
    costs = (BYTES_UP[0], BYTES_DOWN[0])
    columns = [
        Column("protocol", numeric=False),
        heading(TRUST),
        heading(BUDGET),
        Column("users"),
        Column(measure.label),
        Column("against nothing sent"),
        *map(heading, costs),
        Column("users needed", numeric=False),
    ]
    rows = [
        [
            named_cell(point.setting, looks, {}),
            setting_cell(TRUST, point.setting),
            setting_cell(BUDGET, point.setting),
            number_cell(point.users, 0),
            number_cell(point.accuracy, measure.digits),
            Cell(point.against.written(gain_digits(measure)), point.against.mean),
            *(setting_cell(column, point.setting) for column in costs),
            Cell(course.users_needed, course.crossing),
        ]
        for course in courses
        for point in course.points
    ]
    return table("One line per protocol, budget and number of users", columns, rows)
