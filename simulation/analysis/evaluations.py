"""What was predicted and how it was measured: this decides what may share a table or an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.vocabulary import Metric


@dataclass(frozen=True)
class Evaluation:
    """What was predicted and how it was measured; settings of two evaluations share no table and no axis."""

    metric: Metric
    dataset: str
    """Kind of the data set."""
    items: float | None
    """Size of its catalogue."""
    panel: str | None
    """Panel in which the comparison shows it."""
    population: str | None = None
    """Of which population it is; None for the comparison's own ratings."""


def distinguishing_words(evaluation: Evaluation, evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the words that distinguish an evaluation from the others of a comparison."""
    described = [
        (each.metric.label, each.dataset, f"{each.items or 0:.0f} items", each.panel or "others")
        for each in evaluations
    ]
    own = described[evaluations.index(evaluation)]
    return [
        word for word, values in zip(own, zip(*described, strict=True), strict=True) if len(set(values)) > 1
    ]
