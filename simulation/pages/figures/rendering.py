"""Renders a figure as SVG: for a page, in colours that follow its theme, and for a file of its own."""

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from simulation.pages.figures.marks import LETTER, Axis, Frame, marker
from simulation.pages.figures.panels import (
    INK,
    MUTED,
    NAMES,
    RULE,
    SURFACE,
    Entry,
    Panel,
    darkened,
    spread_out,
)

_WIDE, _SMALL = 0.57, 11.0
"""Width of a letter relative to its size, and the size of letters in legends and notes."""

_ROW, _SAMPLE = 15.5, 22.0
"""Height of a row of text, and width of the piece of line before a name."""


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
    draw: Callable[[], Sequence[Panel]]
    """Makes its panels, which a page shows beside each other if there is room."""
    full_width: bool = False
    """Whether it takes the whole width of a page."""


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


def render(plot: Plot, *, png: bool = False) -> Rendered:
    """Draw a figure."""
    panels = plot.draw()
    drawn = [_panel(panel) for panel in panels]
    image = None
    if png:
        # matplotlib takes longer to load than all figures take to be drawn.
        from simulation.pages.figures.drawing import to_png

        image = to_png(panels)
    return Rendered(plot, _file(drawn), "".join(_inline(each) for each in drawn), image)


class _Drawn(NamedTuple):
    """A panel as SVG."""

    width: float
    height: float
    content: str


_SMALL_PANEL = 400
"""Below this width a panel shares a row of a page with two others."""


def _inline(drawn: _Drawn) -> str:
    # Names of users' protocols stand in no such attribute.
    colours = re.compile('(fill|stroke)="(#[0-9a-f]{6})"')
    content = colours.sub(lambda match: f'{match[1]}="var(--{NAMES[match[2]]})"', drawn.content)
    small = ' class="small"' if drawn.width < _SMALL_PANEL else ""
    box = f"0 0 {drawn.width:g} {drawn.height:g}"
    return f'<svg viewBox="{box}"{small}>{content}</svg>'


_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_APART = 14.0


def _file(drawn: Sequence[_Drawn]) -> str:
    """Return panels beside each other as one file, in which places that can be pointed at have titles."""
    width = sum(each.width for each in drawn) + _APART * (len(drawn) - 1)
    height = max(each.height for each in drawn)
    content, left = "", 0.0
    for each in drawn:
        place = f'x="{left:g}" width="{each.width:g}" height="{each.height:g}"'
        content += f"<svg {place}>{each.content}</svg>"
        left += each.width + _APART
    titled = r'r="6" fill="transparent"><title>\1</title></circle>'
    content = re.sub(r'r="1" data-shows="([^"]*)"/>', titled, content)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{1.5 * width:g}" '
        f'height="{1.5 * height:g}" font-family="{_FONT}">'
        f"<style>@media (prefers-color-scheme: dark){{{_DARK}}}</style>"
        f'<rect width="100%" height="100%" fill="{SURFACE}"/>{content}</svg>\n'
    )


_DARK = "".join(
    f'[{what}="{colour}"]{{{what}:{darkened(colour)}}}' for colour in NAMES for what in ("fill", "stroke")
)
"""The dark form of every colour, for where a reader prefers it."""


def text_width(words: str, size: float = LETTER) -> float:
    """Return about how wide text is."""
    return _WIDE * size * len(words)


def _panel(panel: Panel) -> _Drawn:
    """Return a panel as SVG: title and notes, axes, marks, names at the right, axis label and legend."""
    notes = [
        line
        for note in (*panel.notes, panel.y.label)
        for paragraph in note.splitlines()
        for line in textwrap.wrap(paragraph, int(panel.width / (_WIDE * _SMALL)), break_on_hyphens=False)
    ]
    left = 8 + max((text_width(words, LETTER) for _, words in panel.y.ticks), default=0.0)
    right = 8 + max((text_width(end.label, _SMALL) + _SAMPLE + 8 for end in panel.ends), default=4.0)
    first = 13.0 if panel.title else -4.0
    top = first + _ROW * len(notes) + 13
    bare = not panel.marks
    frame = Frame(left, top, panel.width - left - right, 0 if bare else panel.height, panel.x, panel.y)
    parts = [_text(0, first, panel.title, INK, LETTER + 1, ' font-weight="600"')]
    parts += [_text(0, first + _ROW * (row + 1), words, MUTED) for row, words in enumerate(notes)]
    below = top
    if not bare:
        parts += [*_axes(frame), *_marks(panel, frame), *_ends(panel.ends, frame)]
        below += panel.height + (18 if panel.x.ticks else 4)
    if panel.x.label:
        parts.append(_text(left, below + 12, panel.x.label, MUTED))
        below += 18
    if panel.legend:
        rows, height = _legend(panel.legend, below + 8, panel.width)
        parts += rows
        below += height + 8
    return _Drawn(panel.width, math.ceil(below + 2), "".join(parts))


def _axes(frame: Frame) -> Iterator[str]:
    """Yield the grid, the ticks of both axes with their words, and the line below."""
    bottom, right = frame.top + frame.height, frame.left + frame.width
    grid, ticks = "", ""
    for at, words in _inside(frame.y):
        y = float(frame.down(at))
        grid += f"M{frame.left:.1f} {y:.1f}H{right:.1f}" if frame.y.grid else ""
        yield _text(frame.left - 6, y + 0.35 * _SMALL, words, MUTED, _SMALL, ' text-anchor="end"')
    for at, words in _inside(frame.x):
        x = float(frame.across(at))
        grid += f"M{x:.1f} {frame.top:.1f}V{bottom:.1f}" if frame.x.grid else ""
        ticks += f"M{x:.1f} {bottom:.1f}v3"
        yield _text(x, bottom + 15, words, MUTED, _SMALL, ' text-anchor="middle"')
    if grid:
        yield f'<path d="{grid}" stroke="{RULE}" stroke-width="1"/>'
    if frame.x.ticks:
        yield f'<path d="M{frame.left:.1f} {bottom:.1f}H{right:.1f}{ticks}" stroke="{MUTED}" fill="none"/>'


def _inside(axis: Axis) -> list[tuple[float, str]]:
    return [tick for tick in axis.ticks if axis.holds(tick[0])]


_BEYOND = 5.0
"""How far marks may reach over the axes."""


def _marks(panel: Panel, frame: Frame) -> Iterator[str]:
    """Yield the marks: in a frame of their own, which cuts them off, those that end at the edges."""
    left, top = frame.left - _BEYOND, frame.top - _BEYOND
    width, height = frame.width + 2 * _BEYOND, frame.height + 2 * _BEYOND
    box = f"{left:.1f} {top:.1f} {width:.1f} {height:.1f}"
    clipped = "".join(mark.svg(frame) for mark in panel.marks if mark.clipped)
    yield (
        f'<svg x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" viewBox="{box}" '
        f'stroke-linejoin="round">{clipped}</svg>'
    )
    yield from (mark.svg(frame) for mark in panel.marks if not mark.clipped)


def _ends(ends: Sequence[Entry], frame: Frame) -> Iterator[str]:
    """Yield the names of lines in the order in which these end, each as near to its end as it can be."""
    ordered = sorted((end for end in ends if frame.y.holds(end.at)), key=lambda end: -end.at)
    wanted = [float(frame.down(end.at)) for end in ordered]
    downs = spread_out(wanted, _ROW - 1, frame.top, frame.top + frame.height)
    for end, down in zip(ordered, downs, strict=True):
        yield _entry(end, frame.left + frame.width + 8, down)


def _entry(entry: Entry, x: float, y: float) -> str:
    """Return a name with a piece of its line before it."""
    sample = ""
    if entry.dashes is not None:
        dashed = f' stroke-dasharray="{entry.dashes}"' if entry.dashes else ""
        stroke = f'stroke="{entry.colour}" stroke-width="1.7"{dashed}'
        sample = f'<path d="M{x:.1f} {y:.1f}h{_SAMPLE - 4:g}" {stroke}/>'
    if entry.marker:
        shape = marker(entry.marker, x + (_SAMPLE - 4) / 2, y, 3.2)
        fill = f'"none" stroke="{entry.colour}"' if entry.hollow else f'"{entry.colour}"'
        sample += f'<path d="{shape}" fill={fill}/>'
    return sample + _text(x + _SAMPLE, y + 0.35 * _SMALL, entry.label, INK)


def _legend(entries: Sequence[Entry], top: float, width: float) -> tuple[list[str], float]:
    """Return the entries of a legend, in as many columns as its longest name allows, and its height."""
    longest = max(text_width(entry.label, _SMALL) for entry in entries) + _SAMPLE + 12
    columns = max(1, min(len(entries), int((width + 12) / longest)))
    rows = [
        _entry(entry, place % columns * longest, top + _ROW * (place // columns + 0.5))
        for place, entry in enumerate(entries)
    ]
    return rows, _ROW * math.ceil(len(entries) / columns)


def _text(x: float, y: float, words: str, colour: str, size: float = _SMALL, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}"{more}>{escape(words)}</text>'
