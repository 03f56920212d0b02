"""Labels of lines and points that do not touch, legends, and what is shown of a place pointed at."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric, loss, size, with_spread
from simulation.pages.figures.panels import BACKING, INK, Style, note, printable

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
            note(ax, across, up, end.label, style, color=end.colour, bbox=BACKING)
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


_PREFIX = "shows: "
_GROUP = re.compile(rf'<g id="{_PREFIX}([^"]*)">')


def show_on_hover(ax: Axes, places: Iterable[tuple[float, float, str]]) -> None:
    """Have places of a panel show words when pointed at.

    Each is a marker that cannot be seen, whose name in the SVG is what it shows: a page makes targets of them
    (`inline_svg`), and a file titles (`titled`).

    Parameters
    ----------
    ax : Axes
        Its limits are final; a place beyond them is left out.
    places : iterable of (float, float, str)
        In data coordinates, with the words.
    """
    (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    for x, y, words in places:
        if left <= x <= right and low <= y <= high:
            ax.add_artist(Line2D([x], [y], marker="o", markersize=10, alpha=0, zorder=5, gid=_PREFIX + words))


def shown_by(identifier: str) -> str | None:
    """Return what a group of an SVG shows when pointed at, by its identifier; None for any other group."""
    return identifier.removeprefix(_PREFIX) if identifier.startswith(_PREFIX) else None


def titled(svg: str) -> str:
    """Return an SVG file in which places have titles, which browsers show, for names."""
    return _GROUP.sub(r"<g><title>\1</title>", svg)


def result_in_words(result: ProtocolResult, metric: Metric) -> str:
    """Return a protocol, its budget, its accuracy and its bytes in one line."""
    budget = "" if result.budget is None else f", ε {loss(result.budget)}"
    accuracy = with_spread(result.average(metric.column), metric.digits)
    spent = "" if result.bytes_per_user is None else f", {size(result.bytes_per_user)} per user"
    return f"{printable(result.name)}{budget}: {metric.label} {accuracy}{spent}"


_BESIDE_LETTER, _BESIDE_LINE, _APART, _MARKER = 0.62, 1.05, 6.0, 5.0
"""Size of text relative to the font size; distance from a point, and half a marker's size, in points."""

_BESIDE_PANEL = 0.78, 0.7
"""Width and height of a panel as shares of the figure's."""

_Box = tuple[float, float, float, float]


def label_points(ax: Axes, style: Style, labels: Sequence[PointLabel]) -> None:
    """Write labels beside their points, the first ones first; what has no room is left out.

    Parameters
    ----------
    labels : sequence of PointLabel
        One for every point.
    """
    size = style.points - 2
    width, height = (
        72 * side * share for side, share in zip((style.width, style.height), _BESIDE_PANEL, strict=True)
    )
    to_panel = ax.transData + ax.transAxes.inverted()
    places = [to_panel.transform((label.x, label.y)) * (width, height) for label in labels]
    taken: list[_Box] = [(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in places]
    for label, (x, y) in zip(labels, places, strict=True):
        wide, high = len(label.label) * _BESIDE_LETTER * size, _BESIDE_LINE * size
        if not (0 <= x <= width and 0 <= y <= height):
            continue
        # To the right, to the left, above and below.
        for left, low in (
            (_APART, -high / 2),
            (-_APART - wide, -high / 2),
            (-wide / 2, _APART),
            (-wide / 2, -_APART - high),
        ):
            box = (x + left, y + low, x + left + wide, y + low + high)
            if box[0] >= 0 and box[2] <= width and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                ax.annotate(
                    label.label,
                    (label.x, label.y),
                    (left + wide / 2, low + high / 2),
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=size,
                    color=label.colour,
                    parse_math=False,
                )
                break


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
