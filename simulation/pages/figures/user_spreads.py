"""How users differ, for each protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.numbers import short, size
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.colours import INK, RULE, SURFACE
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import Style, axis_labels, panels, shortened, title

SPREAD_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol.

    Parameters
    ----------
    name : str
    label : str
    quantiles : ndarray, shape (7,)
        At `SPREAD_QUANTILES` per cent.
    """

    name: str
    label: str
    quantiles: NDArray[np.float64]


def draw_spreads(
    style: Style, spreads: Sequence[Spread], heading: str, axis: str, looks: Looks, *, in_bytes: bool
) -> Figure:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median."""
    height = 0.28 + 0.118 * max(2, len(spreads))
    figure, (ax,) = panels(style, aspect=max(0.55, height))
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        least, p5, p25, median, p75, p95, most = spread.quantiles.tolist()
        ax.hlines(row, least, most, color=colour, linewidth=0.9, alpha=0.6)
        ax.hlines(row, p5, p95, color=colour, linewidth=4, alpha=0.4)
        ax.hlines(row, p25, p75, color=colour, linewidth=8, alpha=0.55)
        ax.plot([median], [row], "o", color=colour, markersize=6, markeredgecolor=SURFACE)
        measured = size(median) if in_bytes else f"ε {short(median)}"
        ax.text(
            0.0,
            row + 0.38,
            f"{shortened(spread.label)}, median {measured}",
            transform=ax.get_yaxis_transform(),
            color=INK,
            fontsize=style.points - 0.5,
            va="center",
            parse_math=False,
        )
    everything = np.concatenate([spread.quantiles for spread in spreads])
    log_axis(ax, everything[everything > 0].tolist() or [1.0], in_bytes=in_bytes)
    ax.set_ylim(-0.55, len(ordered) - 0.3)
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    title(ax, heading, style)
    axis_labels(ax, style, x=axis)
    return figure
