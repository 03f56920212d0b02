"""How a figure is distributed over the users."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from simulation.analysis.numbers import short, size
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.colours import INK
from simulation.pages.figures.panels import Style, axis_labels, empty, note


def histogram(
    ax: Axes, values: NDArray[np.float64], style: Style, colour: str, unit: str, label: str
) -> None:
    """Draw how a figure is distributed over the users, with median and 95th percentile marked."""
    low, high = float(values.min()), float(values.max())
    if high - low <= 0.01 * abs(high):
        empty(ax, "", style)
        around = "every user" if high - low <= 1e-9 * abs(high) else "every user, within 1 %"
        middle = _measured(float(np.median(values)), unit)
        note(ax, 0.5, 0.54, middle, style, ha="center", color=colour, fontsize=2.2 * style.points)
        note(ax, 0.5, 0.4, around, style, ha="center")
        return
    axis_labels(ax, style, x=label)
    logarithmic = low > 0 and high / low > 60
    bins = np.geomspace(low, high, 31) if logarithmic else np.linspace(low, high, 31)
    bins[-1] = np.nextafter(high, np.inf)
    shares = np.histogram(values, bins)[0] / values.size
    ax.stairs(shares, bins, fill=True, color=colour, alpha=0.28, linewidth=0)
    ax.stairs(shares, bins, color=colour, linewidth=1.2)
    if logarithmic:
        log_axis(ax, [low, high], in_bytes=unit == "B")
    else:
        plain_axis(ax, ticks=4 if style.narrow else 5, in_bytes=unit == "B")
    plain_axis(ax, which="y", ticks=4, percent=True)
    # Room for two lines of text above the columns, so that the marks never overlap the drawing.
    ax.set_ylim(0, shares.max() * 1.42)
    marks = [("median", float(np.median(values)), 0.97), ("95 %", float(np.percentile(values, 95)), 0.86)]
    for words, value, place in marks:
        ax.axvline(value, 0, place - 0.03, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        left, right = ax.transData.transform((low, 0))[0], ax.transData.transform((high, 0))[0]
        at = (ax.transData.transform((value, 0))[0] - left) / (right - left)
        ax.annotate(
            f"{words}: {_measured(value, unit)}",
            xy=(value, place),
            xycoords=("data", "axes fraction"),
            xytext=(3 if at < 0.5 else -3, 0),
            textcoords="offset points",
            ha="left" if at < 0.5 else "right",
            va="center",
            fontsize=style.points - 1,
            color=INK,
            parse_math=False,
        )


def _measured(value: float, unit: str) -> str:
    return size(value) if unit == "B" else f"{unit}{short(value)}"
