"""Paired differences of results: from nothing sent, and from the most accurate protocol of the same budget.

Nothing sent is the strongest baseline that sends nothing: with what is public about the items, wherever any
protocol beside it reads that. A line that does not read it also stands beside the one that reads as little.

Every ± is half of a 95 % interval over users, who are drawn again with replacement, the same for both
protocols (`dprec.metrics`). An interval holds for one pair: of twenty rivals as good as the best, one is
expected to differ significantly by chance. The best is chosen by the same ratings, so that it looks a little
better than it is.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from simulation.analysis.protocol_results import ProtocolResult, by_accuracy, by_protocol
from simulation.analysis.vocabulary import Metric, grouped_by, listed, loss, number
from simulation.storage.files import Row

NOTHING_SENT = "nothing-sent"
"""The baseline that everything else is compared with: no bytes, no privacy loss."""

SETS_ONLY = "sets-only"
"""The baseline with no value sent, whose devices know everybody's item set."""

POPULARITY = "popularity"
"""The baseline of lists that are the same for everybody."""

AGAINST = "against"
"""Column of comparison.csv: the name of the baseline that a line is held against."""

PUBLIC = "public_items"
"""Column of comparison.csv: what a line reads that is public about the items."""

PLAIN = ("against_plain", "plain_gain", "plain_gain_low", "plain_gain_high")
"""Columns of comparison.csv of lines that read nothing public where others do: the baseline that does not
either, how much better than it in the main metric, and the interval over users.
"""

_ROUNDED = 1e-6
"""Tables hold the ends of intervals with fewer digits than figures."""

Pairs = dict[object, list[tuple[Row, Row]]]
"""Lines of two results on the same ratings, by fold."""


@dataclass(frozen=True)
class Gain:
    """How much better a result is than a baseline; what rounds to 0 at the digits shown does not count."""

    mean: float
    """In the metric's own unit; above 0 is better, whichever way the metric goes."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval over users; None where the table has none: nothing is significant then."""
    digits: int
    """Decimals that are shown."""
    base: str = "nothing sent"
    """What it is better than, in words."""

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
        direction = "better" if self.mean > 0 else "worse"
        if width is None:
            return f"{size} {direction}" if abs(self.mean) >= shown_from(self.digits) else "no difference"
        if not self.significant:
            return f"{number(self.mean, self.digits)} ± {number(width, self.digits)}, not significant"
        return f"{size} ± {number(width, self.digits)} {direction}"


def shown_from(digits: int) -> float:
    """Return the smallest number that is not 0 with so many decimals."""
    return 0.5 * 10.0**-digits


def strongest(results: Sequence[ProtocolResult], baseline: str) -> ProtocolResult | None:
    """Return the most accurate form of a baseline among results that predict the same; None without any."""
    forms = [form for form in results if form.baseline == baseline]
    metric = next((form.evaluation.metric for form in forms if form.evaluation), None)
    return next(iter(by_accuracy(forms, metric) if metric else forms), None)


def nothing_sent(results: Sequence[ProtocolResult]) -> ProtocolResult | None:
    """Return the strongest baseline that sends nothing, among results that predict the same."""
    return strongest(results, NOTHING_SENT)


def plain_nothing_sent(results: Sequence[ProtocolResult]) -> ProtocolResult | None:
    """Return the strongest baseline that neither sends nor knows anything; None where it is nothing sent."""
    plain = nothing_sent([result for result in results if not result.has(PUBLIC)])
    return None if plain is nothing_sent(results) else plain


def to_beat(results: Sequence[ProtocolResult]) -> ProtocolResult | None:
    """Return the baseline that makes a number of users worth it: popularity of lists, else nothing sent."""
    return strongest(results, POPULARITY) or nothing_sent(results)


def baseline_in_words(baseline: ProtocolResult) -> str:
    """Name a baseline: nothing sent, and whether it knows what is public about the items; or its name."""
    if baseline.baseline != NOTHING_SENT:
        return baseline.name
    if baseline.in_random_order:
        return "a random order"
    return f"nothing sent{', items known' if baseline.has(PUBLIC) else ''}"


def held_against(
    results: Sequence[ProtocolResult], metric: Metric
) -> list[tuple[ProtocolResult, Callable[[ProtocolResult], Gain | None]]]:
    """Return nothing sent and what returns how much better a result is, where it was run.

    Beside it stands the baseline that knows nothing of the items, for results that do not either.
    """
    plain = plain_nothing_sent(results)

    def gained(base: ProtocolResult, result: ProtocolResult) -> Gain | None:
        knows = base is plain and (result.baseline == NOTHING_SENT or result.has(PUBLIC))
        return None if result.name == base.name or knows else gain(result, base, metric)

    bases = nothing_sent(results), plain
    return [(base, partial(gained, base)) for base in bases if base is not None]


def gain_columns(metric: Metric) -> tuple[str, str, str]:
    """Return the columns of comparison.csv with a gain and the ends of its interval over users."""
    return f"{metric.column}_gain", f"{metric.column}_gain_low", f"{metric.column}_gain_high"


def gain(result: ProtocolResult, baseline: ProtocolResult, metric: Metric) -> Gain | None:
    """Return how much better a result is, with the interval over users if the table has it.

    Seeds of a fold are averaged before folds are. None if they share neither, or the metric does not apply.
    """
    sign = 1.0 if metric.lower_is_better else -1.0
    by_fold = grouped_by(
        (fold, sign * (baseline_accuracy - accuracy))
        for fold, pairs in paired_rows(result, baseline).items()
        for accuracy, baseline_accuracy in (
            (row.get(metric.column), base.get(metric.column)) for row, base in pairs
        )
        if isinstance(baseline_accuracy, float | int) and isinstance(accuracy, float | int)
    )
    if not by_fold:
        return None
    mean = statistics.fmean(statistics.fmean(differences) for differences in by_fold.values())
    columns, main = (AGAINST, *gain_columns(metric)[1:]), result.evaluation
    if result.rows[0].get(PLAIN[0]) == baseline.name and main and main.metric.column == metric.column:
        columns = (PLAIN[0], *PLAIN[2:])
    # The interval against this baseline is the same in all lines.
    cells = {tuple(row.get(column) for column in columns) for row in result.rows}
    against, *ends = cells.pop()
    low, high = (None, None) if cells or against != baseline.name else _interval(*ends)
    # An interval of other runs than these says nothing of their mean.
    if low is None or high is None or not low - _ROUNDED <= mean <= high + _ROUNDED:
        low = high = None
    return Gain(mean, low, high, gain_digits(metric), baseline_in_words(baseline))


def paired_rows(result: ProtocolResult, baseline: ProtocolResult) -> Pairs:
    """Return the lines of a result and of a baseline with the same fold, seed and ratings, by fold."""
    base = {_ratings(row): row for row in baseline.rows}
    shared = [row for row in result.rows if _ratings(row) in base]
    return grouped_by((row.get("fold"), (row, base[_ratings(row)])) for row in shared)


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
    """Return the best result of every budget, with the others of that budget; baselines do not compete.

    A budget for a whole user is another than one for a rating.
    """
    competing = [result for result in by_accuracy(results, metric) if result.baseline is None]
    by_budget = grouped_by(((result.budget, result.asked_per_user), result) for result in competing)
    return [(best, others) for best, *others in by_budget.values() if others]


def from_best(result: ProtocolResult) -> Gain | None:
    """Return how a result compares with the best of its budget; None for that, and without an interval."""
    row, evaluation = result.rows[0], result.evaluation
    behind, *ends = (row.get(column) for column in BEHIND)
    low, high = _interval(*ends)
    if evaluation is None or not isinstance(behind, float) or low is None or high is None:
        return None
    return Gain(-behind, -high, -low, gain_digits(evaluation.metric), str(row.get(BEST)))


def is_best(result: ProtocolResult) -> bool:
    """Return whether a result is the best of a budget at which others were compared with it."""
    return result.rows[0].get(BEST) == result.name


def not_significant(best: ProtocolResult, results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return the results of the same budget that do not differ significantly from the best."""
    same = [
        result for result in results if result.budget == best.budget and result.rows[0].get(BEST) == best.name
    ]
    return [result for result in same if (behind := from_best(result)) and not behind.significant]


def worse_than_nothing(accuracy: float, baseline: float, metric: Metric) -> str | None:
    """Say that something is less accurate than nothing sent; None if it is not, at the digits shown."""
    digits = gain_digits(metric)
    if metric.sort_key(accuracy) - metric.sort_key(baseline) < shown_from(digits):
        return None
    reached, base = number(accuracy, digits), number(baseline, digits)
    return f"Worse than sending nothing: {metric.label} {reached}, with nothing sent {base}."


_ERRORS_ALIKE = (
    "since its predictions no longer follow the reports: all are clipped or shrunk to the same "
    "values whatever devices send"
)
_LISTS_ALIKE = "since every list has the same hits in the same places, however much noise there is"


def same_figures(results: Sequence[ProtocolResult], metric: Metric) -> list[str]:
    """Say of every protocol whose accuracy is the same to all digits at several budgets why that is."""
    notes = []
    for name, of_protocol in by_protocol([result for result in results if result.budget is not None]).items():
        alike = grouped_by(
            ((result.population, *((_ratings(row), row.get(metric.column)) for row in result.rows)), result)
            for result in of_protocol
        )
        for same in alike.values():
            if len(same) < 2 or same[0].mean(metric.column) is None:
                continue
            why = _ERRORS_ALIKE if metric.lower_is_better else _LISTS_ALIKE
            for unit in ("user", "rating"):
                spent = {result.epsilon(unit) for result in same}
                if len(spent) == 1 and None not in spent:
                    why = f"since as much is spent, ε = {loss(spent.pop())} per {unit}"
            budgets = listed(f"{result.budget:g}" for result in same)
            same_at = f"{metric.label} is the same to all digits at ε = {budgets}"
            notes.append(f"{name}: {same_at}, {why}.")
    return notes
