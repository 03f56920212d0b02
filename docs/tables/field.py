"""The field's table: its systems beside ours, by accuracy, epsilon and bytes, and the figure of bytes.

What papers report stands in docs/papers.yaml under `field`, with its source. Bytes of published figures are
arithmetic: items times numbers of an item times 4 bytes, in each round in which a device is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from pydantic import TypeAdapter

from docs.tables import column_table
from docs.tables.leaderboard import PRICE
from docs.tables.results import Committed, papers, summary
from simulation.analysis.columns import TRUST, ResultColumn, text_column
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import DASH, number

HITS, GAIN, WHOLE = "sampled_ranking_hit_rate_at_10", "sampled_ranking_ndcg_at_10", "ranking_hit_rate_at_10"


@dataclass(frozen=True)
class Published:
    """What a paper reports of a system, one item of each user left out among 99 others."""

    hits: float
    """HR@10."""
    on: str
    """Data."""
    of: str
    """Where it is printed."""
    read: str
    """The paper, or the source that quotes it."""
    gain: float | None = None
    """NDCG@10."""
    numbers: tuple[int, int, int] | None = None
    """Items, numbers that are sent of each, and rounds, each way; None where the paper leaves one open."""

    @property
    def size(self) -> int | None:
        """Bytes each way, a number in 4 bytes."""
        return None if self.numbers is None else 4 * int(np.prod(self.numbers))


@cache
def published() -> dict[str, list[Published]]:
    """Return what papers report, by preset."""
    return TypeAdapter(dict[str, list[Published]]).validate_python(papers()["field"])


def field(name: str, budget: str) -> str:
    """Return the table: everything without a budget, and what has one at that budget, best first."""
    held = summary(name)
    shown = [result for result in held.results if result.budget in (None, float(budget))]
    ranked = sorted(shown, key=lambda result: -(result.mean(HITS) or 0.0))
    columns = [
        text_column("system", lambda result: f"`{result.name}`"),
        _figures("HR@10, NDCG@10 of 100", HITS, GAIN),
        _figures("HR@10, all items", WHOLE),
        text_column("as published", partial(_as_published, held)),
        text_column("ε, what it protects", _promised),
        TRUST,
        *PRICE,
        text_column("rounds", lambda result: number(result.mean("rounds"), 0)),
    ]
    return column_table(columns, ranked)


def _figures(title: str, *names: str) -> ResultColumn:
    return text_column(title, lambda result: ", ".join(number(result.mean(name), 3) for name in names))


def _as_published(held: Committed, result: ProtocolResult) -> str:
    told = published().get(held.preset(result), [])
    return "; ".join(
        f"{number(each.hits, 3)}{f', {number(each.gain, 3)}' if each.gain else ''} ({each.on}; {each.read})"
        for each in told
    )


def _promised(result: ProtocolResult) -> str:
    if result.status == "none":
        return "none"
    if result.budget is None:
        return "0, nothing sent" if result.status == "proved" else DASH
    return f"{result.budget:g}, a person"
