"""Figures and their panels: sizes, headings, notes and colours, wide for a desk and narrow for a phone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, MUTED, RULE, SURFACE = "#1b2530", "#5a6672", "#dde2e7", "#ffffff"

REFERENCE = "#56616d"

SERIES = ("#0a62a9", "#c24a05", "#00785c", "#a62f7d", "#866802", "#5a40b4", "#0f7f99", "#6d4a33")
"""Colours of protocols; each protocol also has its own marker, so that nothing rests on colour alone."""

_RAMP = ("#9ecae8", "#74b0db", "#4f95ca", "#337ab5", "#1f609a", "#134a7d", "#0b3560")
"""Colours of ordered things, from low to high."""

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
            _RAMP,
            ("#23486b", "#2c5f8d", "#3a79af", "#5594cb", "#77afe0", "#9dc9f0", "#c9e3fb"),
            strict=True,
        )
    ),
}


NAMES: Mapping[str, str] = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    SURFACE: "surface",
    REFERENCE: "look-reference",
    **{colour: f"look-{place}" for place, colour in enumerate(SERIES)},
    **{colour: f"ramp-{place}" for place, colour in enumerate(_RAMP)},
}
"""The variable of each token on a page."""


def page_colours(*, dark_mode: bool) -> dict[str, str]:
    """Return the variables of a page and their values."""
    return {name: _DARK[token] if dark_mode else token for token, name in NAMES.items()}


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from low to high."""
    if count <= 1:
        return [_RAMP[-2]] * count
    return [_RAMP[round(place * (len(_RAMP) - 1) / (count - 1))] for place in range(count)]


@dataclass(frozen=True)
class Style:
    """The size at which a figure is drawn."""

    width: float
    height: float
    """Inches; with several panels the figure is larger."""
    points: float
    """Font size."""
    narrow: bool
    """Whether it is for a phone: panels below each other, and labels below the axes."""


class _ShownFigure(Figure):
    """A figure that a notebook shows by itself: pyplot, which would register it there, is not loaded."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


WIDE = Style(6.2, 3.9, 9.5, False)

NARROW = Style(3.75, 3.5, 9.0, True)


def panels(style: Style, count: int = 1, *, aspect: float = 1.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels beside each other, or below each other if the style is narrow.

    Parameters
    ----------
    count : int
        Number of panels.
    aspect : float
        Height of the figure, or of a panel if the style is narrow, relative to the style's.
    """
    rows, columns = (count, 1) if style.narrow else (1, count)
    width = style.width * (1.0 if style.narrow or count == 1 else 1.5)
    height = style.height * aspect * (rows if rows == 1 else rows * 0.72)
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.05, hspace=0.04)
    figure = _ShownFigure(figsize=(width, height), facecolor=SURFACE, layout=layout)
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


def title(ax: Axes, text: str, style: Style, *, above: float = 8) -> None:
    """Put a heading so many points above a panel, flush left."""
    ax.set_title(text, loc="left", fontsize=style.points + 0.5, color=INK, parse_math=False, pad=above)


def axis_labels(ax: Axes, style: Style, *, x: str, side: str | None = None) -> None:
    """Label the horizontal axis, and the vertical one if the heading of the panel does not name it."""
    ax.set_xlabel(x, fontsize=style.points, color=MUTED, parse_math=False)
    if side is not None:
        ax.set_ylabel(side, fontsize=style.points - 0.5, color=MUTED, parse_math=False)


def note(ax: Axes, x: float, y: float, words: str, style: Style, **options: Any) -> None:
    """Write plain text in a panel, at fractions of the panel unless `transform` says where."""
    usual = {"transform": ax.transAxes, "color": MUTED, "fontsize": style.points - 0.5, "va": "center"}
    ax.text(x, y, words, parse_math=False, **{**usual, **options})


def empty(ax: Axes, words: str, style: Style) -> None:
    """Write in a panel why there is nothing to draw."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    note(ax, 0.5, 0.5, words, style, ha="center")


BACKING = {"facecolor": SURFACE, "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
"""The box behind text that may lie on lines."""

_LONGEST_LABEL = 26


def shortened(label: str, most: int = _LONGEST_LABEL) -> str:
    """Return a name of so many letters at most, without characters that cannot be drawn."""
    shown = printable(label)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def printable(label: str) -> str:
    """Return a name without characters that cannot be drawn."""
    return "".join(character if character.isprintable() else "·" for character in label)
