"""The field's table: its systems beside ours, by accuracy, epsilon and bytes, and the figure of bytes.

What papers report stands in docs/papers.yaml under `field`, with its source. The bytes of published figures
are arithmetic: items times numbers of an item times 4 bytes, in each round in which a device is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter

from docs.tables import column_table
from docs.tables.leaderboard import both_ways
from docs.tables.promises import beyond
from docs.tables.results import Committed, papers, summary
from dprec.arrays import AnyInts
from dprec.protocols.base import TOLD
from simulation.analysis.columns import TRUST, ResultColumn, text_column
from simulation.analysis.protocol_results import NETWORK_BYTES, PAYLOAD_BYTES, ProtocolResult
from simulation.analysis.vocabulary import number, size
from simulation.pages.drawing import Panel, entry, legend, log_axis, point, titled
from simulation.pages.looks import REFERENCE, SERIES, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HITS, GAIN, WHOLE = "sampled_ranking_hit_rate_at_10", "sampled_ranking_ndcg_at_10", "ranking_hit_rate_at_10"

_DATA = "MovieLens 100K"


@dataclass(frozen=True)
class Published:
    """What a paper reports of a system, one item of each user left out among 99 others."""

    hits: float
    """HR@10."""
    on: str
    """Data."""
    read: str
    """The paper's table, or the secondary source that quotes it."""
    gain: float | None = None
    """NDCG@10."""
    numbers: tuple[int, int, int] | None = None
    """Items, numbers that are sent of each, and rounds, each way; None where the paper leaves one open."""

    @property
    def bytes(self) -> int:
        """Bytes each way; 0 where the paper leaves them open."""
        return 0 if self.numbers is None else 4 * math.prod(self.numbers)


@cache
def published() -> dict[str, list[Published]]:
    """Return what papers report, by the names of rows."""
    reported = {preset: system["reported"] for preset, system in papers()["field"].items()}
    return TypeAdapter(dict[str, list[Published]]).validate_python(reported)


def field(name: str, budget: str) -> str:
    """Return accuracy and promise: of everything without a budget, and what has one at that budget."""
    columns = [
        _SYSTEM,
        _figures("HR@10, NDCG@10 among 100", HITS, GAIN),
        text_column("as published", _reported),
        _figures("HR@10 among all", WHOLE),
        text_column("ε per person", _promised),
        TRUST,
    ]
    return column_table(columns, _ranked(name, budget))


def field_bytes(name: str, budget: str) -> str:
    """Return what the same rows cost a user, without those that send nothing or only know more."""
    ways = ("payload", PAYLOAD_BYTES), ("network", NETWORK_BYTES)
    rounds: ResultColumn = text_column("rounds", lambda result: number(result.mean("rounds"), 0))
    up = PAYLOAD_BYTES[0].name
    shown = [each for each in _ranked(name, budget) if each.baseline != TOLD and each.mean(up)]
    return column_table([_SYSTEM, *(both_ways(*each, "up / down", size) for each in ways), rounds], shown)


_SYSTEM: ResultColumn = text_column("system", lambda result: f"`{result.name}`")


def _ranked(name: str, budget: str) -> list[ProtocolResult]:
    """Return rows without a budget and those at one, best first."""
    shown = [result for result in summary(name).results if result.budget in (None, float(budget))]
    return sorted(shown, key=lambda result: -(result.mean(HITS) or 0.0))


def _figures(title: str, *names: str) -> ResultColumn:
    return text_column(title, lambda result: ", ".join(number(result.mean(name), 3) for name in names))


def _reported(result: ProtocolResult) -> str:
    """Return the first of what papers report; the data are named if they are not those of the table."""
    for told in published().get(result.name, [])[:1]:
        figures = ", ".join(number(each, 3) for each in (told.hits, told.gain) if each)
        return figures if told.on == _DATA else f"{figures} ({told.on})"
    return ""


def _promised(result: ProtocolResult) -> str:
    if result.budget is not None:
        return f"{result.budget:g}"
    return "0: nothing sent" if result.status == "proved" else "none"


def left(*presets: str) -> str:
    """Return where presets leave their papers, a line for each that does."""
    changes = {preset: "; ".join(beyond(preset)) for preset in presets}
    return "\n".join(f"- `{preset}`: {change}" for preset, change in changes.items() if change)


_GROUPS = {
    "ours, proved": Look(SERIES[0], "o"),
    "published, measured": Look(SERIES[1], "s"),
    "without privacy": Look(REFERENCE, "D"),
}
_PRINTED = "published, as printed"


def field_figure(name: str, budget: float) -> list[Panel]:
    """Return accuracy by bytes up, and by bytes down, of what was measured and of what papers report."""
    held = summary(name)
    shown = [
        result
        for result in held.results
        if result.budget in (None, budget) and result.baseline != TOLD and result.mean(HITS) is not None
    ]
    return [partial(_draw, results=shown, held=held, way=way) for way in range(2)]


def _draw(ax: Axes, results: Sequence[ProtocolResult], held: Committed, way: int) -> None:
    """Draw one direction; hollow is what papers print."""
    drawn = [
        (_group(held, result), float(sent), result)
        for result in results
        if (sent := result.mean(PAYLOAD_BYTES[way]))
    ]
    printed = [(name, told) for name, every in published().items() for told in every if told.bytes]
    ax.set_ylim(0, 0.8)
    log_axis(ax.xaxis, [*(sent for _, sent, _ in drawn), *(told.bytes for _, told in printed)], size)
    for group, sent, result in drawn:
        hits = result.mean(HITS) or 0.0
        words = [f"{result.name}: {hits:.3f}, {size(sent)}"]
        look = _GROUPS[group]
        point(ax, [sent], [hits], look.colour, words, marker=look.marker)
        _label(ax, _short(result.name), sent, hits, way)
    for name, told in printed:
        words = [f"{name} on {told.on}, {told.read}: {told.hits:.3f}, {size(told.bytes)}"]
        style = {"marker": "s", "markerfacecolor": "none"}
        point(ax, [told.bytes], [told.hits], SERIES[1], words, **style)
    titled(ax, f"HR@10 among 100, by bytes {'down' if way else 'up'}", x="payload per user", y="HR@10")
    handles = [entry(group, look, line=False) for group, look in _GROUPS.items()]
    hollow = entry(_PRINTED, Look(SERIES[1], "s"), line=False, markerfacecolor="none")
    legend(ax, [*handles, hollow])


_PLACES: dict[str, tuple[tuple[int, int, str], ...]] = {
    "colr": ((6, -3, "left"),),
    "ease": ((6, -9, "left"),),
    "fedmf": ((0, 6, "center"),),
    "fedncf": ((0, -13, "center"),),
    "fedrecon": ((-6, 1, "right"),),
    "pfedrec": ((0, -13, "center"),),
    "privirec": ((6, -3, "left"), (-6, -3, "right")),
}
"""Where names stand whose points have others near, in points from them: of bytes up, and of bytes down."""


def _label(ax: Axes, words: str, across: float, up: float, way: int) -> None:
    """Write the name of a point beside it."""
    places = _PLACES.get(words, ((6, 1, "left"),))
    right, above, side = places[min(way, len(places) - 1)]
    ax.annotate(words, (across, up), (right, above), textcoords="offset points", ha=side, fontsize=7)


def _short(name: str) -> str:
    """Return the name of a row as the figure has room for it."""
    return name.removeprefix("best-").removesuffix("-per-user").removesuffix("-published")


def _group(held: Committed, result: ProtocolResult) -> str:
    if held.preset(result) in published():
        return "published, measured"
    return "without privacy" if result.status == "none" else "ours, proved"


def least_bytes(counts: AnyInts, items: int) -> float:
    """Return the mean bytes that item sets of some sizes take at least, each set of a size as likely.

    The entropy of a set of k of n items is the logarithm of n over k, in bits.
    """
    from scipy.special import gammaln

    sizes = np.asarray(counts, dtype=np.float64)
    ways = gammaln(items + 1.0) - gammaln(sizes + 1) - gammaln(items - sizes + 1)
    return float(ways.mean() / np.log(2) / 8)
