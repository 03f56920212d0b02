"""How a protocol and a floor are drawn: the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dprec.privacy.guarantee import Trust
from simulation.analysis.gains import NOTHING_SENT, SETS_ONLY, nothing_sent
from simulation.analysis.settings import Setting
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Measure, listed
from simulation.pages.figures.labels import MARKERS, PointLabel
from simulation.pages.figures.panels import INK, REFERENCE, RULE, SERIES, SURFACE, shortened

DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (7, 2, 1.5, 2)), (0, (1, 1.5)))

FLOOR_LINES: Mapping[str, tuple[str, Any]] = {
    NOTHING_SENT: ("solid", "solid"),
    "global-mean": ("dash-dotted", (0, (4, 1.5, 1, 1.5))),
    "item-average": ("dotted", (0, (1.5, 1.5))),
    SETS_ONLY: ("dashed", (0, (5, 2))),
}
"""How each floor's line is drawn: in words, and for matplotlib."""

_TRUST_LOOKS: Mapping[Trust, tuple[str, tuple[str, ...]]] = {
    "nobody": (SERIES[0], ("^", "v", "<", ">", "h")),
    "shuffler": (SERIES[2], ("D", "d")),
    "sum": (SERIES[3], ("s", "P", "X")),
    "server": (SERIES[1], ("o", "p", "*")),
}
"""The colour, and the family of markers, of protocols by whom their users trust."""

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
    trust : {"server", "sum", "shuffler", "nobody"}, optional
        Whom its users trust, if the colour says so.
    """

    colour: str
    marker: str
    dashes: Any
    private: bool
    trust: Trust | None = None

    def line(self, **changes: Any) -> dict[str, Any]:
        """Return how matplotlib draws its lines with markers, with what is to be otherwise."""
        drawn = {"color": self.colour, "marker": self.marker, "linestyle": self.dashes, "linewidth": 1.6}
        edges = {"markersize": 6, "markeredgecolor": SURFACE, "markeredgewidth": 0.6}
        return {**drawn, **edges, **changes}


def looks_of(settings: Sequence[Setting], *, by_trust: bool = False) -> dict[str, Look]:
    """Return the look of every protocol, in their order; with one colour per trust if that is wanted."""
    floors = {setting.name: FLOOR_LINES[setting.floor][1] for setting in settings if setting.floor}
    looks = {name: Look(INK, "none", dashes, False) for name, dashes in floors.items()}
    protocols = [setting for setting in settings if setting.name not in floors]
    private = dict.fromkeys(setting.name for setting in protocols if not setting.reference)
    if by_trust:
        looks |= _by_trust({setting.name: setting.trust for setting in protocols if setting.name in private})
    else:
        looks |= {
            name: Look(
                SERIES[place % len(SERIES)],
                # A colour comes back with another marker.
                MARKERS[(place + place // len(SERIES)) % len(MARKERS)],
                "solid",
                True,
            )
            for place, name in enumerate(private)
        }
    references = dict.fromkeys(setting.name for setting in protocols if setting.name not in looks)
    for place, name in enumerate(references):
        looks[name] = Look(REFERENCE, MARKERS[-1 - place % len(MARKERS)], DASHES[place % len(DASHES)], False)
    return looks


def _by_trust(trusts: Mapping[str, Trust]) -> dict[str, Look]:
    """Return looks by whom users trust; lines of one colour differ in dashes too."""
    looks: dict[str, Look] = {}
    for trust, (colour, markers) in _TRUST_LOOKS.items():
        names = [name for name, whom in trusts.items() if whom == trust]
        for place, name in enumerate(names):
            dashes = ("solid", *DASHES)[place % (len(DASHES) + 1)]
            looks[name] = Look(colour, markers[place % len(markers)], dashes, True, trust)
    return {name: looks[name] for name in trusts}


def trust_handles(looks: Looks) -> list[Line2D]:
    """Return what a legend says of the colours; nothing if they do not stand for trust."""
    held = {look.trust for look in looks.values()}
    return [
        Line2D([], [], color=colour, marker=markers[0], linestyle="none", label=TRUST_IN_WORDS[trust])
        for trust, (colour, markers) in _TRUST_LOOKS.items()
        if trust in held
    ]


def trust_in_words(looks: Looks) -> Iterator[str]:
    """Say what the colours stand for, for a caption, if that is trust."""
    if trust_handles(looks):
        yield "Colours and families of markers say whom users trust."


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


@dataclass(frozen=True)
class FloorLine:
    """A floor as a line across.

    Parameters
    ----------
    name : str
        Of the floor.
    value : float
        Its accuracy.
    look : Look
    """

    name: str
    value: float
    look: Look


def floor_lines(settings: Sequence[Setting], measure: Measure, looks: Looks) -> list[FloorLine]:
    """Return the lines of the floors among settings."""
    return [
        FloorLine(setting.floor, mean, looks[setting.name])
        for setting in settings
        if setting.floor and (mean := setting.mean(measure.column)) is not None
    ]


def draw_floors(
    ax: Axes, settings: Sequence[Setting], measure: Measure, floors: Sequence[FloorLine]
) -> list[PointLabel]:
    """Draw floors across a panel, shade what is worse than nothing sent, and return their ends."""
    right = ax.get_xlim()[1]
    base = nothing_sent(settings)
    reached = base.mean(measure.column) if base else None
    if reached is not None:
        worst = ax.get_ylim()[1 if measure.lower_is_better else 0]
        ax.axhspan(*sorted((reached, worst)), facecolor=RULE, alpha=0.4, linewidth=0, zorder=0)
    for floor in floors:
        ax.axhline(floor.value, color=floor.look.colour, linestyle=floor.look.dashes, linewidth=1.1)
    return [PointLabel(right, floor.value, floor.name, INK) for floor in floors]


def floor_handles(floors: Sequence[FloorLine]) -> list[Line2D]:
    """Return what stands for floors in a legend."""
    return [legend_handle(floor.name, floor.look) for floor in floors]


def floors_in_words(settings: Sequence[Setting]) -> Iterator[str]:
    """Say how floors are drawn, for a caption."""
    drawn = [f"{setting.floor} {FLOOR_LINES[setting.floor][0]}" for setting in settings if setting.floor]
    if drawn:
        yield f"Lines across without markers are floors: {listed(drawn)}."
    if nothing_sent(settings):
        yield "Shaded: worse than with nothing sent."


def floors_described(settings: Sequence[Setting], measure: Measure) -> Iterator[str]:
    """Yield what is seen of each floor, for readers who cannot see the figure."""
    for setting in settings:
        mean = setting.mean(measure.column)
        if setting.floor and mean is not None:
            yield f"{setting.floor} {mean:.3f}, a floor, as a horizontal line"
