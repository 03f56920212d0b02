"""Figures that are counted in some decisions, so that chance is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.attacks.base import Figure
from dprec.auditing import proportion_above, proportion_below

_FAILURE, _DEVIATIONS = 0.025, 1.96
"""How likely each end of an interval fails, and how many deviations that is."""


@dataclass(frozen=True)
class Estimate:
    """A figure, and its interval of 95 % confidence were all decisions independent."""

    measured: float
    low: float
    high: float

    @classmethod
    def of_share(cls, share: float, trials: int) -> Self:
        """Return an estimate of a probability [clopper1934]."""
        count = round(share * trials)
        low, high = (bound(count, trials, _FAILURE) for bound in (proportion_below, proportion_above))
        return cls(share, float(low), float(high))

    @classmethod
    def of_area(cls, auc: float, members: int, others: int) -> Self:
        """Return an estimate of an area under an ROC curve; it varies as that of scores that tell nothing."""
        half = _DEVIATIONS * float(np.sqrt((members + others + 1) / (12 * members * others)))
        return cls(auc, max(0.0, auc - half), min(1.0, auc + half))

    def figure(self, baseline: float, bound: float | None) -> Figure:
        """Return the figure; the bound, where it is exceeded by no more than chance explains."""
        by_chance = bound is not None and self.low <= bound
        value = min(self.measured, bound) if bound is not None and by_chance else self.measured
        return Figure(value, baseline, bound)

    def in_words(self, name: str) -> str:
        """Say what was measured, and how well."""
        return f"{name} was measured as {self.measured:.4f} ({self.low:.4f} to {self.high:.4f})"


def on_confidence(decisions: int) -> str:
    """Say what intervals rest on, and what becomes of figures above their bound."""
    return (
        f"In parentheses: 95 % confidence, were {decisions:,} decisions independent. What exceeds its bound "
        "by no more than that is given as the bound."
    )
