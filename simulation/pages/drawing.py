"""Draws figures with Matplotlib: as SVG for a page and for a file, as PNG, and for notebooks."""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from simulation.analysis.vocabulary import Metric, short
from simulation.pages.looks import COLOURS, INK, MUTED, RULE, SURFACE, Look, printable

# Matplotlib takes half a second to load, and not everything in pages draws.
if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Panel = Callable[["Axes"], None]
"""Draws a part of a figure, which a page shows beside others if there is room."""


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
    panels: Sequence[Panel]
    full_width: bool = False
    """Whether it takes the whole width of a page."""
    width: float = 360.0
    height: float = 230.0
    """Of a panel without its legend, where letters are 10 high."""


@dataclass(frozen=True)
class Rendered:
    """A figure in its formats."""

    plot: Plot
    svg: str
    """For a file."""
    inline: str
    """For a page: an element for each panel, in the page's colours and font."""
    png: bytes | None = None
    """If it was asked for."""


Draw = Callable[[Plot], Rendered]
"""Renders a figure and writes its files."""

_SMALL = 350
"""Below this width a panel shares a row of a page with two others."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_DARK = "".join(
    f'[{what}="{light}"]{{{what}:{dark}}}' for light, dark in COLOURS.values() for what in ("fill", "stroke")
)
"""The dark form of every colour, for where a reader prefers it."""


def render(plot: Plot, *, png: bool = False) -> Rendered:
    """Draw a figure."""
    panels = [_svg(plot, place) for place in range(len(plot.panels))]
    sizes = [tuple(map(float, panel.attrib["viewBox"].split()[2:])) for panel in panels]
    width, height = plot.width * len(panels), max(high for _, high in sizes)
    file = Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}",
        width=f"{1.5 * width:g}", height=f"{1.5 * height:g}", attrib={"font-family": _FONT},
    )  # fmt: skip
    SubElement(file, "style").text = f"@media (prefers-color-scheme: dark){{{_DARK}}}"
    SubElement(file, "rect", width="100%", height="100%", fill=SURFACE)
    for place, (panel, (wide, high)) in enumerate(zip(panels, sizes, strict=True)):
        box = {"x": f"{place * plot.width:g}", "width": f"{wide:g}", "height": f"{high:g}"}
        file.append(Element("svg", {**panel.attrib, **box}))
        file[-1].extend(panel)
    svg = tostring(file, encoding="unicode") + "\n"
    variables = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
    for element in (element for panel in panels for element in panel.iter()):
        for what in ("fill", "stroke"):
            if what in element.attrib:
                element.set(what, variables.get(element.attrib[what], element.attrib[what]))
    inline = "".join(tostring(panel, encoding="unicode") for panel in panels)
    return Rendered(plot, svg, inline, _png(to_figure(plot)) if png else None)


def to_figure(plot: Plot) -> Figure:
    """Return the panels of a plot beside each other, without pyplot, which would register the figure."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook shows by itself."""

        def _repr_png_(self) -> bytes:
            return _png(self)

    with _styled():
        size = plot.width * len(plot.panels) / 72, plot.height / 72
        figure = ShownFigure(size, dpi=72, facecolor=SURFACE, layout="constrained")
        parts = np.atleast_1d(figure.subfigures(1, len(plot.panels)))  # type: ignore[arg-type]
        for part, panel in zip(parts, plot.panels, strict=True):
            panel(part.subplots())
        figure.set_figheight(_height(plot, parts))
    return figure


def _height(plot: Plot, parts: Iterable[Any]) -> float:
    """Return how high panels are with their legends, in inches; those that say words alone are lower."""
    heights = []
    for part in parts:
        rows = sum(math.ceil(len(legend.get_texts()) / legend._ncols) for legend in part.legends)
        heights.append(plot.height + _ROW * rows if any(ax.axison for ax in part.axes) else _WORDS)
    return max(heights) / 72


_ROW, _WORDS = 14.0, 60.0
"""Heights of a row of a legend, and of a panel without axes."""


def _png(figure: Figure) -> bytes:
    with _styled(), BytesIO() as file:
        figure.savefig(file, format="png", dpi=200, metadata={"Software": None})
        return file.getvalue()


@contextmanager
def _styled(salt: str = "") -> Iterator[None]:
    """Set how figures look, and what the names in an SVG are made of, for a while."""
    import matplotlib as mpl

    style: Any = {
        **{"font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "legend.fontsize": 10},
        **{"axes.titlecolor": INK, "axes.labelcolor": MUTED},
        **{"axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False},
        **{"axes.edgecolor": MUTED, "xtick.color": MUTED, "ytick.color": MUTED, "ytick.major.size": 0},
        **{"axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "grid.color": RULE},
        **{"axes.formatter.useoffset": False, "axes.formatter.limits": (-5, 6), "text.color": INK},
        **{"legend.frameon": False, "legend.handlelength": 2.4, "legend.borderaxespad": 0},
        **{"legend.columnspacing": 1.2, "legend.labelspacing": 0.3, "lines.scale_dashes": False},
        **{"lines.linewidth": 1.6, "lines.markersize": 5.5, "axes.unicode_minus": True},
        # What names hold is no formula; where a letter is missing, a browser has it.
        **{"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": salt},
    }
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def _svg(plot: Plot, place: int) -> Element:
    """Return one panel as SVG with what a page needs alone."""
    from matplotlib.figure import Figure

    with _styled(f"{plot.name} {place}"), BytesIO() as file:
        figure = Figure((plot.width / 72, plot.height / 72), dpi=72, layout="constrained")
        plot.panels[place](figure.subplots())
        figure.set_figheight(_height(plot, [figure]))
        for patch in (figure.patch, *(ax.patch for ax in figure.axes)):
            patch.set_visible(False)
        arrange(figure)
        # Arranged once, which takes longer than to draw.
        figure.set_layout_engine(None)
        figure.savefig(file, format="svg", metadata={"Date": None})
        (svg,) = _stripped(fromstring(file.getvalue()))
    small = {"class": "small"} if plot.width < _SMALL else {}
    svg.attrib = {"viewBox": svg.attrib["viewBox"], **small}
    return svg


def arrange(figure: Figure) -> None:
    """Give everything in a figure its place."""
    engine = figure.get_layout_engine()
    assert engine is not None, "a figure without a layout"
    engine.execute(figure)


_LEFT_OUT = {"id", "version", "font-family", "stroke-dashoffset"}
_NUMBER = re.compile(r"-?\d+\.\d+")


def _stripped(element: Element) -> Iterator[Element]:
    """Yield an element, or what is inside, without styles, which a page's policy forbids, and long numbers.

    Whatever a group is named by `point` becomes titles of its marks.
    """
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return
    unstyled = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    styles = (
        declaration.split(": ", 1) for declaration in unstyled.pop("style", "").split("; ") if declaration
    )
    styled = {**unstyled, **dict(styles)}
    name = styled.get("id", "") if tag == "g" else ""
    attributes = {
        key: value if key == "href" else _NUMBER.sub(_rounded, " ".join(value.split()))
        for key, value in styled.items()
        if (key not in _LEFT_OUT or (key == "id" and tag != "g")) and not value.startswith("rotate(-0 ")
    }
    children = [inner for child in element for inner in _stripped(child)]
    if _POINTED in name:
        marks = (mark for child in children for mark in child.iter("use"))
        for mark, words in zip(marks, name.split(_POINTED)[1:], strict=False):
            SubElement(mark, "title").text = words
    if (tag == "g" and not attributes) or (tag in ("g", "defs") and not children):
        yield from children
        return
    copied = Element(tag, attributes)
    copied.text = element.text if tag == "text" else None
    copied.extend(children)
    yield copied


def _rounded(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{round(value, 1 if abs(value) >= 10 else 2):g}"


_POINTED = "\N{SYMBOL FOR UNIT SEPARATOR}"
"""Before the words of each mark in the name of a group of marks."""


def point(ax: Axes, x: ArrayLike, y: ArrayLike, colour: str, words: Sequence[str], **style: Any) -> None:
    """Draw places without a line, within the limits, each of which shows its words when it is pointed at."""
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    low, high = sorted(ax.get_ylim())
    inside = (low <= up) & (up <= high)
    titles = [printable(text) for text, is_inside in zip(words, inside, strict=True) if is_inside]
    look = {"linestyle": "none", "marker": "o", "color": colour, "markeredgewidth": 1.2, **style}
    ax.plot(across[inside], up[inside], gid=_POINTED.join(["", *titles]), **look)


def curve(
    ax: Axes, x: ArrayLike, y: ArrayLike, look: Look, label: str, words: Sequence[str], **style: Any
) -> Artist:
    """Draw a line with places that show words when they are pointed at; return what a legend says of it."""
    ax.plot(x, y, color=look.colour, linestyle=look.dashes)
    point(ax, x, y, look.colour, words, marker=look.marker, **style)
    return entry(label, look)


def titled(ax: Axes, title: str, *notes: str, x: str = "", y: str = "") -> None:
    """Write a title above a panel, notes below it, and what its axes count."""
    lines = (line for note in notes for line in textwrap.wrap(note, _LETTERS, break_on_hyphens=False))
    words = (printable(line.replace("\N{NO-BREAK SPACE}", " ")) for line in (title, *lines))
    ax.set_title("\n".join(words), loc="left")
    ax.set(xlabel=printable(x), ylabel=y)


_LETTERS = 58
"""For which a panel has room in a line."""


def legend(ax: Axes, handles: Sequence[Artist], columns: int = 2) -> None:
    """Name lines below a panel."""
    if handles:
        ax.get_figure(root=False).legend(handles=handles, loc="outside lower left", ncols=columns)  # type: ignore[union-attr]


def entry(label: str, look: Look, *, line: bool = True, **style: Any) -> Artist:
    """Return what a legend says of a look."""
    from matplotlib.lines import Line2D

    properties = {"linestyle": look.dashes if line else "none", "marker": look.marker or "none", **style}
    return Line2D([], [], color=look.colour, label=printable(label), **properties)


def nothing(ax: Axes, title: str, words: str) -> None:
    """Say why there is nothing to draw."""
    ax.set_axis_off()
    titled(ax, title)
    ax.text(0, 1, words, color=MUTED, va="top", transform=ax.transAxes)


def log_axis(
    axis: Axis, values: ArrayLike, written: Callable[[float], str] = short, *, at_values: bool = False
) -> tuple[float, float]:
    """Make an axis logarithmic, with ticks at the values themselves if these are few, and return its ends."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    numbers = np.asarray(values, dtype=np.float64)
    high = float(numbers.max())
    # Whatever a damaged table holds, the axis has ends.
    low = max(float(numbers.min()), 1e-40 * high)
    margin = max(1.15, (high / low) ** 0.06)
    low, high = low / margin, high * margin
    distinct = np.unique([float(f"{value:.3g}") for value in numbers])
    decades = math.log10(high / low)
    locator: Any = MaxNLocator(4)
    if at_values and (np.diff(np.log10(distinct)) > decades / 7).all():
        locator = FixedLocator(distinct.tolist())
    elif decades > 1:
        locator = LogLocator(subs=(1.0, 3.0) if decades < 3 else (1.0,), numticks=6)
    axis._set_axes_scale("log")  # type: ignore[attr-defined]
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(low, high)  # type: ignore[attr-defined]
    return low, high


def shade(ax: Axes, x: Floats, y: Floats, metric: Metric) -> None:
    """Draw what is reached with nothing sent as a line across a panel, and shade what is worse."""
    left, right = ax.get_xlim()
    places, line = np.concatenate([[left], x, [right]]), np.concatenate([y[:1], y, y[-1:]])
    worst = ax.get_ylim()[metric.lower_is_better]
    # Where the line lies beyond the worst end, nothing that is shown is worse.
    edge = np.minimum(line, worst) if metric.lower_is_better else np.maximum(line, worst)
    ax.fill_between(places, edge, worst, color=RULE, alpha=0.45, linewidth=0)
    ax.plot(places, line, color=INK, linewidth=1.2)


def percent(axis: Axis) -> None:
    """Write an axis in per cent."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
