"""Labels at the ends of lines, moved apart where they would touch, and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulation.pages.figures.colours import INK, SURFACE
from simulation.pages.figures.panels import Style

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


def direct_labels(ax: Axes, style: Style, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Label lines at their ends, moved apart where labels would touch, with a hairline to each.

    A line that ends near the right edge is labelled beyond it, any other beside its end.

    Parameters
    ----------
    ax : Axes
        Its limits are final.
    style : Style
    ends : sequence of tuple
        Each line's last x and y, its label and its colour.
    """
    inside: list[_End] = []
    outside: list[_End] = []
    for x, y, label, colour in ends:
        across, up = ax.transAxes.inverted().transform(ax.transData.transform((x, y)))
        near_edge = across > _EDGE
        place = 1.025 if near_edge else across + 0.035
        (outside if near_edge else inside).append(_End(x, y, float(place), float(up), label, colour))
    gap = style.points * 1.3 / 72 / (style.height * 0.72)
    # From the left end of the words, so that the hairline crosses no other label.
    arrow = {
        "arrowstyle": "-",
        "linewidth": 0.6,
        "alpha": 0.55,
        "shrinkA": 1,
        "shrinkB": 5,
        "relpos": (0, 0.5),
    }
    for group in (inside, outside):
        group.sort(key=lambda end: end.up)
        for end, up in zip(group, spread_out([end.up for end in group], gap), strict=True):
            ax.annotate(
                end.label,
                xy=(end.x, end.y),
                xytext=(end.across, up),
                textcoords="axes fraction",
                va="center",
                ha="left",
                fontsize=style.points - 0.5,
                color=end.colour,
                annotation_clip=False,
                arrowprops={**arrow, "color": end.colour},
                bbox={"facecolor": SURFACE, "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
                parse_math=False,
            )


_EDGE = 0.6
"""Fraction of a panel's width from which on a line's end counts as near the right edge."""


@dataclass(frozen=True)
class _End:
    """The end of a line, in data, and where its label is wanted, in fractions of the panel."""

    x: float
    y: float
    across: float
    up: float
    label: str
    colour: str


def spread_out(places: Sequence[float], gap: float) -> list[float]:
    """Return ascending places moved as little as need be to lie at least a gap apart.

    Neighbours that touch form a block around the mean of what they wanted; blocks that touch merge.
    """
    blocks: list[list[float]] = []
    for place in places:
        blocks.append([place])
        while len(blocks) > 1 and _start(blocks[-1], gap) < _start(blocks[-2], gap) + gap * len(blocks[-2]):
            last = blocks.pop()
            blocks[-1] += last
    return [_start(block, gap) + gap * position for block in blocks for position in range(len(block))]


def _start(block: Sequence[float], gap: float) -> float:
    return float(np.mean(block)) - gap * (len(block) - 1) / 2


_LETTER, _HANDLE = 0.58, 3.6
"""Widths of a letter and of what stands before a label in a legend, in sizes of the text."""


def legend_below(figure: Figure, style: Style, handles: Sequence[Any], columns: int | None = None) -> None:
    """Put a legend below all panels, in as many columns as its longest label leaves room for."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    width = (longest * _LETTER + _HANDLE) * style.points / 72
    legend = figure.legend(
        handles=list(handles),
        loc="outside lower left",
        ncols=columns or max(1, min(4, int(figure.get_figwidth() / width))),
        frameon=False,
        fontsize=style.points - 0.5,
        labelcolor=INK,
        handlelength=1.8,
        handletextpad=0.5,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
