"""The sections of a comparison's page about trust, numbers of users, differences of users and noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dprec.privacy.device_channel import DeviceChannel
from simulation.analysis.answer import TrustAnswer, at_each_trust
from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    SERVER_SEES,
    TRUST,
    accuracy_column,
    composed_column,
    floor_columns,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import gain_digits
from simulation.analysis.populations import Course, population_sentences, users_needed
from simulation.analysis.settings import Setting, at_reference, read_rows, reference_budget
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Measure
from simulation.pages.comparison_tables import heading, named_cell, setting_cell
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import draw_accuracy_against_users
from simulation.pages.figures.looks import Look, Looks, trust_in_words
from simulation.pages.figures.noise import SampledNoise, draw_mechanisms, sampled_noise_plot
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import SPREAD_QUANTILES, Spread, draw_spreads
from simulation.pages.page import (
    Cell,
    Column,
    Section,
    dashed,
    figures,
    number_cell,
    paragraph,
    table,
    text_cell,
)
from simulation.pages.words import label_of
from simulation.storage.names import NOISE
from simulation.storage.run_files import bytes_per_user, read_device_channel
from simulation.storage.tables import Columns, Row

_TRUST_WORDS = (
    "The most accurate protocol of each trust that is proved to keep its budget. It beats nothing sent where "
    "the interval of the difference excludes 0. Where a protocol that needs less trust is at least as "
    "accurate, that is named: nothing is gained by trusting more. Where values only are protected, the rated "
    "items are seen, and most of the accuracy may come from them: the floor of such a protocol is sets-only, "
    "and it does not compare with one that protects the whole profile."
)


def trust_sections(part: EvaluationPart, every: Sequence[Course]) -> list[Section]:
    """Return the section with a line for every trust and budget, if any protocol is proved to keep a budget.

    Parameters
    ----------
    part : EvaluationPart
    every : sequence of Course
        How protocols do with other numbers of users.
    """
    budgets, delta = part.files.epsilons, part.files.matched_delta
    answers = at_each_trust(part.settings, part.measure, budgets=budgets, delta=delta)
    if not answers:
        return []
    lines = _trust_table(answers, part, every)
    return [
        Section(f"at-each-trust{part.suffix}", part.titled("At each trust"), (paragraph(_TRUST_WORDS), lines))
    ]


def _trust_table(answers: Sequence[TrustAnswer], part: EvaluationPart, every: Sequence[Course]) -> Markup:
    settings, measure = part.settings, part.measure
    figures = [accuracy_column(measure), *floor_columns(measure, settings)]
    losses = composed_column(settings)
    costs = [BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES]
    needed = [Column("users needed", f"{every[0].ratings} ratings", numeric=False)] if every else []
    columns = [
        Column("trusted", numeric=False),
        Column("protected", numeric=False),
        Column("budget", numeric=False),
        Column("most accurate", numeric=False),
        heading(losses),
        *map(heading, figures),
        Column("beats nothing sent", numeric=False),
        *needed,
        *map(heading, costs),
        Column("as good with less trust", numeric=False),
    ]
    rows = [
        [
            Cell(TRUST_IN_WORDS[answer.trust], answer.trust),
            text_cell("whole profile" if answer.hides else "values only"),
            Cell(f"ε {answer.budget:g}", answer.budget),
            named_cell(answer.best, part.looks, part.links),
            setting_cell(losses, answer.best),
            *(setting_cell(column, answer.best) for column in figures),
            text_cell(_verdict(answer)),
            *(text_cell(users_needed(every, answer.best)) for _ in needed),
            *(setting_cell(column, answer.best) for column in costs),
            text_cell(_less(answer)),
        ]
        for answer in answers
    ]
    return table("One line per trust, what is protected, and budget", columns, rows)


def _verdict(answer: TrustAnswer) -> str:
    if answer.against is None:
        return DASH
    return "yes" if answer.beats_nothing_sent else "no"


def _less(answer: TrustAnswer) -> str | None:
    return None if answer.with_less is None else f"{answer.with_less.name} ({answer.with_less.trust})"


_POPULATION_WORDS = (
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
    plots = [
        _population_plot(list(own), measure, looks, suffix) for _, own in groupby(together, key=_together)
    ]
    content = (
        paragraph(_POPULATION_WORDS),
        sentences,
        figures([draw(plot) for plot in plots]),
        _population_table(courses, measure, looks),
    )
    return [Section(f"users{suffix}", "How many users before it is worth it", content)]


def _together(course: Course) -> tuple[str, float]:
    """Return what is the same of courses that share a figure."""
    return course.ratings, course.budget or 0.0


def _population_plot(courses: Sequence[Course], measure: Measure, looks: Looks, suffix: str) -> Plot:
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


def _population_table(courses: Sequence[Course], measure: Measure, looks: Looks) -> Markup:
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


def user_section(
    files: ComparisonFiles, traffic: Sequence[tuple[Setting, str, Columns]], looks: Looks, draw: Draw
) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""
    heading = "How users differ"
    if not traffic:
        return Section("users", heading, (dashed("The runs themselves are not in this directory."),))
    reference = reference_budget(files.settings)
    budget = "" if reference is None else f" ε = {reference:g} unless the label says otherwise."
    caption = f"{_CAPTION}{budget}"
    spent = _spreads((setting, label, bytes_per_user(columns)) for setting, label, columns in traffic)
    if not spent:
        return Section("users", heading, (dashed("No protocol here sends anything."),))
    losses = _spreads((setting, label, columns["epsilon_per_user"]) for setting, label, columns in traffic)
    plots = [
        Plot(
            "bytes-per-user",
            "Bytes per user",
            caption,
            "Bytes per user of each protocol. " + _medians(spent, "bytes"),
            lambda style: draw_spreads(
                style,
                spent,
                "bytes per user, both directions",
                looks,
                in_bytes=True,
            ),
        )
    ]
    if losses:
        plots.append(
            Plot(
                "epsilon-per-user",
                "ε per user",
                caption,
                "Privacy loss per user of each protocol. " + _medians(losses, "epsilon"),
                lambda style: draw_spreads(
                    style,
                    losses,
                    "ε per user, over everything that is sent",
                    looks,
                    in_bytes=False,
                ),
            )
        )
    content: list[str] = [figures([draw(plot) for plot in plots])]
    if not losses:
        content.append(dashed("ε per user: no protocol here has one."))
    return Section("users", heading, tuple(content))


_CAPTION = (
    "Thin line: all users. Bars: the middle 90 % and 50 %. Dot, and figure beside the name: the median."
)


def _spreads(figures_of_users: Iterable[tuple[Setting, str, NDArray[np.float64]]]) -> list[Spread]:
    """Return what can be drawn on a logarithmic axis: not the floor that sends nothing and loses nothing."""
    return [
        Spread(setting.name, label, np.percentile(values, SPREAD_QUANTILES))
        for setting, label, values in figures_of_users
        if np.isfinite(values).all() and values.max() > 0
    ]


def _medians(spreads: Sequence[Spread], unit: str) -> str:
    return "; ".join(
        f"{spread.label} median {spread.quantiles[3]:,.4g} {unit}, largest {spread.quantiles[-1]:,.4g}"
        for spread in spreads
    ) + "."  # fmt: skip


def mechanisms_sections(files: ComparisonFiles, looks: Looks, draw: Draw) -> list[Section]:
    """Return the section on the mean of what every mechanism sends, by true rating, if any is a channel.

    Mechanisms for different scales, such as stars and signs, share no figure.
    """
    reference = reference_budget(files.settings)
    scales: dict[tuple[float, ...], dict[str, tuple[list[str], Look, DeviceChannel]]] = {}
    for setting in at_reference(files.settings):
        cells = files.cells(setting) if setting.private else []
        noise = read_device_channel(cells[0], files.summary(cells[0])) if cells else None
        if noise is None:
            continue
        # Protocols that share a mechanism share a line.
        mechanisms = scales.setdefault(tuple(noise.ratings.tolist()), {})
        key = noise.channel.weights.tobytes().hex()
        names, *_ = mechanisms.setdefault(key, ([], looks[setting.name], noise))
        names.append(label_of(setting, reference))
    if not scales:
        return []
    budget = "" if reference is None else f" At ε = {reference:g} unless the label says otherwise."
    plots = []
    for place, (scale, mechanisms) in enumerate(scales.items(), start=1):
        drawn = [(", ".join(names), look, noise) for names, look, noise in mechanisms.values()]
        lines = [f"{label}: slope {noise.slope:.2f}" for label, _, noise in drawn]
        of = f", on the scale from {scale[0]:g} to {scale[-1]:g}" if len(scales) > 1 else ""
        plots.append(
            Plot(
                "noise" if place == 1 else f"noise-{place}",
                f"What the server receives, on average{of}",
                f"The flatter a line, the more it pulls ratings together; the dashed line has no bias."
                f"{budget} The page of a single run shows the whole distribution.",
                f"Mean of what is sent against the true rating. {'; '.join(lines)}.",
                partial(draw_mechanisms, mechanisms=drawn),
            )
        )
    return [Section("noise-section", "Noise of the mechanisms", (figures([draw(each) for each in plots]),))]


_NOISE_COLUMNS = (
    "protocol",
    "mechanism",
    "epsilon",
    "low",
    "high",
    "sampled_share",
    "theoretical_probability",
)


def read_noise(directory: Path) -> dict[float, list[SampledNoise]]:
    """Read noise.csv, by epsilon; empty if there is none.

    Raises
    ------
    InputError
        When it is damaged.
    """
    path = directory / NOISE
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in read_rows(path, _NOISE_COLUMNS) if path.is_file() else ():
        groups.setdefault((row["protocol"], row["mechanism"], row["epsilon"]), []).append(row)
    noises: dict[float, list[SampledNoise]] = {}
    for (protocol, mechanism, epsilon), rows in groups.items():
        low, high, sampled, theory = (
            np.array([row[column] for row in rows], dtype=np.float64) for column in _NOISE_COLUMNS[3:]
        )
        edges = np.append(low, high[-1])
        noises.setdefault(epsilon, []).append(SampledNoise(protocol, mechanism, edges, sampled, theory))
    return noises


def sampled_noise_section(
    noises: Mapping[float, Sequence[SampledNoise]], looks: Looks, draw: Draw
) -> list[Section]:
    """Return the section with one panel per epsilon; none if no noise was sampled."""
    if not noises:
        return []
    words = (
        "Noise is what is sent minus the true rating, sampled with true ratings as frequent as in the "
        "training set. Theory is the continuous density for bounded Laplace, and for other mechanisms the "
        "probabilities that they draw from. noise.csv holds every interval."
    )
    plots = [sampled_noise_plot(epsilon, drawn, looks) for epsilon, drawn in noises.items()]
    return [
        Section(
            "sampled-noise",
            "Noise, sampled and in theory",
            (paragraph(words), figures([draw(plot) for plot in plots])),
        )
    ]
