"""Figures and their panels: sizes, headings and notes, wide for a desk and narrow for a phone."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from simulation.pages.figures.panels import INK, MUTED, RULE, SURFACE


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


class ShownFigure(Figure):
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
    figure = ShownFigure(figsize=(width, height), facecolor=SURFACE, layout=layout)
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
    """Write plain text in a panel, at a place given in fractions of the panel."""
    options = {"color": MUTED, "fontsize": style.points - 0.5, "va": "center", **options}
    ax.text(x, y, words, transform=ax.transAxes, parse_math=False, **options)


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
