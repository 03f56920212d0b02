"""Sections of a comparison's page: trust models, numbers of users, differences of users, and noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dprec.reports import DeviceChannel
from simulation.analysis.answer import TrustAnswer, at_each_trust
from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    SERVER_SEES,
    TRUST,
    ResultColumn,
    TableColumn,
    accuracy_column,
    baseline_columns,
    composed_column,
    figure_column,
    text_column,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import gain_digits
from simulation.analysis.populations import Course, Point, population_sentences, users_needed
from simulation.analysis.protocol_results import ProtocolResult, at_reference, reference_budget
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Metric
from simulation.pages.comparison_tables import named_column
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.accuracy import draw_accuracy_against_users
from simulation.pages.figures.looks import Look, Looks, trust_in_words
from simulation.pages.figures.noise import SampledNoise, draw_mechanisms, sampled_noise_plot
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import SPREAD_QUANTILES, Spread, draw_spreads
from simulation.pages.page import Section, dashed, figures, paragraph, table
from simulation.pages.words import label_of
from simulation.storage.columns import read_rows
from simulation.storage.directories import NOISE
from simulation.storage.run_files import bytes_per_user, read_device_channel
from simulation.storage.tables import Columns, Row

_TRUST_WORDS = (
    "The most accurate protocol of each trust model that is proved to keep its budget. It beats nothing "
    "sent where the interval of the difference excludes 0. Where a protocol that needs less trust is at "
    "least as accurate, that is named: nothing is gained by trusting more. Where values only are protected, "
    "item sets are revealed, and most of the accuracy may come from them: the baseline is then sets-only, "
    "and the protocol does not compare with one that protects the whole profile."
)


def trust_sections(part: EvaluationPart, every: Sequence[Course]) -> list[Section]:
    """Return the section with a line for every trust model and budget, if any budget is proved to be kept.

    Parameters
    ----------
    every : sequence of Course
        How protocols do with other numbers of users.
    """
    budgets, delta = part.files.epsilons, part.files.matched_delta
    answers = at_each_trust(part.results, part.metric, budgets=budgets, delta=delta)
    if not answers:
        return []
    lines = _trust_table(answers, part, every)
    return [
        Section(
            f"by-trust-model{part.suffix}",
            part.titled("By trust model"),
            (paragraph(_TRUST_WORDS), lines),
        )
    ]


def _trust_table(answers: Sequence[TrustAnswer], part: EvaluationPart, every: Sequence[Course]) -> Markup:
    results, metric = part.results, part.metric
    of_best = [
        named_column(part.looks, part.links, "most accurate"),
        composed_column(results),
        accuracy_column(metric),
        *baseline_columns(metric, results),
    ]
    needed: list[ResultColumn] = []
    if every:
        hint = f"{every[0].ratings} ratings"
        needed.append(text_column("users needed", lambda result: users_needed(every, result), hint))
    costs = [*needed, BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES]
    columns: list[TableColumn[TrustAnswer]] = [
        TableColumn("trust", "", lambda each: each.trust, lambda each: TRUST_IN_WORDS[each.trust], False),
        text_column("protected", lambda each: "whole profile" if each.hides else "values only"),
        TableColumn("budget", "", lambda each: each.budget, lambda each: f"ε {each.budget:g}", False),
        *(column.of(lambda each: each.best) for column in of_best),
        text_column("beats nothing sent", _verdict),
        *(column.of(lambda each: each.best) for column in costs),
        text_column("as good with less trust", _less),
    ]
    return table("One line per trust model, what is protected, and budget", columns, answers)


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
    courses: Sequence[Course], metric: Metric, looks: Looks, draw: Draw, suffix: str
) -> list[Section]:
    """Return the section, if any protocol was run with several numbers of users."""
    if not courses:
        return []
    sentences = Markup("<ul>{}</ul>").format(
        Markup("").join(Markup("<li>{}</li>").format(each) for each in population_sentences(courses))
    )
    together = sorted(courses, key=_together)
    plots = [
        _population_plot(list(own), metric, looks, suffix) for _, own in groupby(together, key=_together)
    ]
    content = (
        paragraph(_POPULATION_WORDS),
        sentences,
        figures([draw(plot) for plot in plots]),
        _population_table(courses, metric, looks),
    )
    return [Section(f"users{suffix}", "How many users before it is worth it", content)]


def _together(course: Course) -> tuple[str, float]:
    """Return what is the same of courses that share a figure."""
    return course.ratings, course.budget or 0.0


def _population_plot(courses: Sequence[Course], metric: Metric, looks: Looks, suffix: str) -> Plot:
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


def _population_table(courses: Sequence[Course], metric: Metric, looks: Looks) -> Markup:
    columns: list[TableColumn[tuple[Course, Point]]] = [
        *(column.of(lambda line: line[1].result) for column in (named_column(looks, {}), TRUST, BUDGET)),
        figure_column("users", "", lambda line: line[1].users, 0),
        figure_column(metric.label, "", lambda line: line[1].accuracy, metric.digits),
        TableColumn(
            "against nothing sent",
            "",
            lambda line: line[1].against.mean,
            lambda line: line[1].against.written(gain_digits(metric)),
        ),
        *(column.of(lambda line: line[1].result) for column in (BYTES_UP[0], BYTES_DOWN[0])),
        TableColumn(
            "users needed", "", lambda line: line[0].crossing, lambda line: line[0].users_needed, False
        ),
    ]
    lines = [(course, point) for course in courses for point in course.points]
    return table("One line per protocol, budget and number of users", columns, lines)


_CAPTION = (
    "Thin line: all users. Bars: the middle 90 % and 50 %. Dot, and figure beside the name: the median."
)


def user_section(
    files: ComparisonFiles, traffic: Sequence[tuple[ProtocolResult, str, Columns]], looks: Looks, draw: Draw
) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""
    spent = _spreads((result, label, bytes_per_user(columns)) for result, label, columns in traffic)
    if not spent:
        missing = (
            "No protocol here sends anything."
            if traffic
            else "The runs themselves are not in this directory."
        )
        return Section("users", _USERS_DIFFER, (dashed(missing),))
    losses = _spreads((result, label, columns["epsilon_per_user"]) for result, label, columns in traffic)
    caption = f"{_CAPTION} {_unless_labelled(reference_budget(files.results))}".rstrip()

    def plot(name: str, title: str, of: str, unit: str, spreads: Sequence[Spread], axis: str) -> Plot:
        medians = "; ".join(
            f"{spread.label} median {spread.quantiles[3]:,.4g} {unit}, largest {spread.quantiles[-1]:,.4g}"
            for spread in spreads
        )
        return Plot(
            name,
            title,
            caption,
            f"{of} of each protocol. {medians}.",
            lambda style: draw_spreads(style, spreads, axis, looks, in_bytes=unit == "bytes"),
        )

    axes = "bytes per user, both directions", "ε per user, over everything that is sent"
    plots = [plot("bytes-per-user", "Bytes per user", "Bytes per user", "bytes", spent, axes[0])]
    if losses:
        of = "Privacy loss per user"
        plots.append(plot("epsilon-per-user", "ε per user", of, "epsilon", losses, axes[1]))
    content: list[str] = [figures([draw(each) for each in plots])]
    if not losses:
        content.append(dashed("ε per user: no protocol here has one."))
    return Section("users", _USERS_DIFFER, tuple(content))


_USERS_DIFFER = "How users differ"


def _unless_labelled(reference: float | None) -> str:
    """Return what a caption says of the budget at which protocols are shown."""
    return "" if reference is None else f"ε = {reference:g} unless the label says otherwise."


def _spreads(figures_of_users: Iterable[tuple[ProtocolResult, str, NDArray[np.float64]]]) -> list[Spread]:
    """Return what can be drawn on a logarithmic axis: not the baseline that sends and loses nothing."""
    return [
        Spread(result.name, label, np.percentile(values, SPREAD_QUANTILES))
        for result, label, values in figures_of_users
        if np.isfinite(values).all() and values.max() > 0
    ]


def mechanisms_sections(files: ComparisonFiles, looks: Looks, draw: Draw) -> list[Section]:
    """Return the section on the mean of what every mechanism sends, by true rating, if any is a channel.

    Mechanisms for different scales, such as stars and signs, share no figure.
    """
    reference = reference_budget(files.results)
    scales: dict[tuple[float, ...], dict[str, tuple[list[str], Look, DeviceChannel]]] = {}
    for result in at_reference(files.results):
        cells = files.cells(result) if result.private else []
        noise = read_device_channel(cells[0], files.summary(cells[0])) if cells else None
        if noise is None:
            continue
        # Protocols that share a mechanism share a line.
        mechanisms = scales.setdefault(tuple(noise.ratings.tolist()), {})
        key = noise.channel.weights.tobytes().hex()
        names, *_ = mechanisms.setdefault(key, ([], looks[result.name], noise))
        names.append(label_of(result, reference))
    if not scales:
        return []
    budget = "" if reference is None else f" At {_unless_labelled(reference)}"
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
