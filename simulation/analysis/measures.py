"""The measures of accuracy: their names, which way is better, and how many decimals are worth showing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """A measure of accuracy.

    Parameters
    ----------
    column : str
        Its column in comparison.csv and its key in summary.json.
    label : str
    lower_is_better : bool
    digits : int
        Decimals worth showing.
    """

    column: str
    label: str
    lower_is_better: bool
    digits: int = 4

    @property
    def direction(self) -> str:
        """Which way is better, in words."""
        return "lower is better" if self.lower_is_better else "higher is better"

    @property
    def heading(self) -> str:
        """Its name and which way is better, as on an axis."""
        return f"{self.label} ({self.direction})"

    def better(self, one: float, other: float) -> bool:
        """Return whether one value is strictly better than another."""
        return one < other if self.lower_is_better else one > other

    def best(self, values: Sequence[float]) -> float:
        """Return the best of some values."""
        return min(values) if self.lower_is_better else max(values)


MEASURES = (
    Measure("rmse", "RMSE", True),
    Measure("relative_error", "Relative error", True),
    Measure("sign_accuracy", "Sign accuracy", False),
    Measure("mae", "MAE", True),
    Measure("f_score_at_k", "F-score", False),
    Measure("precision_at_k", "Precision", False),
    Measure("recall_at_k", "Recall", False),
)
"""The first of these that a protocol has is its main one."""

HEADLINE_MEASURES = tuple(
    measure for measure in MEASURES if measure.column not in ("precision_at_k", "recall_at_k")
)
"""The measures for a summary: the F-score stands for its precision and recall."""


def main_measure(accuracy: Mapping[str, Any]) -> Measure | None:
    """Return the main measure of a run; None if nothing was measured.

    Parameters
    ----------
    accuracy : mapping
        As in summary.json.
    """
    return next((measure for measure in MEASURES if accuracy.get(measure.column) is not None), None)
