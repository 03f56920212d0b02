"""Renders a figure: SVG in two widths, made compact inside a page, and a PNG for slides."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from xml.etree.ElementTree import Element, fromstring, tostring
from zlib import crc32

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from simulation.pages.figures.labels import shown_by
from simulation.pages.figures.panels import NAMES, NARROW, WIDE, Style

_LEFT_OUT = {"metadata", "style"}
_PAGE_SETS = {"font-family", "stroke-dashoffset"}
_LENGTHS = {"d", "x", "y", "width", "height", "points", "transform", "stroke-dasharray", "stroke-width"}
_STYLE = {"fill", "font-size", "text-anchor"} | {
    f"stroke{part}" for part in ("", "-width", "-opacity", "-dasharray", "-linecap", "-linejoin")
}
"""Properties that elements have from their group."""

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_UNTURNED = re.compile(r"rotate\(-?0 ")
_REFERENCE = re.compile(r"(?<=#)[^)]+")
_NOTHING_DRAWN = re.compile(r"(M[^MLCQ]*)?")


def inline_svg(svg: str, name: str, *, words: bool = True) -> str:
    """Return a figure's SVG as an element of a page.

    A page's policy forbids style attributes, so that each property becomes an attribute of its own. Colours
    that the page knows become its variables, which have a light and a dark form; the font is the page's.

    Parameters
    ----------
    svg : str
        As matplotlib writes it. Its text stays text, escaped.
    name : str
        Unique on the page; the identifiers in the figure follow from it, so that two figures share none.
    words : bool
        Whether places that are pointed at hold what is then shown; the narrow form of a figure has the places
        of the wide one, in the same order.
    """
    root = fromstring(svg)
    element = Element("svg", {"viewBox": root.get("viewBox", ""), "stroke-linejoin": "round"})
    element.extend(_Compaction(f"f{crc32(name.encode()):x}").children(root))
    for place in () if words else element.iter("circle"):
        place.set("data-shows", "")
    return tostring(element, encoding="unicode")


class _Compaction:
    """Copies elements, leaving out what draws nothing, what groups nothing and what is said twice."""

    def __init__(self, prefix: str) -> None:
        self._fresh = (f"{prefix}-{number}" for number in count(1))
        self._identifiers: dict[str, str] = {}
        self._markers: dict[str, Element] = {}
        self._same: dict[tuple[tuple[str, str], ...], str] = {}

    def children(self, parent: Element) -> list[Element]:
        copies = [copy for child in parent for copy in self._copies(child, _local(parent.tag) == "defs")]
        return _styled_together(_clipped_together(copies))

    def _copies(self, element: Element, defined: bool) -> list[Element]:
        tag = _local(element.tag)
        if tag in _LEFT_OUT:
            return []
        if (words := shown_by(element.get("id", ""))) is not None:
            return [_target(place, words) for place in element.iter() if _local(place.tag) == "use"]
        copy = Element(tag, dict(self._attributes(element, defined)))
        copy.extend(self.children(element))
        if tag == "text":
            copy.text = element.text
        if defined and tag == "path":
            return self._definition(copy, element.get("id", ""))
        if tag == "g":
            while len(copy) == 1 and copy[0].tag == "g" and not set(copy.attrib) & set(copy[0].attrib):
                (inner,) = copy
                copy = Element("g", {**copy.attrib, **inner.attrib})
                copy.extend(inner)
            if not copy.attrib:
                return list(copy)
        return [copy] if _drawn(copy) else []

    def _definition(self, marker: Element, identifier: str) -> list[Element]:
        """Return a marker; nothing if there is the same one, which is then used."""
        own = marker.get("id", "")
        shape = tuple((name, value) for name, value in marker.items() if name != "id")
        self._identifiers[identifier] = self._same.setdefault(shape, own)
        self._markers.setdefault(self._identifiers[identifier], marker)
        return [marker] if self._identifiers[identifier] == own else []

    def _attributes(self, element: Element, defined: bool) -> Iterator[tuple[str, str]]:
        properties = dict(_properties(element))
        marker = self._markers.get(self._renamed(properties["href"][1:])) if "href" in properties else None
        for name, value in properties.items():
            if name in _PAGE_SETS or (name == "transform" and _UNTURNED.match(value)):
                continue
            if name == "id":
                if defined:
                    yield name, self._renamed(value)
                continue
            if name in ("href", "clip-path"):
                written = _REFERENCE.sub(lambda match: self._renamed(match[0]), value)
            else:
                # A marker is small, and what is wrong with it would be so at every place.
                written = _rounded(value, 2 if defined else 1) if name in _LENGTHS else _coloured(value)
            if marker is None or marker.get(name) != written:
                yield name, written

    def _renamed(self, identifier: str) -> str:
        # A clip path is referred to before it is defined.
        if identifier not in self._identifiers:
            self._identifiers[identifier] = next(self._fresh)
        return self._identifiers[identifier]


def _drawn(copy: Element) -> bool:
    """Return whether anything is seen of an element."""
    if copy.tag == "path":
        return not _NOTHING_DRAWN.fullmatch(copy.get("d", ""))
    return copy.tag not in ("g", "defs") or len(copy) > 0


def _target(place: Element, words: str) -> Element:
    """Return a place that is pointed at, with what is then shown."""
    x, y = (_rounded(place.get(axis, ""), 1) for axis in "xy")
    return Element("circle", {"cx": x, "cy": y, "r": "1", "data-shows": words})


def _clipped_together(elements: Sequence[Element]) -> list[Element]:
    """Return elements, of which neighbours with one clip path are in one group that has it."""
    grouped = []
    for clip, run in groupby(elements, key=lambda element: element.get("clip-path")):
        neighbours = list(run)
        if clip is None or len(neighbours) == 1:
            grouped += neighbours
            continue
        group = Element("g", {"clip-path": clip})
        for each in neighbours:
            del each.attrib["clip-path"]
            group.extend(each if each.tag == "g" and not each.attrib else [each])
        grouped.append(group)
    return grouped


def _styled_together(elements: Sequence[Element]) -> list[Element]:
    """Return elements, of which neighbours of one style are in one group that has it."""
    grouped = []
    for style, run in groupby(
        elements, key=lambda each: {key: each.attrib[key] for key in _STYLE & set(each.keys())}
    ):
        neighbours = list(run)
        if not style or len(neighbours) == 1:
            grouped += neighbours
            continue
        group = Element("g", dict(sorted(style.items())))
        for each in neighbours:
            for name in style:
                del each.attrib[name]
            group.extend(each if each.tag == "g" and not each.attrib else [each])
        grouped.append(group)
    return grouped


def _properties(element: Element) -> Iterator[tuple[str, str]]:
    for name, value in element.attrib.items():
        if name == "style":
            for declaration in value.split(";"):
                key, _, written = declaration.partition(":")
                yield key.strip(), written.strip()
        else:
            yield _local(name), value


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]


def _coloured(value: str) -> str:
    return f"var(--{NAMES[value]})" if value in NAMES else value


def _rounded(lengths: str, decimals: int) -> str:
    """Write lengths, in points, with so many decimals, and paths without needless spaces."""
    shorter = _NUMBER.sub(lambda match: f"{float(match[0]):.{decimals}f}".rstrip("0").rstrip("."), lengths)
    return re.sub(r"\s*([MLCQz])\s*", r"\1", " ".join(shorter.split()))


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
    png: bytes | None = None


def render(plot: Plot, *, png: bool = False) -> Rendered:
    """Draw a figure in both widths, and the wide one as a PNG too if that is wanted."""
    figure = plot.draw(WIDE)
    svg = to_svg(figure)
    figure.set_layout_engine("none")  # the layout is final; the PNG uses the same one
    return Rendered(plot, svg, to_svg(plot.draw(NARROW)), _to_png(figure) if png else None)


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
