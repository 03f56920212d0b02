"""The budget that every protocol of a comparison is given."""

from __future__ import annotations

from dataclasses import dataclass

from dprec.accounting import ComparableUnit


@dataclass(frozen=True)
class MatchedBudget:
    """A budget in a unit that all protocols share."""

    epsilon: float
    """Above 0."""
    unit: ComparableUnit = "rating"
    delta: float | None = None
    """Probability beyond which epsilon holds; per user only. A protocol whose draws about a user compose
    keeps to (epsilon, delta), and any other to the sum of its losses, which holds at every delta. By default,
    each protocol composes as it is configured.
    """
