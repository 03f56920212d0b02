"""Renders a figure for a page and a directory: SVG in two widths, and a PNG for slides."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from simulation.pages.figures.panels import NARROW, WIDE, Style

_PAGE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_PNG_DPI = 200


@dataclass(frozen=True)
class Plot:
    """A figure of a page."""

    name: str
    """Name of its files."""
    title: str
    caption: str
    """How to read it."""
    alt: str
    """What it shows, for readers who cannot see it."""
    draw: Callable[[Style], Figure]
    """From a style to a matplotlib figure."""
    full_width: bool = False
    """Whether it takes the whole width of a page."""


@dataclass(frozen=True)
class Rendered:
    """A figure in its formats."""

    plot: Plot
    svg: str
    narrow_svg: str
    png: bytes


def render(plot: Plot) -> Rendered:
    """Draw a figure in both widths."""
    figure = plot.draw(WIDE)
    svg = to_svg(figure)
    figure.set_layout_engine("none")  # the layout is final; the PNG uses the same one
    return Rendered(plot, svg, to_svg(plot.draw(NARROW)), _to_png(figure))


def _to_png(figure: Figure) -> bytes:
    figure.dpi = _PNG_DPI
    with io.BytesIO() as file:
        FigureCanvasAgg(figure).print_png(file, metadata={"Software": None})  # type: ignore[no-untyped-call]
        return file.getvalue()


def to_svg(figure: Figure) -> str:
    """Return a figure as SVG, its text as text, the same on every call."""
    # The identifiers in an SVG can be fixed only by a setting, which is restored at once.
    with (
        matplotlib.rc_context({"svg.hashsalt": "dprec", "svg.fonttype": "none"}),
        warnings.catch_warnings(),
        io.StringIO() as file,
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        # Unlike savefig, which draws twice: to lay out, and to write.
        canvas = FigureCanvasSVG(figure)
        canvas.print_svg(file, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
        text = file.getvalue()
    # The layout was made for a wide font; the page's own font is narrower, so nothing collides.
    text = re.sub(r"(font: (?:\w+ )?[\d.]+px) [^;\"]*", rf"\1 {_PAGE_FONT}", text)
    return text[text.index("<svg") :]


Draw = Callable[[Plot], Rendered]
"""Renders a figure and writes its files."""
