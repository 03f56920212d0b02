"""Sections of a comparison's page that few open: numbers of users, differences of users, and noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprec.reports import DeviceChannel
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.populations import Course, population_sentence
from simulation.analysis.protocol_results import ProtocolResult, at_reference, reference_budget
from simulation.analysis.vocabulary import Metric, grouped_by
from simulation.pages.figures.accuracy import draw_accuracy_against_users
from simulation.pages.figures.looks import Look, Looks
from simulation.pages.figures.noise import SampledNoise, draw_mechanisms, sampled_noise_plot
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import SPREAD_QUANTILES, Spread, draw_spreads
from simulation.pages.page import Section, dashed, figures, paragraph
from simulation.pages.words import label_of
from simulation.storage.columns import read_rows
from simulation.storage.directories import NOISE
from simulation.storage.files import Columns
from simulation.storage.run_files import bytes_per_user, read_device_channel


def population_section(
    courses: Sequence[Course], metric: Metric, looks: Looks, draw: Draw, suffix: str
) -> list[Section]:
    """Return the section, if any protocol was run with several numbers of users."""
    if not courses:
        return []
    together = grouped_by(((each.ratings, each.budget or 0.0), each) for each in courses)
    plots = [_population_plot(*key, together[key], metric, looks, suffix) for key in sorted(together)]
    said = paragraph(population_sentence(courses) or "")
    content = said, figures([draw(plot) for plot in plots])
    return [Section(f"users{suffix}", "How many users before it is worth it", content)]


def _population_plot(
    ratings: str, budget: float, courses: Sequence[Course], metric: Metric, looks: Looks, suffix: str
) -> Plot:
    needed = [f"{each.name} {each.users_needed}" for each in courses]
    given = "" if ratings == "synthetic" else f"-{ratings}"
    return Plot(
        f"accuracy-users-{budget:g}{given}{suffix}",
        f"{metric.label} against the number of users, ε = {budget:g}",
        "Solid line: nothing sent; shaded: worse. A ring is where a protocol begins to beat it.",
        f"{metric.label} against users, to beat nothing sent: {'; '.join(needed)}.",
        lambda: [draw_accuracy_against_users(courses, metric, looks)],
    )


Traffic = Sequence[tuple[ProtocolResult, str, Columns]]
"""Results with their labels, and what was sent by each user."""


def user_section(files: ComparisonFiles, traffic: Traffic, looks: Looks, draw: Draw) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""

    def plot(
        name: str, title: str, axis: str, of: Callable[[Columns], NDArray[np.float64]]
    ) -> Iterator[Plot]:
        spent = [(result.name, label, of(columns)) for result, label, columns in traffic]
        spreads = [
            Spread(own, label, np.percentile(values, SPREAD_QUANTILES))
            for own, label, values in spent
            # A logarithmic axis has no place for what sends and loses nothing.
            if np.isfinite(values).all() and values.max() > 0
        ]
        medians = "; ".join(f"{each.label} {each.quantiles[3]:,.4g}" for each in spreads)
        if spreads:
            yield Plot(
                name,
                title,
                f"Line: all users. Bars: the middle 90 % and 50 %. Dot: the median.{_at(files)}",
                f"{title}, medians: {medians}.",
                lambda: [draw_spreads(spreads, axis, looks, in_bytes=of is bytes_per_user)],
            )

    plots = [
        *plot("bytes-per-user", "Bytes per user", "bytes per user, both directions", bytes_per_user),
        *plot("epsilon-per-user", "ε per user", "ε per user", lambda columns: columns["epsilon_per_user"]),
    ]
    why = "No protocol here sends anything." if traffic else "The runs themselves are not in this directory."
    content = figures([draw(each) for each in plots]) if plots else dashed(why)
    return Section("users", "How users differ", (content,))


def _at(files: ComparisonFiles) -> str:
    """Return what a caption says of the budget at which protocols are shown."""
    reference = reference_budget(files.results)
    return "" if reference is None else f" ε = {reference:g} unless the label says otherwise."


def noise_section(files: ComparisonFiles, looks: Looks, draw: Draw) -> list[Section]:
    """Return the section on what mechanisms send: its mean by true rating, and what was sampled of it."""
    sampled = (sampled_noise_plot(*each) for each in read_noise(files.directory).items())
    plots = [*_mechanism_plots(files, looks), *sampled]
    content = (figures([draw(plot) for plot in plots]),)
    return [Section("noise-section", "Noise of the mechanisms", content)] if plots else []


def _mechanism_plots(files: ComparisonFiles, looks: Looks) -> Iterator[Plot]:
    """Yield a plot for each scale: mechanisms for stars and for signs share none."""
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
    for place, (scale, mechanisms) in enumerate(scales.items(), start=1):
        drawn = [(", ".join(names), look, noise) for names, look, noise in mechanisms.values()]
        of = f", on the scale from {scale[0]:g} to {scale[-1]:g}" if len(scales) > 1 else ""
        slopes = "; ".join(f"{label}: slope {noise.slope:.2f}" for label, _, noise in drawn)
        yield Plot(
            "noise" if place == 1 else f"noise-{place}",
            f"What the server receives, on average{of}",
            f"The flatter a line, the more it pulls ratings together; dashed: no bias.{_at(files)}",
            f"Mean of what is sent against the true rating. {slopes}.",
            partial(draw_mechanisms, drawn),
        )


_NOISE_COLUMNS = (
    *("protocol", "mechanism", "epsilon"),
    *("low", "high", "sampled_share", "theoretical_probability"),
)


def read_noise(directory: Path) -> Mapping[float, Sequence[SampledNoise]]:
    """Read noise.csv, by epsilon; empty if there is none."""
    path = directory / NOISE
    rows = read_rows(path, _NOISE_COLUMNS) if path.is_file() else []
    drawn = grouped_by(((row["protocol"], row["mechanism"], row["epsilon"]), row) for row in rows)
    noises: list[tuple[float, SampledNoise]] = []
    for (protocol, mechanism, epsilon), own in drawn.items():
        low, high, sampled, theory = (
            np.array([row[column] for row in own], dtype=np.float64) for column in _NOISE_COLUMNS[3:]
        )
        edges = np.append(low, high[-1])
        noises.append((epsilon, SampledNoise(protocol, mechanism, edges, sampled, theory)))
    return grouped_by(noises)
