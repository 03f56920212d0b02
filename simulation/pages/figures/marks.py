"""Axes, and the marks between them: lines with markers, text, and places to point at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTER = 12.0
"""Size of letters in a panel."""

MARKERS = {
    "o": "m-{0} 0a{0} {0} 0 1 0 {1} 0a{0} {0} 0 1 0 -{1} 0z",
    "s": "m-{0} -{0}h{1}v{1}h-{1}z",
    "D": "m0 -{2}l{2} {2}l-{2} {2}l-{2} -{2}z",
    "^": "m0 -{2}l{2} {1}h-{3}z",
}
"""Shapes of markers around a place, by matplotlib's names: of the radius and its multiples."""


@dataclass(frozen=True)
class Axis:
    """An axis: its limits, its ticks, and what is written along it."""

    low: float = 0.0
    high: float = 1.0
    ticks: Sequence[tuple[float, str]] = ()
    label: str = ""
    log: bool = False
    grid: bool = False
    """Whether lines across the panel go with the ticks."""

    def places(self, values: ArrayLike) -> Floats:
        """Return where values lie, from 0 at the lower end to 1 at the upper one; NaN where they cannot."""
        every = np.asarray(values, dtype=np.float64)
        if not self.log:
            return (every - self.low) / (self.high - self.low)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(every / self.low) / np.log(self.high / self.low))

    def holds(self, value: float) -> bool:
        """Return whether a value lies between the limits."""
        return self.low <= value <= self.high


class Frame(NamedTuple):
    """Where the space between two axes lies in a figure."""

    left: float
    top: float
    width: float
    height: float
    x: Axis
    y: Axis

    def across(self, values: ArrayLike) -> Floats:
        """Return the distances of values on the horizontal axis from the left of the figure."""
        return self.left + self.width * self.x.places(values)

    def down(self, values: ArrayLike) -> Floats:
        """Return the distances of values on the vertical axis from the top of the figure."""
        return self.top + self.height * (1 - self.y.places(values))


class Mark:
    """Something drawn in a panel; nothing to see by default."""

    clipped: ClassVar[bool] = False
    """Whether it ends at the edges of the panel."""

    def svg(self, frame: Frame) -> str:
        """Return it as SVG."""
        return ""

    def draw(self, ax: Axes) -> None:
        """Draw it with matplotlib."""


def _path(across: Floats, down: Floats) -> str:
    """Return the path of straight lines through places, broken where a coordinate is not finite."""
    steps, pen = [], "M"
    for x, y in zip(across.tolist(), down.tolist(), strict=True):
        finite = math.isfinite(x) and math.isfinite(y)
        if finite:
            steps.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L" if finite else "M"
    return "".join(steps)


def marker(shape: str, x: float, y: float, radius: float) -> str:
    """Return the path of a marker; nothing where there is no place."""
    if not math.isfinite(x + y):
        return ""
    sizes = (f"{radius * times:.3g}" for times in (1, 2, 1.3, 2.6))
    return f"M{x:.1f} {y:.1f}{MARKERS[shape].format(*sizes)}"


def line_style(dashes: str) -> Any:
    """Return dashes as matplotlib writes them."""
    return (0, tuple(float(length) for length in dashes.split())) if dashes else "solid"


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line, with or without markers and what it encloses; it is broken where a coordinate is NaN."""

    x: ArrayLike
    y: ArrayLike
    colour: str
    width: float = 1.7
    """0 without one."""
    dashes: str = ""
    marker: str = ""
    radius: float = 3.2
    hollow: str = ""
    """The colour inside its markers, if that is another one."""
    opacity: float = 1.0
    fill: float = 0.0
    """Opacity of what the line encloses, which is not filled by default."""
    label: str = ""
    """What a chart calls it in its legend or at its end; empty for nothing."""
    words: Sequence[str] = ()
    """What its places show in a chart when they are pointed at."""
    clipped = True

    def svg(self, frame: Frame) -> str:
        """Return paths of what is enclosed, of the line and of its markers."""
        across, down = frame.across(self.x), frame.down(self.y)
        line, ink = _path(across, down), f'"{self.colour}"'
        faded = "" if self.opacity == 1 else f' opacity="{self.opacity:g}"'
        written = f'<path d="{line}z" fill={ink} opacity="{self.fill:.2g}"/>' if self.fill else ""
        if self.width and across.size > 1:
            dashed = f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
            stroke = f'stroke={ink} stroke-width="{self.width:g}"{dashed}{faded}'
            written += f'<path d="{line}" fill="none" {stroke}/>'
        if self.marker:
            places = zip(across.tolist(), down.tolist(), strict=True)
            shapes = "".join(marker(self.marker, x, y, self.radius) for x, y in places)
            edge = f' stroke={ink} stroke-width="1.3"' if self.hollow else ""
            written += f'<path d="{shapes}" fill="{self.hollow or self.colour}"{edge}{faded}/>'
        return written

    def draw(self, ax: Axes) -> None:  # noqa: D102
        x, y = np.asarray(self.x), np.asarray(self.y)
        if self.fill:
            ax.fill(x, y, color=self.colour, alpha=self.fill, linewidth=0)
        ax.plot(
            x, y, color=self.colour, linewidth=self.width, alpha=self.opacity,
            linestyle=line_style(self.dashes) if self.width else "none",
            marker=self.marker or "none", markersize=2 * self.radius,
            markerfacecolor=self.hollow or self.colour,
        )  # fmt: skip


def strokes(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    """Return upright strokes between two heights at every place, as one broken line."""
    ends = np.array([low, high, np.full(np.size(x), np.nan)])
    return np.repeat(np.asarray(x, dtype=np.float64), 3), ends.T.ravel()


def stairs(edges: ArrayLike, heights: ArrayLike) -> tuple[Floats, Floats]:
    """Return the outline of columns that stand on 0 between edges."""
    return np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])


@dataclass(frozen=True)
class Text(Mark):
    """Plain text at a place."""

    x: float
    y: float
    words: str
    colour: str
    anchor: str = "middle"
    """Which part of it is at the place: its start, middle or end."""
    shift: tuple[float, float] = (0.0, 0.0)
    """How far it is moved from the place, to the right and down."""
    size: float = LETTER
    bold: bool = False
    halo: str = ""
    """The colour around letters that may lie on lines."""

    def svg(self, frame: Frame) -> str:
        """Return it, centred on its height."""
        x, y = float(frame.across(self.x)) + self.shift[0], float(frame.down(self.y)) + self.shift[1]
        weight = ' font-weight="650"' if self.bold else ""
        if self.halo:
            weight += f' stroke="{self.halo}" stroke-width="3" paint-order="stroke"'
        return (
            f'<text x="{x:.1f}" y="{y + 0.35 * self.size:.1f}" font-size="{self.size:g}" '
            f'fill="{self.colour}" text-anchor="{self.anchor}"{weight}>{escape(self.words)}</text>'
        )

    def draw(self, ax: Axes) -> None:  # noqa: D102
        ax.annotate(
            self.words, (self.x, self.y), (self.shift[0], -self.shift[1]), textcoords="offset points",
            ha={"start": "left", "middle": "center", "end": "right"}[self.anchor], va="center",
            fontsize=0.75 * self.size, fontweight="bold" if self.bold else "normal", color=self.colour,
            parse_math=False,
        )  # fmt: skip


@dataclass(frozen=True)
class Spot(Mark):
    """A place that shows words when it is pointed at."""

    x: float
    y: float
    words: str

    def svg(self, frame: Frame) -> str:
        """Return a circle that is not seen, which the page's script finds; nothing beyond the axes."""
        if not (frame.x.holds(self.x) and frame.y.holds(self.y)):
            return ""
        x, y = float(frame.across(self.x)), float(frame.down(self.y))
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1" data-shows="{escape(self.words)}"/>'
