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
from simulation.analysis.answer import GridCell, decision_grid
from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    TRUST,
    TableColumn,
    accuracy_column,
    figure_column,
    text_column,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.populations import Course, Point, population_sentence
from simulation.analysis.protocol_results import ProtocolResult, at_reference, reference_budget
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric
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
    "The most accurate protocol of each trust model that is proved to lose no more. Where a protocol that "
    "needs less trust does as well, that is named: nothing is gained by trusting more. What reveals the item "
    "set does not compare with what protects the whole profile."
)


def trust_sections(part: EvaluationPart, every: Sequence[Course]) -> list[Section]:
    """Return the section with a line for every trust model and budget, if any budget is proved to be kept.

    Parameters
    ----------
    every : sequence of Course
        How protocols do with other numbers of users.
    """
    files = part.files
    cells = decision_grid(
        part.results,
        part.metric,
        files.matched_unit,
        files.matched_delta,
        epsilons=files.epsilons,
        every=every,
    )
    lines = [cell for cell in cells if cell.best]
    if not lines:
        return []
    content = (paragraph(_TRUST_WORDS), _trust_table(lines, part, every))
    return [Section(f"by-trust-model{part.suffix}", part.titled("By trust model"), content)]


def _trust_table(cells: Sequence[GridCell], part: EvaluationPart, every: Sequence[Course]) -> Markup:
    named = named_column(part.looks, part.links, "most accurate")
    columns: list[TableColumn[GridCell]] = [
        TableColumn("trust", "", lambda each: each.trust, lambda each: TRUST_IN_WORDS[each.trust], False),
        text_column("protected", lambda each: "whole profile" if each.hides else "values only"),
        TableColumn("budget", "", lambda each: each.epsilon, lambda each: f"ε {each.epsilon:g}", False),
        *(column.of(_best) for column in (named, accuracy_column(part.metric))),
        text_column("against nothing sent", lambda each: each.against.written if each.against else None),
        figure_column("bytes", "messages, per user", lambda each: each.message_bytes, 0),
        figure_column("network bytes", "per user", lambda each: each.network_bytes, 0),
        *([text_column("users needed", lambda each: each.users_needed)] if every else []),
        text_column("as good with less trust", _less),
    ]
    return table("One line per trust model, what is protected, and budget", columns, cells)


def _best(cell: GridCell) -> ProtocolResult:
    assert cell.best is not None  # empty cells have no line
    return cell.best


def _less(cell: GridCell) -> str | None:
    return None if cell.with_less is None else f"{cell.with_less.title} ({cell.with_less.trust})"


def population_section(
    courses: Sequence[Course], metric: Metric, looks: Looks, draw: Draw, suffix: str
) -> list[Section]:
    """Return the section, if any protocol was run with several numbers of users."""
    if not courses:
        return []
    together = sorted(courses, key=_together)
    plots = [
        _population_plot(list(own), metric, looks, suffix) for _, own in groupby(together, key=_together)
    ]
    content = (
        paragraph(population_sentence(courses) or ""),
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
        f"{each.points[-1].accuracy:.3f} with {each.points[-1].users:,.0f}; "
        f"{each.users_needed} needed"
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
            lambda line: line[1].against.written,
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
