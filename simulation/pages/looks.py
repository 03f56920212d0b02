"""How protocols and whatever else figures tell apart look: colours, light and dark, markers and dashes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dprec.accounting import Trust
from simulation.analysis.gains import POPULARITY, SETS_ONLY
from simulation.analysis.protocol_results import ProtocolResult

COLOURS: Mapping[str, tuple[str, str]] = {
    "ink": ("#1b2530", "#e6eaee"),
    "muted": ("#5a6672", "#a3aeb9"),
    "rule": ("#dde2e7", "#323b45"),
    "surface": ("#ffffff", "#161b21"),
    "look-reference": ("#56616d", "#aab5c0"),
    "faint": ("#b4bdc6", "#4d5863"),
    "look-0": ("#0a62a9", "#68b3f2"),
    "look-1": ("#c24a05", "#ff9557"),
    "look-2": ("#00785c", "#48c7a0"),
    "look-3": ("#a62f7d", "#ee87c6"),
    "ramp-0": ("#85b9dd", "#3a6690"),
    "ramp-1": ("#66a3d0", "#4276a8"),
    "ramp-2": ("#488cc2", "#4a87bf"),
    "ramp-3": ("#337ab5", "#5f9bd0"),
    "ramp-4": ("#1f609a", "#7eb3e2"),
    "ramp-5": ("#134a7d", "#9dc9f0"),
    "ramp-6": ("#0b3560", "#c9e3fb"),
}
"""The variables of a page, and their values in the light, in which figures are drawn, and in the dark."""


def _light(prefix: str) -> tuple[str, ...]:
    return tuple(light for name, (light, _) in COLOURS.items() if name.startswith(prefix))


INK, MUTED, RULE, SURFACE, REFERENCE, FAINT, *_ = _light("")

SERIES = _light("look-")[1:]
"""Colours of the four trust models, and of whatever else a figure tells apart."""

_RAMP = _light("ramp-")
"""Colours of ordered things, from low to high."""


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from low to high."""
    if count <= 1:
        return [_RAMP[-2]] * count
    return [_RAMP[round(place * (len(_RAMP) - 1) / (count - 1))] for place in range(count)]


def shortened(label: str, max_letters: int = 24) -> str:
    """Return a name of so many letters at most, without characters that cannot be drawn."""
    text = printable(label)
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"


def printable(label: str) -> str:
    """Return a name without characters that cannot be drawn."""
    return "".join(character if character.isprintable() else "·" for character in label)


Dashes = str | tuple[float, tuple[float, ...]]
"""The style of a line, as Matplotlib has it."""

SOLID, DASHED, DOTTED = "-", (0, (6, 3)), (0, (1, 2))

DASHES: tuple[Dashes, ...] = (SOLID, DASHED, (0, (2, 2)), (0, (7, 2, 1.5, 2)), (0, (1, 1.5)), (0, (10, 3)))
"""Of the lines of one colour, one after the other."""

_BASELINES: Mapping[str, Dashes] = {
    "global-mean": (0, (4, 1.5, 1, 1.5)),
    "item-average": (0, (1.5, 2)),
    SETS_ONLY: (0, (5, 2)),
    POPULARITY: (0, (5, 2)),
}
"""Dashes of the baselines that send something; nothing sent is solid."""


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn: the same in every figure of a page."""

    colour: str
    marker: str = ""
    dashes: Dashes = SOLID


Looks = Mapping[str, Look]

TRUST_LOOKS: Mapping[Trust, Look] = {
    "local": Look(SERIES[0], "o"),
    "shuffle": Look(SERIES[2], "D"),
    "secure-aggregation": Look(SERIES[3], "s"),
    "central": Look(SERIES[1], "^"),
}

_WITHOUT_PRIVACY = Look(REFERENCE, "o", DASHED)

LOOKS_IN_WORDS = {
    **{look.colour: (f"{trust} model", look) for trust, look in TRUST_LOOKS.items()},
    REFERENCE: ("without privacy", _WITHOUT_PRIVACY),
}
"""What the colours of protocols stand for."""


def looks_of(results: Sequence[ProtocolResult]) -> dict[str, Look]:
    """Return the look of every protocol, in their order: by trust, apart from baselines and references."""

    def look(result: ProtocolResult) -> Look:
        if result.baseline:
            return Look(INK, dashes=_BASELINES.get(result.baseline, SOLID))
        return _WITHOUT_PRIVACY if result.reference else TRUST_LOOKS[result.trust]

    return {result.name: look(result) for result in results}


def told_apart(names: Iterable[str], looks: Looks) -> dict[str, Look]:
    """Return the looks of the lines of one figure, in which those of one colour differ in their dashes."""
    apart: dict[str, Look] = {}
    for name in names:
        look = looks[name]
        before = sum(other.colour == look.colour for other in apart.values()) + (look.dashes == DASHED)
        apart[name] = replace(look, dashes=DASHES[before % len(DASHES)])
    return apart


MOST_NAMED = 6


def most_telling(lines: Mapping[str, Sequence[tuple[float, float]]], first: Sequence[str] = ()) -> list[str]:
    """Return the names of the at most six lines that a figure names: some ``first``, then the best.

    Of these, lines with a point that none beats come before others: at its price or a lower one, no other is
    as accurate.
    """
    # A loss of 0.9999 is no lower price than one of 1.
    points = sorted(
        (float(f"{price:.3g}"), value, name) for name, line in lines.items() for price, value in line
    )
    unbeaten, best = set(), math.inf
    for _, value, name in points:
        if value < best:
            best = value
            unbeaten.add(name)
    ranked = sorted(lines, key=lambda name: (name not in unbeaten, min(value for _, value in lines[name])))
    return list(dict.fromkeys([name for name in (*first, *ranked) if name in lines]))[:MOST_NAMED]
