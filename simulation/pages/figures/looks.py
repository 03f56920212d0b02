"""How a protocol is drawn: the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from simulation.analysis.settings import Setting
from simulation.pages.figures.colours import INK, REFERENCE, SERIES
from simulation.pages.figures.labels import MARKERS
from simulation.pages.figures.panels import shortened

DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (7, 2, 1.5, 2)), (0, (1, 1.5)))

FLOOR_LINES: Mapping[str, tuple[str, Any]] = {
    "nothing-sent": ("solid", "solid"),
    "global-mean": ("dash-dotted", (0, (4, 1.5, 1, 1.5))),
    "item-average": ("dotted", (0, (1.5, 1.5))),
    "sets-only": ("dashed", (0, (5, 2))),
}
"""How each floor's line is drawn: in words, and for matplotlib."""

Looks = Mapping[str, "Look"]


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn: the same in every figure of a page.

    Parameters
    ----------
    colour, marker : str
    dashes : tuple or str
        Line style.
    private : bool
        Whether it has a budget or a privacy loss; one without is a reference, or a floor.
    """

    colour: str
    marker: str
    dashes: Any
    private: bool


def looks_of(settings: Sequence[Setting]) -> dict[str, Look]:
    """Return the look of every protocol, in their order."""
    floors = {setting.name: FLOOR_LINES[setting.floor][1] for setting in settings if setting.floor}
    looks = {name: Look(INK, "none", dashes, False) for name, dashes in floors.items()}
    protocols = [setting for setting in settings if setting.name not in floors]
    private = dict.fromkeys(setting.name for setting in protocols if not setting.reference)
    looks |= {
        name: Look(
            SERIES[place % len(SERIES)],
            MARKERS[place % len(MARKERS)],
            "solid" if place < len(SERIES) else DASHES[0],
            True,
        )
        for place, name in enumerate(private)
    }
    references = dict.fromkeys(setting.name for setting in protocols if setting.name not in looks)
    for place, name in enumerate(references):
        looks[name] = Look(REFERENCE, MARKERS[-1 - place % len(MARKERS)], DASHES[place % len(DASHES)], False)
    return looks


def marked(name: str, settings: Sequence[Setting]) -> str:
    """Return a protocol's label, with a dagger where it is not proved that a budget is kept."""
    return shortened(name) + (" †" if any(setting.falls_short for setting in settings) else "")


def legend_handle(label: str, look: Look, *, line: bool = True) -> Line2D:
    """Return the legend entry of a protocol."""
    return Line2D(
        [],
        [],
        color=look.colour,
        marker=look.marker if look.private or not line else "none",
        linestyle=look.dashes if line else "none",
        markersize=5.5,
        label=label,
    )
