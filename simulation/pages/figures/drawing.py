"""Draws panels with matplotlib, for notebooks and slides."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from simulation.pages.figures.marks import Axis, line_style
from simulation.pages.figures.panels import INK, MUTED, RULE, SURFACE, Entry, Panel, spread_out

_INCH, _DPI = 72.0, 200


class _ShownFigure(Figure):
    """A figure that a notebook shows by itself: pyplot, which would register it there, is not loaded."""

    def _repr_png_(self) -> bytes:
        return _png(self)


def to_figure(panels: Sequence[Panel]) -> Figure:
    """Return panels beside each other as a figure of matplotlib."""
    size = sum(panel.width for panel in panels) / _INCH, (max(panel.height for panel in panels) + 110) / _INCH
    figure = _ShownFigure(figsize=size, facecolor=SURFACE, layout="constrained")
    for ax, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        _draw(ax, panel)
    return figure


def to_png(panels: Sequence[Panel]) -> bytes:
    """Return panels beside each other as an image."""
    figure = to_figure(panels)
    figure.dpi = _DPI
    return _png(figure)


def _png(figure: Figure) -> bytes:
    with BytesIO() as file:
        FigureCanvasAgg(figure).print_png(file, metadata={"Software": None})  # type: ignore[no-untyped-call]
        return file.getvalue()


def _draw(ax: Axes, panel: Panel) -> None:
    ax.set_facecolor(SURFACE)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(MUTED)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=MUTED, labelsize=8.5, length=0)
    for which, axis in (("x", panel.x), ("y", panel.y)):
        _axis(ax, which, axis)
    for mark in panel.marks:
        mark.draw(ax)
    plain: Any = {"fontsize": 9, "parse_math": False}
    ax.set_title("\n".join([panel.title, *panel.notes]), loc="left", color=INK, **plain)
    ax.set_xlabel(panel.x.label, color=MUTED, **plain)
    ax.set_ylabel(panel.y.label, color=MUTED, **plain)
    shown = sorted((end for end in panel.ends if panel.y.holds(end.at)), key=lambda end: end.at)
    wanted = panel.y.places([end.at for end in shown]).tolist()
    for end, up in zip(shown, spread_out(wanted, 14 / panel.height, 0, 1), strict=True):
        style: Any = {"color": end.colour, "fontsize": 8, "va": "center", "parse_math": False}
        ax.text(1.02, up, end.label, transform=ax.transAxes, **style)
    if panel.legend:
        below: Any = {"loc": "upper left", "bbox_to_anchor": (0, -0.16), "ncols": 2, "frameon": False}
        for text in ax.legend(handles=[*map(_handle, panel.legend)], fontsize=8, **below).get_texts():
            text.set_parse_math(False)


def _axis(ax: Axes, which: str, axis: Axis) -> None:
    ax.set(**{f"{which}scale": "log" if axis.log else "linear", f"{which}lim": (axis.low, axis.high)})
    of = ax.xaxis if which == "x" else ax.yaxis
    of.set_major_locator(FixedLocator([at for at, _ in axis.ticks]))
    of.set_major_formatter(FixedFormatter([words for _, words in axis.ticks]))
    of.set_minor_locator(NullLocator())
    if axis.grid:
        ax.grid(axis="x" if which == "x" else "y", color=RULE, linewidth=0.8)


def _handle(entry: Entry) -> Line2D:
    style: Any = "none" if entry.dashes is None else line_style(entry.dashes)
    return Line2D(
        [], [], color=entry.colour, marker=entry.marker or "none", linestyle=style, label=entry.label,
        fillstyle="none" if entry.hollow else "full",
    )  # fmt: skip
