"""Paired differences from the most accurate protocol of the same budget, and which of them mean something.

The difference is counted over users, who are drawn again with replacement, the same for both protocols
(`dprec.metrics`). An interval holds for one pair: of twenty rivals as good as the best, one is expected to
be told apart by chance. The best is chosen by the same ratings, so that it looks a little better than it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.analysis.gains import Gain
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric

BEST = "best_at_budget"
"""Column of comparison.csv: the most accurate protocol at the line's budget, by the main measure."""

BEHIND = ("behind_best", "behind_best_low", "behind_best_high")
"""Columns of comparison.csv: how much worse than that in the main measure, and the interval over users."""


def rivals(
    results: Sequence[ProtocolResult], metric: Metric
) -> list[tuple[ProtocolResult, list[ProtocolResult]]]:
    """Return the best setting of every budget, with the others of that budget; baselines do not compete.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    """
    by_budget: dict[float | None, list[tuple[float, str, ProtocolResult]]] = {}
    for result in results:
        mean = result.mean(metric.column)
        if result.baseline is None and mean is not None:
            by_budget.setdefault(result.budget, []).append((metric.sort_key(mean), result.name, result))
    ordered = [sorted(own, key=lambda each: each[:2]) for own in by_budget.values()]
    return [(best, [each for *_, each in others]) for (*_, best), *others in ordered if others]


def from_best(result: ProtocolResult) -> Gain | None:
    """Return how a setting compares with the best of its budget: a gain of at most 0.

    None for the best itself, and where the table has no interval over users.
    """
    row = result.rows[0]
    behind, low, high = (row.get(column) for column in BEHIND)
    if isinstance(behind, float) and isinstance(low, float) and isinstance(high, float):
        return Gain(-behind, -high, -low, "user", len(result.rows))
    return None


def is_best(result: ProtocolResult) -> bool:
    """Return whether a setting is the best of a budget at which others were compared with it."""
    return result.rows[0].get(BEST) == result.name


def not_significant(best: ProtocolResult, results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return the settings of the same budget whose difference from the best may be chance."""
    same = [each for each in results if each.budget == best.budget and each.rows[0].get(BEST) == best.name]
    return [each for each in same if (gain := from_best(each)) and not gain.significant]
