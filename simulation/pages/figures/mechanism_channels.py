"""The noise of a mechanism, from the devices' channel: what is sent for every true rating, and its mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.reports import DeviceChannel
from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.labels import MARKERS, legend_below
from simulation.pages.figures.looks import Look, legend_handle
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
