"""Labels at the ends of lines, moved apart if they would touch, and legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from simulation.pages.figures.panels import BACKING, INK, Style

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


@dataclass(frozen=True)
class PointLabel:
    """A point, or the end of a line, and what stands beside it."""

    x: float
    y: float
    """In data coordinates."""
    label: str
    colour: str


_LINE, _PANEL = 1.3, 0.72
"""Height of a label in font sizes, and of a panel as a share of the figure's."""

_EDGE = 0.6
"""Fraction of a panel's width beyond which a line's end counts as near the right edge."""


def direct_labels(ax: Axes, style: Style, ends: Sequence[PointLabel]) -> None:
    """Label lines at their ends, moved apart if labels would touch, with a hairline to each.

    A line that ends near the right edge is labelled beyond it, any other beside its end; one that ends above
    or below the panel is not labelled.

    Parameters
    ----------
    ax : Axes
        Its limits are final.
    """
    beside: list[tuple[float, float, PointLabel]] = []
    beyond: list[tuple[float, float, PointLabel]] = []
    low, high = ax.get_ylim()
    for end in (end for end in ends if low <= end.y <= high):
        across, up = ax.transAxes.inverted().transform(ax.transData.transform((end.x, end.y))).tolist()
        if across > _EDGE:
            beyond.append((up, 1.025, end))
        else:
            beside.append((up, across + 0.035, end))
    gap = style.points * _LINE / 72 / (style.height * _PANEL)
    hairlines, colours = [], []
    for group in (beside, beyond):
        group.sort(key=lambda entry: entry[0])
        places = spread_out([up for up, _, _ in group], gap)
        for (height, across, end), up in zip(group, places, strict=True):
            ax.text(
                across,
                up,
                end.label,
                transform=ax.transAxes,
                va="center",
                ha="left",
                fontsize=style.points - 0.5,
                color=end.colour,
                bbox=BACKING,
                parse_math=False,
            )
            if abs(up - height) > gap / 4:
                hairlines.append([(across - 0.024, height), (across - 0.004, up)])
                colours.append(end.colour)
    ax.add_collection(
        LineCollection(
            hairlines, colors=colours, linewidths=0.6, alpha=0.55, transform=ax.transAxes, clip_on=False
        ),
        autolim=False,
    )


def spread_out(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places, moved as little as necessary to lie at least a gap apart.

    Neighbours that touch form a block around the mean of their original places; blocks that touch merge.
    """
    blocks: list[list[float]] = []
    for place in places:
        blocks.append([place])
        while len(blocks) > 1 and _start(blocks[-1], gap) < _start(blocks[-2], gap) + gap * len(blocks[-2]):
            last = blocks.pop()
            blocks[-1] += last
    return [_start(block, gap) + gap * position for block in blocks for position in range(len(block))]


def _start(block: Sequence[float], gap: float) -> float:
    """Return the first place of a block, which does not reach below the panel, nor above it if it fits."""
    size = gap * (len(block) - 1)
    return max(min(float(np.mean(block)) - size / 2, 1.0 - size), 0.0)


def tall_enough(style: Style, labels: int) -> Style:
    """Return the style with a figure that has room for so many labels above each other."""
    needed = labels * style.points * _LINE / 72 / _PANEL
    return style if style.narrow else replace(style, height=max(style.height, needed))


_LETTER, _HANDLE = 0.54, 3.6
"""Widths of a letter, and of the handle before a label in a legend, relative to the font size."""

_USUAL_LINES, _ENTRY = 2, 1.5
"""Lines of a legend for which every figure has room, and the height of one, relative to the font size."""


def legend_below(figure: Figure, style: Style, handles: Sequence[Any], columns: int | None = None) -> None:
    """Put a legend, if there is anything in it, below all panels, with as many columns as its labels allow.

    The figure grows with a legend of many lines, so that the panels stay as high as they are.
    """
    if not handles:
        return
    longest = max(len(str(handle.get_label())) for handle in handles)
    width = (longest * _LETTER + _HANDLE) * (style.points - 0.5) / 72
    beside = columns or max(1, min(4, int(figure.get_figwidth() / width)))
    more = max(0, math.ceil(len(handles) / beside) - _USUAL_LINES)
    figure.set_figheight(figure.get_figheight() + more * _ENTRY * style.points / 72)
    legend = figure.legend(
        handles=list(handles),
        loc="outside lower left",
        ncols=beside,
        frameon=False,
        fontsize=style.points - 0.5,
        labelcolor=INK,
        handlelength=1.8,
        handletextpad=0.5,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
