"""How protocols and baselines are drawn: a colour for each trust model, the same in figures and tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dprec.accounting import Trust
from simulation.analysis.gains import SETS_ONLY
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric
from simulation.pages.figures.marks import Axis, Line
from simulation.pages.figures.panels import INK, REFERENCE, RULE, SERIES, Entry

DASHES = ("", "6 3", "2 2", "7 2 1.5 2", "1 1.5", "10 3")
"""Of the lines of one colour, one after the other."""

_BASELINES = {"global-mean": "4 1.5 1 1.5", "item-average": "1.5 2", SETS_ONLY: "5 2"}
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
