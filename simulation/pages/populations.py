"""How many users before it is worth it, on a comparison's page; and what all protocols of sums share: tau."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from markupsafe import Markup

from simulation.analysis.columns import free_column, text_column, written_column
from simulation.analysis.gains import POPULARITY, to_beat
from simulation.analysis.populations import Course, Point, courses, population_sentence
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Metric, grouped_by, loss, number, size
from simulation.pages.comparison_plots import seen
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import draw_accuracy_against_tau, draw_accuracy_against_users
from simulation.pages.figures.drawing import Plot
from simulation.pages.page import Section, table
from simulation.storage.column import Column


def population_section(part: EvaluationPart) -> Section:
    """Return the section, if any protocol was run with several numbers of users, or degrees of noise."""
    noise = _noise_plots(part)
    if not part.courses:
        return Section(f"tau{part.suffix}", part.titled("How much noise a protocol stands"), (noise,))
    together = grouped_by(((each.ratings, each.budget or 0.0), each) for each in part.courses)
    plots = [_population_plot(*key, together[key], part) for key in sorted(together)]
    content = population_sentence(part.courses) or "", _table(part), [*plots, *noise]
    return Section(f"users{part.suffix}", part.titled("How many users before it is worth it"), content)


def _population_plot(ratings: str, budget: float, courses: Sequence[Course], part: EvaluationPart) -> Plot:
    metric = part.metric
    needed = [f"{each.name} {each.users_needed}" for each in courses]
    given, base = "" if ratings == "synthetic" else f"-{ratings}", courses[0].base
    return Plot(
        f"accuracy-users-{budget:g}{given}{part.suffix}",
        f"{metric.label} against the number of users, ε = {budget:g}",
        f"Solid line: {base}; shaded: worse. A ring is where a protocol begins to beat it.",
        f"{metric.label} against users, to beat {base}: {'; '.join(needed)}.",
        [partial(draw_accuracy_against_users, courses=courses, metric=metric, looks=part.looks)],
    )


def _table(part: EvaluationPart) -> Markup:
    """Return from how many users on each protocol is worth it, and what it reaches at each number."""
    lines, metric = part.courses, part.metric
    results = [*part.results, *part.files.populations]
    counts = sorted({point.users for course in lines for point in course.points})
    bases = dict.fromkeys([course.base for course in lines])
    names = dict.fromkeys(each.name for each in results if each.baseline == POPULARITY)
    further = {name: courses(results, metric, name) for name in names if name not in bases}

    def needed(base: str, every: Sequence[Course]) -> Column[Course]:
        own = {(each.name, each.budget, each.ratings): each for each in every}

        def words(course: Course) -> str:
            found = own.get((course.name, course.budget, course.ratings))
            return DASH if found is None else found.users_needed

        return text_column(f"beats {base}", words, "users")

    columns: list[Column[Course]] = [
        text_column("protocol", attrgetter("name")),
        written_column("ε", attrgetter("budget"), loss),
        text_column("trust", lambda course: TRUST_IN_WORDS[course.points[0].result.trust]),
        *(needed(base, lines) for base in bases),
        *(needed(name, every) for name, every in further.items()),
        *map(partial(_reached_with, metric=metric), counts),
    ]
    return table(f"From how many users on: {metric.label}, and bytes of messages up", columns, lines)


def _reached_with(users: float, metric: Metric) -> Column[Course]:
    """Return the column of what is reached with so many users, and sent."""

    def of(course: Course) -> Point | None:
        return next((each for each in course.points if each.users == users), None)

    def value(course: Course) -> float | None:
        point = of(course)
        return None if point is None else point.accuracy

    def text(course: Course) -> str:
        point = of(course)
        return DASH if point is None else _reached_and_sent(point, metric)

    return free_column(f"{users:,.0f}", "users", value, text)


def _reached_and_sent(point: Point, metric: Metric) -> Markup:
    result = point.result
    sent = result.mean("uplink_message_mean_per_user")
    words = ["" if sent is None else size(sent), "by τ" if result.mean("represents") else ""]
    small = ", ".join(each for each in words if each)
    return Markup("{}<br><small>{}</small>").format(number(point.accuracy, metric.digits - 1), small)


def _noise_plots(part: EvaluationPart) -> list[Plot]:
    """Return the plot of accuracy against noise per user, if sums are noisy to several degrees.

    All trust models and numbers of users share it: what a protocol of sums reaches depends on tau alone.
    """
    metric, files = part.metric, part.files
    evaluated = [(each.evaluation, each) for each in [*part.results, *files.populations] if each.mean("tau")]
    own = [each for held, each in evaluated if held and replace(held, population=None) == part.evaluation]
    if len({result.mean("tau") for result in own}) < _FEWEST_TAUS:
        return []
    across = [result for result in part.results if result.baseline or result.reference]
    base = to_beat(across)
    words = (
        "τ is the noise of a sum over its users, where each contributes a vector of length 1 and the whole "
        "budget is spent at once: budget, trust and number of users count by it alone."
    )
    plot = Plot(
        f"accuracy-tau{part.suffix}",
        f"{metric.label} against noise per user, whoever is trusted",
        words if base is None else f"{words} Shaded: worse than {base.name}.",
        seen(own, metric, "noise per user"),
        [partial(draw_accuracy_against_tau, results=own, across=across, metric=metric, looks=part.looks)],
    )
    return [plot]


_FEWEST_TAUS = 3
