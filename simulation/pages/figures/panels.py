"""What figures are made of: panels with axes and marks, in colours with a light and a dark form."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dprec.accounting import Trust
from simulation.analysis.gains import POPULARITY, SETS_ONLY
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric
from simulation.pages.figures.marks import Axis, Line, Mark, Spot

INK, MUTED, RULE, SURFACE = "#1b2530", "#5a6672", "#dde2e7", "#ffffff"

REFERENCE, FAINT = "#56616d", "#b4bdc6"
"""Of protocols without privacy, and of what is not named."""

SERIES = ("#0a62a9", "#c24a05", "#00785c", "#a62f7d")
"""Colours of the four trust models, and of whatever else a figure tells apart."""

_RAMP = ("#9ecae8", "#74b0db", "#4f95ca", "#337ab5", "#1f609a", "#134a7d", "#0b3560")
"""Colours of ordered things, from low to high."""

_DARK = dict(
    zip(
        (INK, MUTED, RULE, SURFACE, REFERENCE, FAINT, *SERIES, *_RAMP),
        (
            *("#e6eaee", "#a3aeb9", "#323b45", "#161b21", "#aab5c0", "#4d5863"),
            *("#68b3f2", "#ff9557", "#48c7a0", "#ee87c6"),
            *("#23486b", "#2c5f8d", "#3a79af", "#5594cb", "#77afe0", "#9dc9f0", "#c9e3fb"),
        ),
        strict=True,
    )
)

NAMES: Mapping[str, str] = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    SURFACE: "surface",
    REFERENCE: "look-reference",
    FAINT: "faint",
    **{colour: f"look-{place}" for place, colour in enumerate(SERIES)},
    **{colour: f"ramp-{place}" for place, colour in enumerate(_RAMP)},
}
"""The variable of each colour on a page."""


def page_colours(*, dark_mode: bool) -> dict[str, str]:
    """Return the variables of a page and their values."""
    return {name: _DARK[token] if dark_mode else token for token, name in NAMES.items()}


def darkened(colour: str) -> str:
    """Return the dark form of a colour."""
    return _DARK[colour]


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from low to high."""
    if count <= 1:
        return [_RAMP[-2]] * count
    return [_RAMP[round(place * (len(_RAMP) - 1) / (count - 1))] for place in range(count)]


@dataclass(frozen=True)
class Entry:
    """A line of a legend, or the name at the end of a line."""

    label: str
    colour: str
    marker: str = ""
    dashes: str | None = ""
    """None for a marker without a line."""
    at: float = 0.0
    """For a name at the end of a line: where it ends, on the vertical axis."""
    hollow: bool = False
    """Whether only the edge of its marker is drawn."""


@dataclass(frozen=True)
class Panel:
    """A chart, drawn as SVG in a page or by matplotlib in a notebook."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    """The later ones above the earlier ones."""
    ends: Sequence[Entry] = ()
    """Names at the right, at the height where their lines end."""
    legend: Sequence[Entry] = ()
    """Below the panel."""
    notes: Sequence[str] = ()
    """Below the title."""
    width: float = 430.0
    height: float = 200.0
    """Of the whole, and of what lies between the axes; 12 is the size of its letters."""


def chart(
    title: str, x: Axis, y: Axis, lines: Sequence[Line], more: Sequence[Mark] = (), *,
    legend: Sequence[Entry] = (), notes: Sequence[str] = (), width: float = 430.0, height: float = 200.0,
) -> Panel:  # fmt: skip
    """Return lines in a panel: their names in its legend, their words at their places."""
    named = [
        Entry(line.label, line.colour, line.marker, line.dashes if line.width else None)
        for line in lines
        if line.label
    ]
    places = ((np.ravel(line.x).tolist(), np.ravel(line.y).tolist(), line.words) for line in lines)
    spots = [Spot(*each) for line in places for each in zip(*line, strict=False)]
    return Panel(title, x, y, [*lines, *more, *spots], (), [*named, *legend], notes, width, height)


def empty(title: str, words: str, width: float) -> Panel:
    """Return a panel that says why there is nothing to draw."""
    return Panel(title, Axis(), Axis(), (), notes=(words,), width=width)


_LONGEST_LABEL = 24


def shortened(label: str, most: int = _LONGEST_LABEL) -> str:
    """Return a name of so many letters at most, without characters that cannot be drawn."""
    shown = printable(label)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def printable(label: str) -> str:
    """Return a name without characters that cannot be drawn."""
    return "".join(character if character.isprintable() else "·" for character in label)


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return ascending places, moved as little as necessary to lie at least a gap apart.

    Neighbours that touch form a block around the mean of their original places; blocks that touch merge. No
    block reaches below the lower limit, nor above the higher one if it fits.
    """

    def start(block: Sequence[float]) -> float:
        size = gap * (len(block) - 1)
        return max(min(statistics.fmean(block) - size / 2, high - size), low)

    blocks: list[list[float]] = []
    for place in places:
        blocks.append([place])
        while len(blocks) > 1 and start(blocks[-1]) < start(blocks[-2]) + gap * len(blocks[-2]):
            last = blocks.pop()
            blocks[-1] += last
    return [start(block) + gap * position for block in blocks for position in range(len(block))]


DASHES = ("", "6 3", "2 2", "7 2 1.5 2", "1 1.5", "10 3")
"""Of the lines of one colour, one after the other."""

_BASELINES = {"global-mean": "4 1.5 1 1.5", "item-average": "1.5 2", SETS_ONLY: "5 2", POPULARITY: "5 2"}
"""Dashes of the baselines that send something; nothing sent is solid."""

TRUST_LOOKS: Mapping[Trust, tuple[str, str]] = {
    "local": (SERIES[0], "o"),
    "shuffle": (SERIES[2], "D"),
    "secure-aggregation": (SERIES[3], "s"),
    "central": (SERIES[1], "^"),
}
"""The colour and the marker of each trust model."""


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn: the same in every figure of a page."""

    colour: str
    marker: str = ""
    dashes: str = ""


Looks = Mapping[str, Look]


def looks_of(results: Sequence[ProtocolResult]) -> dict[str, Look]:
    """Return the look of every protocol, in their order: by trust, apart from baselines and references."""

    def look(result: ProtocolResult) -> Look:
        if result.baseline:
            return Look(INK, dashes=_BASELINES.get(result.baseline, ""))
        return Look(REFERENCE, "o", DASHES[1]) if result.reference else Look(*TRUST_LOOKS[result.trust])

    return {result.name: look(result) for result in results}


def told_apart(names: Iterable[str], looks: Looks) -> dict[str, Look]:
    """Return the looks of the lines of one figure, in which those of one colour differ in their dashes."""
    apart: dict[str, Look] = {}
    for name in names:
        own = looks[name]
        before = sum(other.colour == own.colour for other in apart.values()) + (own.dashes == DASHES[1])
        apart[name] = Look(own.colour, own.marker, DASHES[before % len(DASHES)])
    return apart


def trust_legend(looks: Iterable[Look]) -> list[Entry]:
    """Return what the colours of some looks stand for."""
    held = {look.colour for look in looks}
    known = [(TRUST_IN_WORDS[trust], *look) for trust, look in TRUST_LOOKS.items()]
    known.append(("without privacy", REFERENCE, "o"))
    return [Entry(*each, None) for each in known if each[1] in held]


_MOST_NAMED = 6


def most_telling(lines: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """Return the names of the at most six lines that a figure names, the best first.

    Lines with a point that none beats come first: at its price or a lower one, no other is as accurate.
    """
    # A loss of 0.9999 is no lower price than one of 1.
    points = sorted(
        (float(f"{price:.3g}"), value, name) for name, own in lines.items() for price, value in own
    )
    unbeaten, best = set(), math.inf
    for _, value, name in points:
        if value < best:
            best = value
            unbeaten.add(name)
    ranked = sorted(lines, key=lambda name: (name not in unbeaten, min(value for _, value in lines[name])))
    return ranked[:_MOST_NAMED]


def nothing_sent_marks(
    x: Axis, y: Axis, across: ArrayLike, reached: ArrayLike, metric: Metric
) -> tuple[Line, Line]:
    """Draw what is reached with nothing sent as a line across a panel, and shade what is worse."""
    own, values = np.ravel(across), np.ravel(reached)
    places = np.concatenate([[x.low], own, [x.high]])
    line = np.concatenate([values[:1], values, values[-1:]])
    worst = y.high if metric.lower_is_better else y.low
    # Where the line lies beyond the worst end, nothing that is shown is worse.
    edge = np.minimum(line, worst) if metric.lower_is_better else np.maximum(line, worst)
    outline = [*places, x.high, x.low], [*edge, worst, worst]
    return Line(*outline, RULE, 0, fill=0.45), Line(places, line, INK, 1.2)
