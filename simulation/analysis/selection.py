"""Which settings represent a comparison: those that no other beats, and those at one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric


def frontier(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the settings that none beats in both accuracy and bytes, by ascending bytes."""
    known = [
        (result.bytes_per_user, metric.sort_key(accuracy.mean), result)
        for result in results
        if result.bytes_per_user is not None and (accuracy := result.average(metric.column))
    ]
    unbeaten: list[ProtocolResult] = []
    best = math.inf
    for _, key, result in sorted(known, key=lambda entry: entry[:2]):
        if key < best:
            best = key
            unbeaten.append(result)
    return unbeaten


def reference_budget(results: Sequence[ProtocolResult]) -> float | None:
    """Return the budget that most protocols share; among several, the one nearest to 1."""
    budgets = [result.budget for result in results if result.budget is not None]
    if not budgets:
        return None
    return min(set(budgets), key=lambda budget: (-budgets.count(budget), abs(math.log(budget)), budget))


def at_reference(results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return one setting per protocol: at the reference budget, or at its nearest."""
    reference = reference_budget(results)
    nearest: dict[str, ProtocolResult] = {}
    for result in results:
        other = nearest.get(result.name)
        if other is None or _distance(result, reference) < _distance(other, reference):
            nearest[result.name] = result
    return list(nearest.values())


def _distance(result: ProtocolResult, reference: float | None) -> float:
    if result.budget is None or reference is None:
        return 0.0
    return abs(math.log(result.budget / reference))
