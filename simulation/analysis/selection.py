"""Which settings represent a comparison: those that no other beats, and those at one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting


def frontier(settings: Sequence[Setting], measure: Measure) -> list[Setting]:
    """Return the settings that none beats in both accuracy and bytes, by ascending bytes."""
    known = [
        (setting.bytes_per_user, measure.sort_key(accuracy.mean), setting)
        for setting in settings
        if setting.bytes_per_user is not None and (accuracy := setting.average(measure.column))
    ]
    unbeaten: list[Setting] = []
    best = math.inf
    for _, key, setting in sorted(known, key=lambda entry: entry[:2]):
        if key < best:
            best = key
            unbeaten.append(setting)
    return unbeaten


def reference_budget(settings: Sequence[Setting]) -> float | None:
    """Return the budget that most protocols share; among several, the one nearest to 1."""
    budgets = [setting.budget for setting in settings if setting.budget is not None]
    if not budgets:
        return None
    return min(set(budgets), key=lambda budget: (-budgets.count(budget), abs(math.log(budget)), budget))


def at_reference(settings: Sequence[Setting]) -> list[Setting]:
    """Return one setting per protocol: at the reference budget, or at its nearest."""
    reference = reference_budget(settings)
    nearest: dict[str, Setting] = {}
    for setting in settings:
        other = nearest.get(setting.name)
        if other is None or _distance(setting, reference) < _distance(other, reference):
            nearest[setting.name] = setting
    return list(nearest.values())


def _distance(setting: Setting, reference: float | None) -> float:
    if setting.budget is None or reference is None:
        return 0.0
    return abs(math.log(setting.budget / reference))
