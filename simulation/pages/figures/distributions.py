"""How a figure is distributed over the users."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from simulation.analysis.vocabulary import short, size
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.panels import BACKING, INK, Style, axis_labels, empty, note


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
    axis_labels(ax, style, x=label, side="share of users")
    logarithmic = low > 0 and high / low > 60
    edges = bins(values, logarithmic=logarithmic)
    shares = np.histogram(values, edges)[0] / values.size
    ax.stairs(shares, edges, fill=True, color=colour, alpha=0.28, linewidth=0)
    ax.stairs(shares, edges, color=colour, linewidth=1.2)
    if logarithmic:
        log_axis(ax, [low, high], in_bytes=unit == "B")
    else:
        plain_axis(ax, ticks=4 if style.narrow else 5, in_bytes=unit == "B")
    plain_axis(ax, which="y", ticks=4, percent=True)
    # Room for two lines of text above the columns, so that the marks never overlap the drawing.
    ax.set_ylim(0, shares.max() * 1.42)
    marks = [
        ("median", float(np.median(values)), 0.97),
        ("95th percentile", float(np.percentile(values, 95)), 0.86),
    ]
    for name, value, place in marks:
        ax.axvline(value, 0, place - 0.03, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        words = f"{name}: {_measured(value, unit)}"
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((value, 0)))[0])
        # To the right of its line if there is room.
        inches = ax.figure.get_size_inches()[0] * ax.get_position().width  # type: ignore[union-attr]
        start = max(0.0, min(at + 0.02, 1 - len(words) * _LETTER * (style.points - 1) / 72 / inches))
        ax.text(
            start,
            place,
            words,
            transform=ax.transAxes,
            va="center",
            fontsize=style.points - 1,
            color=INK,
            bbox=BACKING,
            parse_math=False,
        )


_LETTER = 0.56
"""Width of a letter relative to the font size."""

_BINS = 30


def bins(values: NDArray[np.float64], *, logarithmic: bool) -> NDArray[np.float64]:
    """Return edges of bins; between the possible values if these are evenly spaced, as integers are.

    Each bin then holds as many possible values as every other, or at least one on a logarithmic axis.
    """
    low, high = float(values.min()), float(values.max())
    edges = np.geomspace(low, high, _BINS + 1) if logarithmic else np.linspace(low, high, _BINS + 1)
    step = float(np.diff(np.unique(values)).min())
    places = (values - low) / step
    if not np.allclose(places, np.round(places), atol=1e-6):
        edges[-1] = np.nextafter(high, np.inf)
        return edges
    if logarithmic:
        last = (high - low) / step + 1
        between = np.unique(np.append(np.round((edges[:-1] - low) / step), last))
        return np.maximum(low + step * (between - 0.5), low / 2)
    together = np.ceil(((high - low) / step + 1) / _BINS)
    return np.arange(low, high + step * (together + 0.5), step * together) - step / 2


def _measured(value: float, unit: str) -> str:
    return size(value) if unit == "B" else f"{unit}{short(value)}"
