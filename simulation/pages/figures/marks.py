"""Axes, and the marks between them: lines with markers, text, and places to point at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from simulation.analysis.vocabulary import SIZES, THOUSANDS, Metric, short, size

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


_STEPS = (
    *((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 4, 5, 7)),
    *((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)),
)
"""First digits of the ticks of a logarithmic axis, from many to few."""


def log_axis(
    values: Sequence[float], label: str = "", *,
    at_values: bool = False, in_bytes: bool = False, labels: int = 6, grid: bool = False,
) -> Axis:  # fmt: skip
    """Return a logarithmic axis with room for so many labels, at the values themselves if these are few."""
    written = size if in_bytes else short
    high = max(values)
    # Whatever a damaged table holds, the axis has ends.
    low = max(min(values), high * _SMALLEST)
    margin = max(1.15, (high / low) ** 0.06)
    low, high = low / margin, high * margin
    apart = math.log(high / low) / labels
    distinct = sorted({float(f"{value:.3g}") for value in values})
    ticks = distinct if at_values and _fit(distinct, apart) else _log_ticks(low, high, apart)
    if len(ticks) > 1 or ticks == distinct:
        return Axis(low, high, [(tick, written(tick)) for tick in ticks], label, log=True, grid=grid)
    return Axis(low, high, _plain_ticks(low, high, 4, in_bytes=in_bytes), label, log=True, grid=grid)


_SMALLEST = 1e-40
"""The lower end of a logarithmic axis relative to its upper one, at least."""


def _log_ticks(low: float, high: float, apart: float) -> list[float]:
    """Return as many round numbers as have room, whose logarithms are so far apart at least."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [[digit * 10.0**power for power in powers for digit in digits] for digits in _STEPS]
    candidates += [[10.0**power for power in powers if power % every == 0] for every in (2, 3, 4, 6)]
    inside = ([tick for tick in ticks if low <= tick <= high] for ticks in candidates)
    return next((ticks for ticks in inside if _fit(ticks, apart)), [])


def _fit(ticks: Sequence[float], apart: float) -> bool:
    return all(math.log(after / before) >= apart for before, after in pairwise(ticks))


def plain_axis(
    low: float, high: float, label: str = "", *,
    pad: float = 0.0, ticks: int = 5, percent: bool = False, in_bytes: bool = False, grid: bool = False,
) -> Axis:  # fmt: skip
    """Return a linear axis with few ticks, and space beyond both ends relative to the range."""
    beyond = pad * (high - low) if low < high else 0.05 * abs(low) or 0.5
    low, high = low - beyond, high + beyond
    shown = _plain_ticks(low, high, ticks, percent=percent, in_bytes=in_bytes)
    return Axis(low, high, shown, label, grid=grid)


def level_axis(levels: Sequence[float], label: str = "", *, grid: bool = False) -> Axis:
    """Return a linear axis for ratings, with a tick at each if they are few."""
    low, high = float(levels[0]), float(levels[-1])
    axis = plain_axis(low, high, label, pad=0.06, grid=grid)
    return axis if len(levels) > 6 else replace(axis, ticks=[(at, f"{at:g}") for at in levels])


def _plain_ticks(
    low: float, high: float, most: int, *, percent: bool = False, in_bytes: bool = False
) -> list[tuple[float, str]]:
    """Return round numbers, in one unit and with the decimals that none of them can do without."""
    coarse = (high - low) / most
    power = 10.0 ** math.floor(math.log10(coarse))
    step = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= coarse * 0.999)
    places = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    largest = max((abs(place) for place in places), default=0.0)
    if percent:
        unit, suffix = 0.01, " %"
    elif in_bytes:
        limit, name = next((each for each in SIZES if largest >= each[0]), (1.0, "B"))
        unit, suffix = limit, f" {name}"
    else:
        limit, suffix = next((each for each in THOUSANDS if largest >= each[0]), (1.0, ""))
        unit = 1e3 if suffix == "k" else limit
    scaled = step / unit
    decimals = next((d for d in range(9) if abs(round(scaled, d) - scaled) < 1e-6 * scaled), 9)
    always = percent or in_bytes
    return [
        (place, f"{place / unit + 0.0:,.{decimals}f}{suffix if always or abs(place) > step / 2 else ''}")
        for place in places
    ]


_FEW = 0.25
"""Largest share of what is drawn that may be off the scale."""

_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy above which their axis is logarithmic."""

_MARGIN = 0.07
"""Space beyond the values, relative to their range."""


def accuracy_axis(
    metric: Metric, values: Mapping[str, Sequence[float]], ends: Sequence[float] = ()
) -> tuple[Axis, tuple[str, ...]]:
    """Return the vertical axis of a panel, logarithmic if the accuracies lie far apart, and its notes.

    The worst are left off the scale if they are few and farther from all others than these from each other.
    """
    key = metric.sort_key
    turned = {name: [key(value) for value in each] for name, each in values.items() if len(each)}
    limit = _worst_shown(turned)
    shown = [value for each in turned.values() for value in each if value <= limit]
    off = {name: [value for value in values[name] if key(value) > limit] for name in turned}
    beyond = {name: each for name, each in off.items() if each}
    most = limit + _FEW * (limit - min(shown)) if beyond else float("inf")
    shown += [key(end) for end in ends if key(end) <= most]
    low, high = sorted((key(min(shown, default=0.0)), key(max(shown, default=1.0))))
    if metric.lower_is_better and 0 < _WIDE_RANGE * low < high:
        axis = log_axis([low, high], labels=8, grid=True)
    else:
        axis = plain_axis(low, high, pad=_MARGIN, grid=True)
    if not beyond:
        return axis, ()
    arrow = "↑" if metric.lower_is_better else "↓"
    words = []
    for name, each in beyond.items():
        least, worst = short(min(each)), short(max(each))
        # A name stays beside its values.
        span = f"{name} {least}" if least == worst else f"{name} {least} to {worst}"
        words.append(span.replace(" ", "\N{NO-BREAK SPACE}"))
    return axis, (f"{arrow} off the scale: {', '.join(words)}",)


def _worst_shown(values: Mapping[str, Sequence[float]]) -> float:
    """Return the highest value to show; a few beyond a gap wider than the range of all others are not."""
    ordered = sorted(value for each in values.values() for value in each)
    for low, high in pairwise(ordered):
        beyond = sum(max(each) > low for each in values.values())
        if high - low > low - ordered[0] and beyond <= _FEW * len(values):
            return low
    return ordered[-1] if ordered else 1.0
