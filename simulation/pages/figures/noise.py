"""The noise of mechanisms: what is sent for every true rating, samples beside theory, bounded distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.reports import DeviceChannel
from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.labels import MARKERS, legend_below
from simulation.pages.figures.looks import Look, Looks, legend_handle
from simulation.pages.figures.panels import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Style,
    axis_labels,
    note,
    panels,
    ramp,
    shortened,
    title,
)
from simulation.pages.figures.rendering import Plot

_FEW_SYMBOLS = 12
_MOST_ROWS = 12
"""Most true ratings that a figure shows; from a finer scale it shows nine at even distances."""


def draw_noise(style: Style, noise: DeviceChannel) -> Figure:
    """Draw what is sent for every true rating, and E[r* | r]."""
    figure, (sent, expected) = panels(style, 2)
    if noise.channel.symbols <= _FEW_SYMBOLS:
        _draw_matrix(sent, style, noise.channel)
    else:
        _draw_densities(sent, style, noise)
    _draw_expected(expected, style, [(Look(SERIES[0], MARKERS[0], "solid", True), noise)])
    title(expected, "Mean of what is sent, E[r*|r]", style)
    return figure


def _draw_expected(ax: Axes, style: Style, mechanisms: Sequence[tuple[Look, DeviceChannel]]) -> None:
    """Draw E[r* | r] of mechanisms for one scale against the line of no bias."""
    inputs = mechanisms[0][1].ratings
    low, high = float(inputs[0]), float(inputs[-1])
    ax.plot([low, high], [low, high], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for look, noise in mechanisms:
        ax.plot(
            noise.ratings,
            noise.expected,
            color=look.colour,
            marker=look.marker,
            linestyle=look.dashes,
            markersize=5,
            markevery=_shown(np.arange(noise.ratings.size)).tolist(),
        )
    if inputs.size <= 6:
        ax.set_xticks(inputs, [f"{value:g}" for value in inputs])
    else:
        plain_axis(ax)
    plain_axis(ax, which="y")
    axis_labels(ax, style, x="true rating, r", side="mean of what is sent")
    note(ax, 0.03, 0.94, "dashed: no bias", style)


def _draw_densities(ax: Axes, style: Style, noise: DeviceChannel) -> None:
    channel = noise.channel
    shown = ~np.isnan(channel.values)
    values = channel.values[shown]
    rows = _shown(np.flatnonzero(~np.isnan(channel.inputs)))
    colours = ramp(rows.size)
    step = float(np.median(np.diff(values))) if values.size > 1 else 1.0
    # The two end symbols may stand for whole tails; as densities they would dwarf the rest.
    inner = slice(1, -1) if values.size > 3 else slice(None)
    for row, colour in zip(rows, colours, strict=True):
        density = channel.probabilities[row, shown] / step
        ax.plot(values[inner], density[inner], color=colour, linewidth=1.5)
        ends = [
            (values[place], channel.probabilities[row, shown][place])
            for place in (0, -1)
            if density[place] > 1.5 * density[inner].max()
        ]
        for value, chance in ends:
            ax.annotate(
                f"{chance:.0%}",
                xy=(value, density[inner][0 if value == values[0] else -1]),
                color=colour,
                fontsize=style.points - 1.5,
                ha="center",
                va="bottom",
            )
    ax.set_ylim(bottom=0)
    plain_axis(ax)
    plain_axis(ax, which="y", ticks=4)
    title(ax, "Density of what is sent, by true rating", style)
    axis_labels(ax, style, x="what is sent, r*", side="density")
    labelled = sorted({0, rows.size // 2, rows.size - 1}) if rows.size > 6 else range(rows.size)
    handles = [
        ax.plot([], [], color=colours[place], linewidth=2.5, label=f"r = {channel.inputs[rows[place]]:g}")[0]
        for place in labelled
    ]
    figure = ax.figure
    assert isinstance(figure, Figure)
    legend_below(figure, style, handles, columns=3 if style.narrow else 6)


def _draw_matrix(ax: Axes, style: Style, channel: Channel) -> None:
    """Draw the channel as a matrix of probabilities, with the numbers in it."""
    levels = _shown(np.arange(channel.inputs.size))
    rows, symbols = levels.size, channel.symbols
    colours = ramp(7)
    most = float(channel.probabilities.max())
    for row, level in enumerate(levels):
        for symbol in range(symbols):
            share = float(channel.probabilities[level, symbol])
            dark = share > most / 2
            # Columns change colour halfway up the ramp, so that they stay legible in light and dark alike.
            ax.barh(
                row,
                0.94,
                0.94,
                left=symbol - 0.47,
                color=colours[5 if dark else 0],
                alpha=0.25 + 0.75 * share / most,
            )
            words = "0" if share == 0 else f"{share:.2f}".lstrip("0") if share < 0.995 else "1"
            ax.text(
                symbol,
                row,
                words,
                ha="center",
                va="center",
                fontsize=style.points - (1.5 if symbols <= 8 else 3),
                color=SURFACE if dark else INK,
            )
    ax.set_xticks(range(symbols), [_name(value) for value in channel.values])
    ax.set_yticks(range(rows), [_name(value) for value in channel.inputs[levels]])
    ax.set_ylim(-0.5, rows - 0.5)
    ax.grid(visible=False)
    title(ax, "Probability of what is sent", style)
    axis_labels(ax, style, x="what is sent, r*", side="true rating, r")


def _shown(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a channel that a figure has room for."""
    if rows.size <= _MOST_ROWS:
        return rows
    return rows[np.linspace(0, rows.size - 1, 9).round().astype(np.int64)]


def _name(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3g}"


def draw_mechanisms(style: Style, mechanisms: Sequence[tuple[str, Look, DeviceChannel]]) -> Figure:
    """Draw E[r* | r] of the mechanisms of a comparison, which have names and looks."""
    figure, (ax,) = panels(style)
    _draw_expected(ax, style, [(look, noise) for _, look, noise in mechanisms])
    title(ax, "Mean of what is sent, E[r*|r]", style)
    most = _LONGEST[style.narrow]
    handles = [legend_handle(shortened(label, most), look) for label, look, _ in mechanisms]
    legend_below(figure, style, handles, columns=1)
    return figure


_LONGEST = {True: 44, False: 84}
"""Letters of a label for which a narrow and a wide legend of one column have room."""


@dataclass(frozen=True, eq=False)
class SampledNoise:
    """The noise of one mechanism at one epsilon, in intervals."""

    protocol: str
    mechanism: str
    edges: NDArray[np.float64]
    """In rating units; shape (intervals + 1,)."""
    sampled: NDArray[np.float64]
    theory: NDArray[np.float64]
    """Shares of the samples, and probabilities; shape (intervals,)."""

    @property
    def difference(self) -> float:
        """Total variation: half the sum of the absolute differences between sampled shares and theory."""
        return float(np.abs(self.sampled - self.theory).sum()) / 2


def sampled_noise_plot(epsilon: float, noises: Sequence[SampledNoise], looks: Looks) -> Plot:
    """Return the plot of the noise that was sampled at one epsilon."""
    low, high = _window(noises)
    outside = [
        f"{noise.protocol} has {share:.0%} of its noise outside the panel"
        for noise in noises
        if (share := _outside(noise, low, high)) >= 0.005
    ]
    distances = [
        f"{noise.protocol} ({noise.mechanism}): {noise.difference:.2%} from theory in total variation"
        for noise in noises
    ]
    return Plot(
        f"noise-epsilon-{epsilon:g}",
        f"Noise at ε = {epsilon:g} per rating",
        f"Filled: samples. Line: theory. {'; '.join([*distances, *outside])}.",
        f"Density of the noise at epsilon {epsilon:g}, as a histogram of samples and in theory. "
        f"{'; '.join([*distances, *outside])}.",
        partial(_draw_sampled_noise, noises=noises, looks=looks),
    )


def _draw_sampled_noise(style: Style, noises: Sequence[SampledNoise], looks: Looks) -> Figure:
    """Draw the densities of noise, as histograms of the samples with the theory as outlines."""
    figure, (ax,) = panels(style)
    low, high = _window(noises)
    handles, most = [], 0.0
    for noise in noises:
        colour = looks[noise.protocol].colour
        widths = np.diff(noise.edges)
        theory = noise.theory / widths
        label = f"{noise.protocol}, {noise.mechanism}"
        ax.stairs(noise.sampled / widths, noise.edges, fill=True, color=colour, alpha=0.3, linewidth=0)
        handles.append(ax.stairs(theory, noise.edges, color=colour, linewidth=1.3, label=label))
        most = max(most, float(theory.max()), float((noise.sampled / widths).max()))
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.06 * most)
    plain_axis(ax)
    plain_axis(ax, which="y", ticks=4)
    axis_labels(ax, style, x="noise r* − r")
    title(ax, "Density of the noise: samples filled, theory as a line", style)
    legend_below(figure, style, handles, columns=1 if style.narrow else 2)
    return figure


_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it, which other tails would dwarf."""


def _window(noises: Sequence[SampledNoise]) -> tuple[float, float]:
    lows, highs = [noise.edges[0] for noise in noises], [noise.edges[-1] for noise in noises]
    return (
        float(max(min(lows), _WINDOW * max(lows))),
        float(min(max(highs), _WINDOW * min(highs))),
    )


def _outside(noise: SampledNoise, low: float, high: float) -> float:
    inside = (noise.edges[:-1] >= low) & (noise.edges[1:] <= high)
    return float(noise.theory[~inside].sum())


_BOUND, _MEASURED = "distance_bound", "distance_measured"

_LINES: tuple[tuple[str, str, Any], ...] = (
    (_BOUND, "bound", (0, (5, 2))),
    (_MEASURED, "measured", "solid"),
    ("rmse", "RMSE of the predictions", (0, (1, 1.5))),
)
"""Columns of comparison.csv, their labels and their line styles."""


def distance_plot(results: Sequence[ProtocolResult], looks: Looks) -> Plot | None:
    """Return the plot of the distances against epsilon; None if no protocol has a bound."""
    bounded = [result for result in results if result.epsilon("rating") and result.mean(_BOUND)]
    if not bounded:
        return None
    tolerance = bounded[0].mean("distance_tolerance")
    words = [
        f"{result.name} at {result.epsilon('rating'):.3g}: bound {result.mean(_BOUND):.3g}, "
        f"measured {_written(result.mean(_MEASURED))}"
        for result in bounded
    ]
    return Plot(
        "distance-epsilon",
        "Distance of what the server sees from the ratings",
        "Root mean square per cell, in rating units. Bound: Zheng's Theorem 3 on ‖P(Θ − Z)‖, divided by the "
        "root of the number of cells shown, true or made up; it holds with probability at least "
        f"{_written(None if tolerance is None else 1 - tolerance)}. "
        "Measured: what is shown minus the training rating, on the cells shown that are truly rated; a "
        "made-up cell has no known truth. Dotted: RMSE of the predictions.",
        f"Distances against epsilon per cell, both logarithmic. {'; '.join(words)}.",
        lambda style: _draw_distances(style, bounded, looks),
    )


def _draw_distances(style: Style, results: Sequence[ProtocolResult], looks: Looks) -> Figure:
    """Draw the bound, the distance measured and the RMSE of protocols against epsilon per cell."""
    figure, (ax,) = panels(style)
    losses: list[float] = []
    values: list[float] = []
    for name, points in by_protocol(results).items():
        look = looks[name]
        for column, _, dashes in _LINES:
            drawn = sorted(
                (loss, value)
                for result in points
                if (loss := result.epsilon("rating")) and (value := result.mean(column))
            )
            own, reached = [loss for loss, _ in drawn], [value for _, value in drawn]
            ax.plot(own, reached, **look.line(linestyle=dashes, linewidth=1.5, markersize=5))
            losses += own
            values += reached
    log_axis(ax, losses, ticks_at_values=True)
    log_axis(ax, values, which="y")
    axis_labels(ax, style, x="ε per cell, rated or not")
    title(ax, "Root mean square per cell, in rating units", style)
    protocols = [
        Line2D([], [], color=looks[name].colour, marker=looks[name].marker, label=shortened(name))
        for name in by_protocol(results)
    ]
    lines = [Line2D([], [], color=INK, linestyle=dashes, label=words) for _, words, dashes in _LINES]
    legend_below(figure, style, [*protocols, *lines], columns=2 if style.narrow else 3)
    return figure


def _written(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
