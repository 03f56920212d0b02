"""How figures look: colours, sizes and axes, drawn without pyplot so that no global state changes.

Every colour is one of a fixed set of tokens with a light and a dark form. A figure is drawn once, in
light tokens; its dark form is the same SVG with the tokens exchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from simulation.analysis.numbers import short, size

INK, MUTED, RULE, SURFACE = "#1b2530", "#5a6672", "#dde2e7", "#ffffff"
REFERENCE = "#56616d"

SERIES = ("#0a62a9", "#c24a05", "#00785c", "#a62f7d", "#866802", "#5a40b4", "#0f7f99", "#6d4a33")
"""Colours of protocols; each also has a marker of its own, so that colour is never alone."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

RAMP = ("#9ecae8", "#74b0db", "#4f95ca", "#337ab5", "#1f609a", "#134a7d", "#0b3560")
"""Colours of ordered things, from little to much."""

_DARK = {
    INK: "#e6eaee",
    MUTED: "#a3aeb9",
    RULE: "#323b45",
    SURFACE: "#161b21",
    REFERENCE: "#aab5c0",
    **dict(
        zip(
            SERIES,
            ("#68b3f2", "#ff9557", "#48c7a0", "#ee87c6", "#dcb848", "#ae9bff", "#5fd0e8", "#d0aa8c"),
            strict=True,
        )
    ),
    **dict(
        zip(
            RAMP,
            ("#23486b", "#2c5f8d", "#3a79af", "#5594cb", "#77afe0", "#9dc9f0", "#c9e3fb"),
            strict=True,
        )
    ),
}

_LONGEST_LABEL = 26

_LETTER, _HANDLE = 0.58, 3.6
"""Widths of a letter and of what stands before a label in a legend, in sizes of the text."""


@dataclass(frozen=True)
class Style:
    """The size at which a figure is drawn.

    Parameters
    ----------
    width, height : float
        Inches; panels beside or below each other change them.
    points : float
        Size of the text.
    narrow : bool
        Whether it is for a phone: panels below each other, and labels below the axes.
    """

    width: float
    height: float
    points: float
    narrow: bool


WIDE = Style(6.2, 3.9, 9.5, False)
NARROW = Style(3.75, 3.5, 9.0, True)


def dark(svg: str) -> str:
    """Return a figure's SVG with the light tokens exchanged for the dark ones."""
    return re.sub(r"#[0-9a-f]{6}", lambda match: _DARK.get(match[0], match[0]), svg)


def page_colours(dark_mode: bool) -> dict[str, str]:
    """Return the tokens that the page shares with the figures."""
    tokens = {"ink": INK, "muted": MUTED, "rule": RULE, "surface": SURFACE, "accent": SERIES[0]}
    return {name: _DARK[value] if dark_mode else value for name, value in tokens.items()}


def exchanged(colour: str) -> str:
    """Return the dark form of a token."""
    return _DARK[colour]


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from little to much."""
    if count == 1:
        return [RAMP[-2]]
    return [RAMP[round(place * (len(RAMP) - 1) / (count - 1))] for place in range(count)]


def panels(style: Style, count: int = 1, *, aspect: float = 1.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels beside each other, or below each other where it is narrow.

    Parameters
    ----------
    style : Style
    count : int
        Number of panels.
    aspect : float
        Height of the figure, or of a panel where it is narrow, relative to the style's.
    """
    rows, columns = (count, 1) if style.narrow else (1, count)
    width = style.width * (1.0 if style.narrow or count == 1 else 1.5)
    height = style.height * aspect * (rows if rows == 1 else rows * 0.72)
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.05, hspace=0.04)
    figure = Figure(figsize=(width, height), facecolor=SURFACE, layout=layout)
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    for ax in axes:
        _plain(ax, style)
    return figure, axes


def _plain(ax: Axes, style: Style) -> None:
    ax.set_facecolor(SURFACE)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(MUTED)
    ax.grid(axis="y", color=RULE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(
        which="both", colors=MUTED, labelcolor=MUTED, labelsize=style.points - 0.5, length=0, pad=4
    )
    ax.tick_params(axis="x", which="major", length=3)


def title(ax: Axes, text: str, style: Style) -> None:
    """Put a heading above a panel, flush left."""
    ax.set_title(text, loc="left", fontsize=style.points + 0.5, color=INK, parse_math=False, pad=8)


def axis_labels(ax: Axes, style: Style, *, x: str | None = None, y: str | None = None) -> None:
    """Name the axes; the vertical one above its upper end, to be read without turning the head."""
    if x is not None:
        ax.set_xlabel(x, fontsize=style.points, color=MUTED, parse_math=False)
    if y is not None:
        title(ax, y, style)


def note(ax: Axes, x: float, y: float, words: str, style: Style, **options: Any) -> None:
    """Write into a panel at a place given in fractions of it, the words as they are."""
    options = {"color": MUTED, "fontsize": style.points - 0.5, "va": "center", **options}
    ax.text(x, y, words, transform=ax.transAxes, parse_math=False, **options)


def empty(ax: Axes, words: str, style: Style) -> None:
    """Say in a panel why there is nothing to draw."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    note(ax, 0.5, 0.5, words, style, ha="center")


def log_axis(
    ax: Axes,
    values: Sequence[float],
    *,
    which: str = "x",
    ticks_at_values: bool = False,
    in_bytes: bool = False,
) -> None:
    """Make an axis logarithmic, with plain numbers on it.

    Parameters
    ----------
    ax : Axes
    values : sequence of float
        Everything that is drawn, above 0.
    which : {"x", "y"}
    ticks_at_values : bool
        Label the values themselves, where they are few enough.
    in_bytes : bool
        Write the numbers as sizes.
    """
    written = size if in_bytes else short
    low, high = min(values), max(values)
    margin = max(1.15, (high / low) ** 0.06)
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low / margin, high * margin)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    distinct = sorted(set(values))
    whole = math.log(high / low) or 1.0
    apart = all(math.log(after / before) > 0.09 * whole for before, after in pairwise(distinct))
    if ticks_at_values and len(distinct) <= 8 and apart:
        axis.set_major_locator(FixedLocator(distinct))
        axis.set_minor_locator(NullLocator())
    else:
        subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0) if high / low > 3 else tuple(range(1, 10))
        axis.set_major_locator(LogLocator(subs=subs, numticks=7))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_axis(
    ax: Axes, *, which: str = "x", ticks: int = 6, percent: bool = False, in_bytes: bool = False
) -> None:
    """Give a linear axis few ticks with plain numbers on them."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))

    def written(value: float, _: int | None) -> str:
        if percent:
            return _percent(value)
        # One suffix for the whole axis: 8k, 10k, 12k rather than 8,000, 10k, 12k.
        in_thousands = 1e4 <= max(abs(end) for end in axis.get_view_interval()) < 1e6
        return size(value) if in_bytes else f"{value / 1e3:.4g}k" if in_thousands and value else short(value)

    axis.set_major_formatter(FuncFormatter(written))


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
    # Two lines of text above the columns: the marks then never run into the drawing.
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


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _measured(value: float, unit: str) -> str:
    return size(value) if unit == "B" else f"{unit}{short(value)}"


def shortened(label: str) -> str:
    """Return a name that fits a figure, without characters that cannot be drawn."""
    shown = "".join(character if character.isprintable() else "·" for character in label)
    return shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"
