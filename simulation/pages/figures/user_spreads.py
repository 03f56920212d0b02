"""How users differ, for each protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.vocabulary import short, size
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.labels import show_on_hover
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import (
    INK,
    RULE,
    SURFACE,
    Style,
    axis_labels,
    panels,
    printable,
    shortened,
)

SPREAD_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol."""

    name: str
    label: str
    quantiles: NDArray[np.float64]
    """At `SPREAD_QUANTILES` per cent; shape (7,)."""


def draw_spreads(
    style: Style, spreads: Sequence[Spread], axis: str, looks: Looks, *, in_bytes: bool
) -> Figure:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median, which is also beside the name."""
    figure, (ax,) = panels(style, aspect=(_FRAME + _ROWS[style.narrow] * len(spreads)) / style.height)
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    measured: Callable[[float], str] = size if in_bytes else lambda value: f"ε {short(value)}"
    places = []
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        least, p5, p25, median, p75, p95, most = spread.quantiles.tolist()
        ax.hlines(row, least, most, color=colour, linewidth=0.9, alpha=0.6)
        ax.hlines(row, p5, p95, color=colour, linewidth=3.5, alpha=0.4)
        ax.hlines(row, p25, p75, color=colour, linewidth=7, alpha=0.55)
        ax.plot([median], [row], "o", color=colour, markersize=5, markeredgecolor=SURFACE)
        words = f"median {measured(median)}, 95th percentile {measured(p95)}, largest {measured(most)}"
        places.append((median, row, f"{printable(spread.label)}: {words}"))
    everything = np.concatenate([spread.quantiles for spread in spreads])
    log_axis(ax, everything[everything > 0].tolist() or [1.0], in_bytes=in_bytes)
    ax.set_ylim(-0.7, len(ordered) - 0.3)
    names = [f"{shortened(spread.label)}  {measured(float(spread.quantiles[3]))}" for spread in ordered]
    if style.narrow:
        ax.set_yticks([])
        ax.set_ylim(-0.5, len(ordered) - 0.2)
        for row, name in enumerate(names):
            size_of_text, at = style.points - 0.5, ax.get_yaxis_transform()
            ax.text(
                0,
                row + 0.42,
                name,
                transform=at,
                color=INK,
                fontsize=size_of_text,
                va="center",
                parse_math=False,
            )
    else:
        ax.set_yticks(range(len(ordered)), names, color=INK, parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    show_on_hover(ax, places)
    axis_labels(ax, style, x=axis)
    return figure


_FRAME, _ROWS = 0.9, {True: 0.33, False: 0.2}
"""Inches above and below the strips; and of a strip, whose name is above it in a narrow figure."""
