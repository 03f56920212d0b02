"""What was predicted and how it is judged: what may share a table and an axis, and what may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.measures import Measure


@dataclass(frozen=True)
class Evaluation:
    """What was predicted and how it is judged; settings of two evaluations share no table and no axis.

    Parameters
    ----------
    measure : Measure
    dataset : str
        Kind of the data set.
    items : float or None
        Size of its catalogue.
    panel : str or None
        What the comparison sets apart.
    """

    measure: Measure
    dataset: str
    items: float | None
    panel: str | None


def distinguishing_words(evaluation: Evaluation, evaluations: Sequence[Evaluation]) -> list[str]:
    """Return what tells an evaluation from the others of a comparison, in words."""
    described = [
        (each.measure.label, each.dataset, f"{each.items or 0:.0f} items", each.panel or "others")
        for each in evaluations
    ]
    own = described[evaluations.index(evaluation)]
    return [
        word for word, values in zip(own, zip(*described, strict=True), strict=True) if len(set(values)) > 1
    ]
