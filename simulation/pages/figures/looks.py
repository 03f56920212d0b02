"""How a protocol and a baseline are drawn: the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dprec.accounting import Trust
from simulation.analysis.gains import NOTHING_SENT, SETS_ONLY, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed
from simulation.pages.figures.labels import MARKERS, PointLabel
from simulation.pages.figures.panels import INK, REFERENCE, RULE, SERIES, SURFACE, shortened

DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (7, 2, 1.5, 2)), (0, (1, 1.5)))

BASELINE_LINES: Mapping[str, tuple[str, Any]] = {
    NOTHING_SENT: ("solid", "solid"),
    "global-mean": ("dash-dotted", (0, (4, 1.5, 1, 1.5))),
    "item-average": ("dotted", (0, (1.5, 1.5))),
    SETS_ONLY: ("dashed", (0, (5, 2))),
}
"""How each baseline's line is drawn: in words, and for matplotlib."""

_TRUST_LOOKS: Mapping[Trust, tuple[str, tuple[str, ...]]] = {
    "local": (SERIES[0], ("^", "v", "<", ">", "h")),
    "shuffle": (SERIES[2], ("D", "d")),
    "secure-aggregation": (SERIES[3], ("s", "P", "X")),
    "central": (SERIES[1], ("o", "p", "*")),
}
"""The colour, and the family of markers, of protocols by trust model."""

Looks = Mapping[str, "Look"]


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn: the same in every figure of a page."""

    colour: str
    marker: str
    dashes: Any
    """Line style."""
    private: bool
    """Whether it has a budget or a privacy loss; one without is a reference, or a baseline."""
    trust: Trust | None = None
    """Its trust model, if the colour stands for that."""

    def line(self, **changes: Any) -> dict[str, Any]:
        """Return how matplotlib draws its lines with markers, with what is to be otherwise."""
        drawn = {"color": self.colour, "marker": self.marker, "linestyle": self.dashes, "linewidth": 1.6}
        edges = {"markersize": 6, "markeredgecolor": SURFACE, "markeredgewidth": 0.6}
        return {**drawn, **edges, **changes}


def looks_of(results: Sequence[ProtocolResult], *, by_trust: bool = False) -> dict[str, Look]:
    """Return the look of every protocol, in their order; on request with one colour per trust model."""
    baselines = {result.name: BASELINE_LINES[result.baseline][1] for result in results if result.baseline}
    looks = {name: Look(INK, "none", dashes, False) for name, dashes in baselines.items()}
    protocols = [result for result in results if result.name not in baselines]
    private = dict.fromkeys(result.name for result in protocols if not result.reference)
    if by_trust:
        looks |= _by_trust({result.name: result.trust for result in protocols if result.name in private})
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
    references = dict.fromkeys(result.name for result in protocols if result.name not in looks)
    for place, name in enumerate(references):
        looks[name] = Look(REFERENCE, MARKERS[-1 - place % len(MARKERS)], DASHES[place % len(DASHES)], False)
    return looks


def _by_trust(trusts: Mapping[str, Trust]) -> dict[str, Look]:
    """Return looks by trust model; lines of one colour differ in dashes too."""
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
        yield "Colours and families of markers stand for trust models."


def marked(name: str, results: Sequence[ProtocolResult]) -> str:
    """Return a protocol's label, with a dagger where it is not proved that a budget is kept."""
    return shortened(name) + (" †" if any(result.falls_short for result in results) else "")


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
class BaselineLine:
    """A baseline as a line across."""

    name: str
    """Of the baseline."""
    value: float
    """Its accuracy."""
    look: Look


def baseline_lines(results: Sequence[ProtocolResult], metric: Metric, looks: Looks) -> list[BaselineLine]:
    """Return the lines of the baselines among results."""
    return [
        BaselineLine(result.baseline, mean, looks[result.name])
        for result in results
        if result.baseline and (mean := result.mean(metric.column)) is not None
    ]


def draw_baselines(
    ax: Axes, results: Sequence[ProtocolResult], metric: Metric, baselines: Sequence[BaselineLine]
) -> list[PointLabel]:
    """Draw baselines across a panel, shade what is worse than nothing sent, and return their ends."""
    right = ax.get_xlim()[1]
    base = nothing_sent(results)
    reached = base.mean(metric.column) if base else None
    if reached is not None:
        worst = ax.get_ylim()[1 if metric.lower_is_better else 0]
        ax.axhspan(*sorted((reached, worst)), facecolor=RULE, alpha=0.4, linewidth=0, zorder=0)
    for baseline in baselines:
        ax.axhline(baseline.value, color=baseline.look.colour, linestyle=baseline.look.dashes, linewidth=1.1)
    return [PointLabel(right, baseline.value, baseline.name, INK) for baseline in baselines]


def baseline_handles(baselines: Sequence[BaselineLine]) -> list[Line2D]:
    """Return what stands for baselines in a legend."""
    return [legend_handle(baseline.name, baseline.look) for baseline in baselines]


def baselines_in_words(results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Say how baselines are drawn, for a caption."""
    drawn = [
        f"{result.baseline} {BASELINE_LINES[result.baseline][0]}" for result in results if result.baseline
    ]
    if drawn:
        yield f"Lines across without markers are baselines: {listed(drawn)}."
    if nothing_sent(results):
        yield "Shaded: worse than with nothing sent."


def baselines_described(results: Sequence[ProtocolResult], metric: Metric) -> Iterator[str]:
    """Yield what is seen of each baseline, for readers who cannot see the figure."""
    for result in results:
        mean = result.mean(metric.column)
        if result.baseline and mean is not None:
            yield f"{result.baseline} {mean:.3f}, a baseline, as a horizontal line"
