"""The sections of a comparison's page about the noise of its mechanisms, from channels and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dprec.reports import DeviceChannel
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.protocol_results import at_reference, read_rows, reference_budget
from simulation.pages.figures.looks import Look, Looks
from simulation.pages.figures.noise import SampledNoise, draw_mechanisms, sampled_noise_plot
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Section, figures, paragraph
from simulation.pages.words import label_of
from simulation.storage.directories import NOISE
from simulation.storage.run_files import read_device_channel
from simulation.storage.tables import Row


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


_COLUMNS = ("protocol", "mechanism", "epsilon", "low", "high", "sampled_share", "theoretical_probability")


def read_noise(directory: Path) -> dict[float, list[SampledNoise]]:
    """Read noise.csv, by epsilon; empty if there is none.

    Raises
    ------
    InputError
        When it is damaged.
    """
    path = directory / NOISE
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in read_rows(path, _COLUMNS) if path.is_file() else ():
        groups.setdefault((row["protocol"], row["mechanism"], row["epsilon"]), []).append(row)
    noises: dict[float, list[SampledNoise]] = {}
    for (protocol, mechanism, epsilon), rows in groups.items():
        low, high, sampled, theory = (
            np.array([row[column] for row in rows], dtype=np.float64) for column in _COLUMNS[3:]
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
