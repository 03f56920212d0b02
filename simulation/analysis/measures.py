"""The metrics: their names, which way is better, and how many decimals are worth showing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """A metric."""

    column: str
    """Its column in comparison.csv and its key in summary.json."""
    label: str
    lower_is_better: bool
    digits: int = 4
    """Decimals worth showing."""

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

    def sort_key(self, value: float) -> float:
        """Return what values are sorted by, the best first."""
        return value if self.lower_is_better else -value

    def best(self, values: Sequence[float]) -> float:
        """Return the best of some values."""
        return min(values) if self.lower_is_better else max(values)


METRICS = (
    Metric("rmse", "RMSE", True),
    Metric("relative_error", "Relative error", True),
    Metric("sign_accuracy", "Sign accuracy", False),
    Metric("mae", "MAE", True),
    Metric("f_score_at_k", "F-score", False),
    Metric("precision_at_k", "Precision", False),
    Metric("recall_at_k", "Recall", False),
)
"""The first of these that a protocol has is its main one."""

_RANKING = re.compile(
    r"(?P<sampled>sampled_)?ranking_(?P<name>ndcg|hit_rate|mrr|recall|precision|coverage)_at_(?P<cutoff>[1-9]\d*)"
)
"""Columns of lists from the catalogue, as `simulation.storage.summary.RankingSummary` makes them."""

_OWN = re.compile(r"(?P<kind>errors|scores)_(?P<name>\w+)")
"""Columns of measures of one's own."""

_RANKING_LABELS = {
    "ndcg": "NDCG",
    "hit_rate": "Hit rate",
    "mrr": "MRR",
    "recall": "Recall",
    "precision": "Precision",
    "coverage": "Coverage",
}


def metrics_in(columns: Iterable[str]) -> list[Metric]:
    """Return the measures among some columns: those of `METRICS`, then one's own, then those of rankings.

    Parameters
    ----------
    columns : iterable of str
        Of comparison.csv, or keys of `simulation.storage.summary.Accuracy.metrics`; each at most once.
    """
    names = list(columns)
    rankings = [_of_ranking(match) for match in map(_RANKING.fullmatch, names) if match]
    own = [
        Metric(match[0], match["name"], lower_is_better=match["kind"] == "errors")
        for match in map(_OWN.fullmatch, names)
        if match
    ]
    return [*(metric for metric in METRICS if metric.column in names), *own, *rankings]


def headlines(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the measures for a summary.

    One's own are all there; the F-score stands for its precision and recall; NDCG and recall at the first
    cutoff stand for a ranking.
    """
    first = {sampled: _first_cutoff(metrics, sampled) for sampled in (False, True)}
    shown = {
        f"{'sampled_' if sampled else ''}ranking_{name}_at_{cutoff}"
        for sampled, cutoff in first.items()
        for name in ("ndcg", "recall")
    }
    return [
        metric
        for metric in metrics
        if (metric in METRICS and metric.column not in ("precision_at_k", "recall_at_k"))
        or metric.column in shown
        or _OWN.fullmatch(metric.column)
    ]


def _first_cutoff(metrics: Sequence[Metric], sampled: bool) -> str | None:
    matches = (_RANKING.fullmatch(metric.column) for metric in metrics)
    return next((match["cutoff"] for match in matches if match and bool(match["sampled"]) is sampled), None)


def _of_ranking(match: re.Match[str]) -> Metric:
    source = "sampled" if match["sampled"] else "catalogue"
    label = f"{_RANKING_LABELS[match['name']]} at {match['cutoff']}, {source}"
    return Metric(match[0], label, lower_is_better=False)


def main_metric(accuracy: Mapping[str, Any]) -> Metric | None:
    """Return the main measure of a run; None if nothing was measured.

    Parameters
    ----------
    accuracy : mapping
        As in summary.json.
    """
    return next((metric for metric in METRICS if accuracy.get(metric.column) is not None), None)
