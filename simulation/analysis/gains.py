"""Paired differences of results: from nothing sent, and from the most accurate protocol of the same budget.

The difference from the best is counted over users, who are drawn again with replacement, the same for both
protocols (`dprec.metrics`). An interval holds for one pair: of twenty rivals as good as the best, one is
expected to differ significantly by chance. The best is chosen by the same ratings, so that it looks a little
better than it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

from dprec.metrics import CONFIDENCE
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric, number, plural
from simulation.storage.tables import Row

NOTHING_SENT = "nothing-sent"
"""The baseline that everything else is compared with: no bytes, no privacy loss."""

SETS_ONLY = "sets-only"
"""The baseline with no value sent, whose devices know everybody's item set."""

AGAINST = "against"
"""Column of comparison.csv: the name of the baseline that a line is held against."""

Pairs = dict[object, list[tuple[Row, Row]]]
"""Lines of two results on the same ratings, by fold."""


@dataclass(frozen=True)
class Gain:
    """How much better a result is than a baseline, on the same folds and seeds."""

    mean: float
    """In the metric's own unit; above 0 is better, whichever way the metric goes."""
    low: float | None
    high: float | None
    """Ends of the difference's 95 % interval; None for a single pair without an interval over users."""
    over: Literal["user", "fold", "seed"]
    """What the interval is counted over: a paired bootstrap over users, or Student's t over folds or seeds.
    """
    pairs: int
    """Number of pairs of runs, or of their averages by fold, that the mean is of."""

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def significantly_better(self) -> bool:
        """Whether it is better by more than its uncertainty, or simply better if there is a single pair."""
        return (self.mean if self.low is None else self.low) > 0

    @property
    def significant(self) -> bool:
        """Whether the interval excludes that there is no difference."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def interval(self) -> str:
        """What the ± stands for, in words; empty without an interval."""
        if self.half_width is None:
            return ""
        return f"95 % interval over {'users' if self.over == 'user' else plural(self.pairs, self.over)}"

    def written(self, digits: int) -> str:
        """Write it with its direction in words: 0.061 ± 0.004 better."""
        word = " better" if self.mean > 0 else " worse" if self.mean < 0 else ""
        width = "" if self.half_width is None else f" ± {number(self.half_width, digits)}"
        return number(abs(self.mean), digits) + width + word


def nothing_sent(results: Sequence[ProtocolResult]) -> ProtocolResult | None:
    """Return the baseline with nothing sent among results that predict the same; None if there is none."""
    return next((result for result in results if result.baseline == NOTHING_SENT), None)


def gain_columns(metric: Metric) -> tuple[str, str, str]:
    """Return the columns of comparison.csv with a gain and the ends of its interval over users."""
    return f"{metric.column}_gain", f"{metric.column}_gain_low", f"{metric.column}_gain_high"


def gain(result: ProtocolResult, baseline: ProtocolResult, metric: Metric) -> Gain | None:
    """Return how much better a result is than a baseline.

    The interval is the one over users, where comparison.csv has it. Otherwise it is over folds or seeds:
    folds share most of their train ratings but no test ratings, the seeds of one fold share both. With
    several folds, the seeds of each are averaged first and the interval is over folds; with a single
    fold, it is over seeds.

    Parameters
    ----------
    result, baseline : ProtocolResult
        Both predict the same ratings.

    Returns
    -------
    Gain or None
        None if they share no fold and seed, or the metric does not apply.
    """
    sign = 1.0 if metric.lower_is_better else -1.0
    by_fold: dict[object, list[float]] = {}
    for fold, pairs in paired_rows(result, baseline).items():
        for row, base in pairs:
            own, reached = row.get(metric.column), base.get(metric.column)
            if isinstance(reached, float | int) and isinstance(own, float | int):
                by_fold.setdefault(fold, []).append(sign * (reached - own))
    if not by_fold:
        return None
    several = len(by_fold) > 1
    pairs_of = (
        [statistics.fmean(own) for own in by_fold.values()] if several else next(iter(by_fold.values()))
    )
    mean, count = statistics.fmean(pairs_of), len(pairs_of)
    over_users = _over_users(result, baseline, metric)
    if over_users:
        return Gain(mean, *over_users, "user", count)
    over: Literal["fold", "seed"] = "fold" if several else "seed"
    half_width = _half_width(pairs_of)
    if half_width is None:
        return Gain(mean, None, None, over, count)
    return Gain(mean, mean - half_width, mean + half_width, over, count)


def paired_rows(result: ProtocolResult, baseline: ProtocolResult) -> Pairs:
    """Return the lines of a result and of a baseline with the same fold, seed and ratings, by fold."""
    base = {_ratings(row): row for row in baseline.rows}
    pairs: Pairs = {}
    for row in result.rows:
        if _ratings(row) in base:
            pairs.setdefault(row.get("fold"), []).append((row, base[_ratings(row)]))
    return pairs


def _over_users(
    result: ProtocolResult, baseline: ProtocolResult, metric: Metric
) -> tuple[float, float] | None:
    """Return the interval over users that the table holds against the same baseline."""
    row = result.rows[0]
    _, low, high = (row.get(column) for column in gain_columns(metric))
    if row.get(AGAINST) == baseline.name and isinstance(low, float) and isinstance(high, float):
        return low, high
    return None


def _ratings(row: Row) -> tuple[object, ...]:
    """Return what identifies the train and test ratings among the runs of one evaluation."""
    return tuple(row.get(column) for column in ("fold", "seed", "train_ratings", "test_ratings"))


def _half_width(differences: Sequence[float]) -> float | None:
    count = len(differences)
    if count < 2:
        return None
    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return quantile * statistics.stdev(differences) / math.sqrt(count)


def gain_digits(metric: Metric) -> int:
    """Return how many decimals of a difference are worth showing."""
    return metric.digits - 1


BEST = "best_at_budget"
"""Column of comparison.csv: the most accurate protocol at the line's budget, by the main metric."""

BEHIND = ("behind_best", "behind_best_low", "behind_best_high")
"""Columns of comparison.csv: how much worse than that in the main metric, and the interval over users."""


def rivals(
    results: Sequence[ProtocolResult], metric: Metric
) -> list[tuple[ProtocolResult, list[ProtocolResult]]]:
    """Return the best result of every budget, with the others of that budget; baselines do not compete."""
    by_budget: dict[float | None, list[tuple[float, str, ProtocolResult]]] = {}
    for result in results:
        mean = result.mean(metric.column)
        if result.baseline is None and mean is not None:
            by_budget.setdefault(result.budget, []).append((metric.sort_key(mean), result.name, result))
    ordered = [sorted(own, key=lambda each: each[:2]) for own in by_budget.values()]
    return [(best, [each for *_, each in others]) for (*_, best), *others in ordered if others]


def from_best(result: ProtocolResult) -> Gain | None:
    """Return how a result compares with the best of its budget: a gain of at most 0.

    None for the best itself, and where the table has no interval over users.
    """
    row = result.rows[0]
    behind, low, high = (row.get(column) for column in BEHIND)
    if isinstance(behind, float) and isinstance(low, float) and isinstance(high, float):
        return Gain(-behind, -high, -low, "user", len(result.rows))
    return None


def is_best(result: ProtocolResult) -> bool:
    """Return whether a result is the best of a budget at which others were compared with it."""
    return result.rows[0].get(BEST) == result.name


def not_significant(best: ProtocolResult, results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return the results of the same budget that do not differ significantly from the best."""
    same = [each for each in results if each.budget == best.budget and each.rows[0].get(BEST) == best.name]
    return [each for each in same if (behind := from_best(each)) and not behind.significant]
