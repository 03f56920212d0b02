"""Paired differences of results: from nothing sent, and from the most accurate protocol of the same budget.

Every ± is half of a 95 % interval over users, who are drawn again with replacement, the same for both
protocols (`dprec.metrics`). An interval holds for one pair: of twenty rivals as good as the best, one is
expected to differ significantly by chance. The best is chosen by the same ratings, so that it looks a little
better than it is.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.analysis.vocabulary import Metric, listed, loss, number
from simulation.storage.files import Row

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
    """How much better a result is than a baseline, on the same folds and seeds.

    A difference counts where the interval over users, written with the digits that are shown, does not hold
    0: one of 0.0003 is none where three decimals are shown.
    """

    mean: float
    """In the metric's own unit; above 0 is better, whichever way the metric goes."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval over users; None where the table has none: nothing is significant then."""
    digits: int
    """Decimals that are shown."""

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def least(self) -> float:
        """How much better it is at least: the lower end, where there is an interval."""
        return self.mean if self.low is None else self.low

    @property
    def better(self) -> bool:
        """Whether it counts as better: significantly, or plainly where there is no interval."""
        return self.least >= shown_from(self.digits)

    @property
    def significantly_better(self) -> bool:
        """Whether it is better and the interval says so."""
        return self.low is not None and self.better

    @property
    def significant(self) -> bool:
        """Whether the interval does not hold 0."""
        return self.significantly_better or (self.high is not None and -self.high >= shown_from(self.digits))

    @property
    def interval(self) -> str:
        """What the ± stands for, in words; empty without an interval."""
        return "" if self.low is None else "95 % interval over users"

    @property
    def written(self) -> str:
        """The difference with its direction in words: 0.061 ± 0.004 better."""
        size, width = number(abs(self.mean), self.digits), self.half_width
        if width is None and abs(self.mean) < shown_from(self.digits):
            return "no difference"
        if width is None:
            return f"{size} {'better' if self.mean > 0 else 'worse'}"
        if not self.significant:
            return f"{number(self.mean, self.digits)} ± {number(width, self.digits)}, not significant"
        return f"{size} ± {number(width, self.digits)} {'better' if self.better else 'worse'}"


def shown_from(digits: int) -> float:
    """Return the smallest number that is not 0 with so many decimals."""
    return 0.5 * 10.0**-digits


def nothing_sent(results: Sequence[ProtocolResult]) -> ProtocolResult | None:
    """Return the baseline with nothing sent among results that predict the same; None if there is none."""
    return next((result for result in results if result.baseline == NOTHING_SENT), None)


def gain_columns(metric: Metric) -> tuple[str, str, str]:
    """Return the columns of comparison.csv with a gain and the ends of its interval over users."""
    return f"{metric.column}_gain", f"{metric.column}_gain_low", f"{metric.column}_gain_high"


def gain(result: ProtocolResult, baseline: ProtocolResult, metric: Metric) -> Gain | None:
    """Return how much better a result is than a baseline, with the interval over users if the table has it.

    The seeds of a fold are averaged before the folds are.

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
    of_folds = [statistics.fmean(own) for own in by_fold.values()]
    low, high = _over_users(result, baseline, metric)
    return Gain(statistics.fmean(of_folds), low, high, gain_digits(metric))


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
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval that the table holds against the same baseline, the same in all lines."""
    _, *ends = gain_columns(metric)
    held = {(row.get(AGAINST), *(row.get(column) for column in ends)) for row in result.rows}
    against, low, high = held.pop()
    return (None, None) if held or against != baseline.name else _interval(low, high)


def _interval(low: object, high: object) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval; None where the cells of a table hold none."""
    if isinstance(low, float) and isinstance(high, float) and -math.inf < low <= high < math.inf:
        return low, high
    return None, None


def _ratings(row: Row) -> tuple[object, ...]:
    """Return what identifies the train and test ratings among the runs of one evaluation."""
    return tuple(row.get(column) for column in ("fold", "seed", "train_ratings", "test_ratings"))


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
    row, evaluation = result.rows[0], result.evaluation
    behind, *ends = (row.get(column) for column in BEHIND)
    low, high = _interval(*ends)
    if evaluation is None or not isinstance(behind, float) or low is None or high is None:
        return None
    return Gain(-behind, -high, -low, gain_digits(evaluation.metric))


def is_best(result: ProtocolResult) -> bool:
    """Return whether a result is the best of a budget at which others were compared with it."""
    return result.rows[0].get(BEST) == result.name


def not_significant(best: ProtocolResult, results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return the results of the same budget that do not differ significantly from the best."""
    same = [each for each in results if each.budget == best.budget and each.rows[0].get(BEST) == best.name]
    return [each for each in same if (behind := from_best(each)) and not behind.significant]


def worse_than_nothing(accuracy: float, baseline: float, metric: Metric) -> str | None:
    """Say that something is less accurate than nothing sent; None if it is not, at the digits shown.

    Parameters
    ----------
    accuracy, baseline : float
        What it and what nothing sent reaches, on the same ratings.
    """
    digits = gain_digits(metric)
    if metric.sort_key(accuracy) - metric.sort_key(baseline) < shown_from(digits):
        return None
    reached, base = number(accuracy, digits), number(baseline, digits)
    return f"Worse than sending nothing: {metric.label} {reached}, with nothing sent {base}."


def same_figures(results: Sequence[ProtocolResult], metric: Metric) -> list[str]:
    """Say of every protocol whose accuracy is the same to all digits at several budgets why that is."""
    notes = []
    for name, own in by_protocol([each for each in results if each.budget is not None]).items():
        alike: dict[object, list[ProtocolResult]] = {}
        for each in own:
            figures = tuple((_ratings(row), row.get(metric.column)) for row in each.rows)
            alike.setdefault((each.population, figures), []).append(each)
        for same in alike.values():
            if len(same) > 1 and same[0].mean(metric.column) is not None:
                budgets = listed(f"{each.budget:g}" for each in same)
                same_at = f"{metric.label} is the same to all digits at ε = {budgets}"
                notes.append(f"{name}: {same_at}, {_why(same)}.")
    return notes


def _why(same: Sequence[ProtocolResult]) -> str:
    """Return why results are the same: they spend the same, or nothing follows from what they receive."""
    for unit in ("rating", "user"):
        spent = {each.epsilon(unit) for each in same}
        if len(spent) == 1 and None not in spent:
            return f"since as much is spent, ε = {loss(spent.pop())} per {unit}"
    return (
        "since its predictions no longer follow the reports: all are clipped or shrunk to the same values "
        "whatever devices send"
    )
