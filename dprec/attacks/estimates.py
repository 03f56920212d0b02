"""Figures that are counted in some decisions, so that chance is in them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.attacks.bounds import Roc
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
    def of_true_positives(cls, roc: Roc, false_positives: float, members: int, others: int) -> Self:
        """Return an estimate of the true positives at a share of false positives [clopper1934].

        Each end rests on a threshold at which the share of false positives is surely below what is asked
        for, or above, and on the true positives there: two events, each of which fails half as often.
        """
        failure, counts = _FAILURE / 2, np.arange(others + 1)
        surely_below = counts[proportion_above(counts, others, failure) <= false_positives]
        surely_above = counts[proportion_below(counts, others, failure) >= false_positives]
        fewest = surely_below[-1] / others if surely_below.size else -1.0
        most = surely_above[0] / others if surely_above.size else 1.0
        least = 0 if fewest < 0 else round(float(roc.at(fewest)) * members)
        low = proportion_below(least, members, failure)
        high = proportion_above(round(float(roc.at(most)) * members), members, failure)
        return cls(float(roc.at(false_positives)), float(low), float(high))

    @classmethod
    def of_area(cls, auc: float, members: int, others: int) -> Self:
        """Return an estimate of an area under an ROC curve; it varies as that of scores that tell nothing."""
        half = _DEVIATIONS * float(np.sqrt((members + others + 1) / (12 * members * others)))
        return cls(auc, max(0.0, auc - half), min(1.0, auc + half))

    def in_words(self, name: str) -> str:
        """Say what was measured, and how well."""
        return f"{name} was measured as {self.measured:.4f} ({self.low:.4f} to {self.high:.4f})"


def on_confidence(decisions: int) -> str:
    """Say what intervals rest on."""
    return f"In parentheses: 95 % confidence, were {decisions:,} decisions independent."
