"""What mechanisms do to ratings: what is sent for each, its mean, and its noise sampled and in theory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Floats
from dprec.channel import Channel
from dprec.reports import DeviceChannel
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    at_reference,
    reference_budget,
    reference_in_words,
)
from simulation.analysis.vocabulary import grouped_by
from simulation.pages.drawing import Plot, entry, legend, point, titled
from simulation.pages.looks import (
    DASHES,
    DOTTED,
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Look,
    Looks,
    ramp,
    shortened,
)
from simulation.storage.columns import read_rows
from simulation.storage.directories import NOISE
from simulation.storage.run_files import read_device_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_SYMBOLS = 12
_MOST_ROWS = 12
"""Most true ratings that a figure shows; from a finer scale it shows nine at even distances."""


def noise_plot(noise: DeviceChannel) -> Plot:
    """Return the figure of what a channel sends for every true rating, and its mean."""
    channel = noise.channel
    sent = f"What is sent is one of {channel.symbols} symbols, each read as a number."
    if channel.symbols == 2:
        no, yes = ("not rated" if np.isnan(value) else f"{value:.3g}" for value in channel.values)
        sent = f"A bit is sent: the server reads {no} for a 0 and {yes} for a 1."
    per_user = (
        f" Calibrated for the median user, who reports {noise.cells:,} cells." if noise.per_user else ""
    )
    draw = _draw_matrix if channel.symbols <= _FEW_SYMBOLS else _draw_densities
    return Plot(
        "noise",
        "What the mechanism sends, and what the server reads",
        f"{sent} The mean of what is read rises with a slope of {noise.slope:.2f}; below 1, reports are "
        f"pulled to the middle of the scale.{per_user}",
        f"A true {noise.ratings[0]:g} is read as {noise.expected[0]:.2f} on average, a true "
        f"{noise.ratings[-1]:g} as {noise.expected[-1]:.2f}.",
        [
            partial(draw, channel=channel),
            partial(_draw_expected, mechanisms=[("mean", Look(SERIES[0], "o"), noise)]),
        ],
        full_width=True,
    )


def noise_of_comparison(files: ComparisonFiles, looks: Looks) -> Iterator[Plot]:
    """Yield the figures of what mechanisms send: its mean by true rating, and what was sampled of it."""
    reference = reference_budget(files.results)
    scales: dict[tuple[float, ...], dict[str, tuple[list[str], Look, DeviceChannel]]] = {}
    for result in at_reference(files.results):
        cells = files.cells(result) if result.private else []
        noise = read_device_channel(cells[0]) if cells else None
        if noise is None:
            continue
        # Mechanisms for stars and for signs share no figure; protocols that share a mechanism share a line.
        mechanisms = scales.setdefault(tuple(noise.ratings.tolist()), {})
        key = noise.channel.weights.tobytes().hex()
        names, *_ = mechanisms.setdefault(key, ([], looks[result.name], noise))
        names.append(result.label(reference))
    for place, (scale, mechanisms) in enumerate(scales.items(), start=1):
        lines = [(", ".join(names), look, noise) for names, look, noise in mechanisms.values()]
        of = f", on the scale from {scale[0]:g} to {scale[-1]:g}" if len(scales) > 1 else ""
        slopes = "; ".join(f"{label}: slope {noise.slope:.2f}" for label, _, noise in lines)
        yield Plot(
            "noise" if place == 1 else f"noise-{place}",
            f"What the server receives, on average{of}",
            "The flatter a line, the more it pulls ratings together; dotted: no bias."
            + reference_in_words(files.results),
            f"Mean of what is sent against the true rating. {slopes}.",
            [partial(_draw_expected, mechanisms=lines)],
        )
    yield from _sampled_plots(files.directory / NOISE)


_NOISE_COLUMNS = (
    *("protocol", "mechanism", "epsilon"),
    *("low", "high", "sampled_share", "theoretical_probability"),
)


def _sampled_plots(path: Path) -> Iterator[Plot]:
    """Yield the figure of the noise that was sampled at each epsilon, from noise.csv, where that is."""
    rows = read_rows(path, _NOISE_COLUMNS) if path.is_file() else []
    for epsilon, at_epsilon in grouped_by((row["epsilon"], row) for row in rows).items():
        by_mechanism = grouped_by(
            (f"{row['protocol']}, {row['mechanism']}", [row[name] for name in _NOISE_COLUMNS[3:]])
            for row in at_epsilon
        )
        noises = {name: np.array(intervals, dtype=np.float64) for name, intervals in by_mechanism.items()}
        words = "; ".join(
            # Total variation is half the sum of the absolute differences.
            f"{name}: {np.abs(shares[:, 2] - shares[:, 3]).sum() / 2:.2%} from theory in total variation"
            for name, shares in noises.items()
        )
        yield Plot(
            f"noise-epsilon-{epsilon:g}",
            f"Noise at ε = {epsilon:g} per rating",
            f"Filled: samples. Line: theory. {words}.",
            f"Density of the noise at epsilon {epsilon:g}, sampled and in theory.",
            [partial(_draw_sampled_noise, noises=noises)],
        )


_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it, which other tails would dwarf."""


def _draw_sampled_noise(ax: Axes, noises: Mapping[str, Floats]) -> None:
    """Draw the densities of noise, as histograms of the samples with the theory as outlines.

    ``noises``: by name, the ends of intervals, shares of the samples and probabilities; shape (intervals, 4).
    """
    handles = []
    for place, (name, (low, high, sampled, theory)) in enumerate(
        (key, intervals.T) for key, intervals in noises.items()
    ):
        colour, dashes = SERIES[place % len(SERIES)], DASHES[place // len(SERIES) % len(DASHES)]
        edges = np.append(low, high[-1])
        ax.stairs(sampled / (high - low), edges, fill=True, color=colour, alpha=0.3, linewidth=0)
        ax.stairs(theory / (high - low), edges, color=colour, linewidth=1.4, linestyle=dashes)
        handles.append(entry(shortened(name, _LONGEST), Look(colour, "", dashes)))
    lows = [intervals[0, 0] for intervals in noises.values()]
    highs = [intervals[-1, 1] for intervals in noises.values()]
    ax.set_xlim(max(min(lows), _WINDOW * max(lows)), min(max(highs), _WINDOW * min(highs)))
    titled(ax, "Noise: samples filled, theory as a line", x="noise r* − r", y="density")
    legend(ax, handles, columns=1)


_LONGEST = 60
"""Letters of a label for which a legend of one column has room."""


def _draw_expected(ax: Axes, mechanisms: Sequence[tuple[str, Look, DeviceChannel]]) -> None:
    """Draw E[r* | r] of mechanisms for one scale, by name and look, against the line of no bias."""
    inputs = mechanisms[0][2].ratings
    ends = [float(inputs[0]), float(inputs[-1])]
    ax.plot(ends, ends, color=MUTED, linewidth=1.1, linestyle=DOTTED)
    handles = {math.inf: entry("no bias", Look(MUTED, "", DOTTED))}
    for place, (colour, (label, look, noise)) in enumerate(
        zip(ramp(len(mechanisms)), mechanisms, strict=True)
    ):
        dashes, rows = DASHES[place % len(DASHES)], _shown(np.arange(noise.ratings.size))
        ax.plot(noise.ratings, noise.expected, color=colour, linestyle=dashes)
        words = [
            f"{shortened(label, _LONGEST)}: a true {at:g} is read as {mean:.2f} on average"
            for at, mean in zip(noise.ratings[rows], noise.expected[rows], strict=True)
        ]
        point(ax, noise.ratings[rows], noise.expected[rows], colour, words, marker=look.marker)
        first, *others = label.split(", ")
        short_label = shortened(first, 20) + (f" + {len(others)}" if others else "")
        handles[float(noise.expected[-1]) + place * 1e-9] = entry(
            short_label, Look(colour, look.marker, dashes)
        )
    if inputs.size <= 6:
        ax.set_xticks(inputs, [f"{rating:g}" for rating in inputs])
    titled(ax, "Mean of what the server reads, E[r*|r]", x="true rating, r")
    legend(ax, [handles[at] for at in sorted(handles, reverse=True)])


def _draw_densities(ax: Axes, channel: Channel) -> None:
    with_value = ~np.isnan(channel.values)
    values = channel.values[with_value]
    rows = _shown(np.flatnonzero(~np.isnan(channel.inputs)))
    step = float(np.median(np.diff(values))) if values.size > 1 else 1.0
    # The two end symbols may stand for whole tails; as densities they would dwarf the rest.
    inner = slice(1, -1) if values.size > 3 else slice(None)
    handles = []
    for row, colour in zip(rows, ramp(rows.size), strict=True):
        density = channel.probabilities[row, with_value] / step
        inner_density = density[inner]
        ax.plot(values[inner], inner_density, color=colour, linewidth=1.6)
        handles.append(entry(f"r = {channel.inputs[row]:g}", Look(colour)))
        for end in (0, -1):
            if density[end] > 1.5 * inner_density.max():
                at = values[inner][end], inner_density[end]
                style: dict[str, Any] = {"ha": "center", "color": colour, "textcoords": "offset points"}
                ax.annotate(f"{density[end] * step:.0%}", at, (0, 4), fontsize=10, **style)
    ax.set_ylim(bottom=0)
    titled(ax, "What the server reads", x="what the server reads, r*", y="density, by true rating r")
    legend(ax, handles, columns=5)


def _draw_matrix(ax: Axes, channel: Channel) -> None:
    """Draw the channel as a matrix of probabilities, with the numbers in it."""
    levels = _shown(np.arange(channel.inputs.size))
    light, *_, strong, _ = ramp(7)
    largest = float(channel.probabilities.max())
    for row, level in enumerate(levels):
        for symbol, share in enumerate(channel.probabilities[level].tolist()):
            dark = share > largest / 2
            # Columns change colour halfway up the ramp, so that they stay legible in light and dark alike.
            look = {"color": strong if dark else light, "alpha": 0.25 + 0.75 * share / largest}
            ax.bar(symbol, 0.94, 0.94, bottom=row - 0.47, **look)
            words = "0" if share == 0 else f"{share:.2f}".lstrip("0") if share < 0.995 else "1"
            letters: Any = {"fontsize": 11 if channel.symbols <= 8 else 9, "color": SURFACE if dark else INK}
            ax.text(symbol, row, words, ha="center", va="center_baseline", **letters)
    sent = [f"{symbol}: {value}" for symbol, value in enumerate(_ticks(channel.values))]
    ax.set_xticks(range(channel.symbols), sent)
    ax.set_yticks(range(levels.size), _ticks(channel.inputs[levels]))
    ax.grid(visible=False)
    titled(
        ax,
        "Probability of each symbol",
        x="symbol sent: what the server reads for it, r*",
        y="true rating, r",
    )


def _shown(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a channel that a figure has room for."""
    few = rows.size <= _MOST_ROWS
    return rows if few else rows[np.linspace(0, rows.size - 1, 9).round().astype(np.int64)]


def _ticks(values: Floats) -> list[str]:
    return ["none" if np.isnan(value) else f"{value:.3g}" for value in values]
