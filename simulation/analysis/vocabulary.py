"""What figures are called and how they are written: metrics, averages, numbers and shared words."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from dprec.accounting import ComparableUnit, Trust
from simulation.storage.column import LOWER, Column
from simulation.storage.columns import FIGURES, column
from simulation.storage.files import Row


class Spread(NamedTuple):
    """How far a figure scatters when only one thing is changed."""

    deviation: float
    """Standard deviation, of a sample: with count - 1 in the denominator."""
    means: int
    """Of how many, at least 2."""


@dataclass(frozen=True)
class Average:
    """Mean and spreads of one figure over the folds and seeds of a protocol at one epsilon."""

    figures: tuple[tuple[object, object, float], ...]
    """Seed, fold and figure of every run."""

    @cached_property
    def mean(self) -> float:
        """Over all runs."""
        return statistics.fmean(figure for *_, figure in self.figures)

    @cached_property
    def seeds(self) -> Spread | None:
        """Over seeds, of the means over folds; None for one only."""
        return _spread((seed, figure) for seed, _, figure in self.figures)

    @cached_property
    def folds(self) -> Spread | None:
        """Over folds, of the means over seeds; None for one only."""
        return _spread((fold, figure) for _, fold, figure in self.figures)

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds, or over folds if there is one seed; 0 for a single run."""
        spread = self.seeds or self.folds
        return spread.deviation if spread else 0.0


def average(rows: Sequence[Row], column: str) -> Average | None:
    """Average the numbers of a column; None if there is none."""
    entries = [(row.get("seed"), row.get("fold"), row.get(column)) for row in rows]
    numbers = [(seed, fold, float(value)) for seed, fold, value in entries if value not in (None, "")]
    finite = tuple(entry for entry in numbers if math.isfinite(entry[2]))
    return Average(finite) if finite else None


def _spread(figures: Iterable[tuple[object, float]]) -> Spread | None:
    means = [statistics.fmean(group) for group in grouped_by(figures).values()]
    return Spread(statistics.stdev(means), len(means)) if len(means) > 1 else None


_Key = TypeVar("_Key")
_Member = TypeVar("_Member")


def grouped_by(pairs: Iterable[tuple[_Key, _Member]]) -> dict[_Key, list[_Member]]:
    """Return what goes with each key, in the order in which it comes."""
    groups: dict[_Key, list[_Member]] = {}
    for key, member in pairs:
        groups.setdefault(key, []).append(member)
    return groups


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


_FAMILIES = {declared.name: place for place, declared in enumerate(FIGURES) if declared.better is not None}
"""Declared metrics, those of mappings by the names before their keys, the main one of a run first."""


def _metric(declared: Column[Any]) -> Metric:
    return Metric(declared.name, declared.title, declared.better == LOWER, declared.digits)


METRICS = tuple(_metric(declared) for declared in FIGURES if declared.better and declared.keys is None)
"""The first of these that a protocol has is its main one."""


def metrics_in(columns: Iterable[str]) -> list[Metric]:
    """Return the metrics among some columns: those of `METRICS`, then user-defined ones, then rankings."""
    declared_metrics = [declared for declared in map(column, columns) if declared.better]
    return [
        _metric(declared)
        for declared in sorted(declared_metrics, key=lambda declared: _FAMILIES[declared.family])
    ]


def headlines(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics for a summary: those that are shown everywhere, of rankings at the first cutoff."""
    chosen: dict[str, Metric] = {}
    for metric in metrics:
        declared = column(metric.column)
        if declared.where == "everywhere":
            chosen.setdefault(declared.family if declared.family.endswith("_at") else metric.column, metric)
    return list(chosen.values())


def main_metric(accuracy: Mapping[str, Any]) -> Metric | None:
    """Return the main metric of a run, from the accuracy in its summary; None if nothing was measured."""
    return next((metric for metric in METRICS if accuracy.get(metric.column) is not None), None)


DASH = "–"
"""Stands for a value that does not apply."""

THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k"))
"""From which numbers on a suffix is written; "k" from 10,000 on."""

SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
"""The units of bytes, with decimal prefixes."""


def number(value: float | None, digits: int) -> str:
    """Write a number with the given decimals, or with two significant digits if it is too small for them."""
    if value is None:
        return DASH
    return f"{value:,.{digits}f}" if value == 0 or abs(value) >= 0.5 * 10**-digits else f"{value:.2g}"


def loss(epsilon: float | None) -> str:
    """Write a privacy loss; in full if it is large."""
    if epsilon is None:
        return DASH
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"


def with_spread(average: Average | None, digits: int) -> str:
    """Write a mean with its standard deviations, over seeds and then over folds, unless all are 0."""
    if average is None:
        return DASH
    spreads = [spread for spread in (average.seeds, average.folds) if spread]
    varies = any(spread.deviation for spread in spreads)
    written = (f" ± {spread.deviation:.{digits}f}" for spread in spreads if varies)
    return number(average.mean, digits) + "".join(written)


def spread_in_words(averages: Iterable[Average]) -> str:
    """Say what every ± of `with_spread` is: how it is counted, and over what; empty over single runs."""
    spreads = [
        spread for average in averages for spread in (("seeds", average.seeds), ("folds", average.folds))
    ]
    counts = grouped_by((what, spread.means) for what, spread in spreads if spread)
    ranges = {what: " to ".join(map(str, sorted({min(means), max(means)}))) for what, means in counts.items()}
    over = ", then ".join(f"over {several} {what}" for what, several in ranges.items())
    return f"standard deviation {over}" if over else ""


def short(value: float) -> str:
    """Write a number in about five characters: 0.25, 12.5, 340, 12.3k, 3.4M."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    for limit, suffix in THOUSANDS:
        if abs(value) >= limit:
            divisor = 1e3 if suffix == "k" else limit
            return f"{value / divisor:.3g}{suffix}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(count: float) -> str:
    """Write a number of bytes: 340 B, 1.2 kB, 3.4 MB (decimal prefixes)."""
    for limit, unit in SIZES:
        if abs(count) >= limit:
            return f"{count / limit:.3g} {unit}" if count < 1000 * limit else f"{count / limit:,.0f} {unit}"
    return f"{count:.3g} B" if count < 100 else f"{count:.0f} B"


def server_sees(
    *,
    trust: Trust,
    hides_rated_items: bool,
    unlinked: bool,
    sends: bool,
    spends: bool,
    declared: bool = False,
    lists: bool = False,
) -> str:
    """Return what the server learns directly from devices that send anything, and spend privacy on values.

    What user-defined code sends, which declares its own loss, is not known. Where devices predict, all of
    them are sent what the server makes of it: the notes of a run say what.
    """
    if declared or not sends:
        return "what user-defined code sends" if sends else "nothing"
    if trust == "central":
        return "item sets" if lists else "true ratings"
    if trust == "secure-aggregation":
        return "noisy sums only" if hides_rated_items else "sums without noise"
    if not spends:
        return "rated items only"
    if hides_rated_items:
        return "noisy messages without senders" if trust == "shuffle" else "noise only"
    return "items and noise without senders" if unlinked else "rated items, noise"


def data_in_words(dataset: Mapping[str, Any], *, lists: bool, tested_on: str = "held-out") -> str:
    """Describe the population and its ratings, or its sets of items, by the keys of a summary's data set."""
    counts = [dataset.get(key) for key in ("users", "items", "train_ratings", "test_ratings")]
    if None in counts:
        return f"Data: {dataset.get('kind')}."
    users, items, train, test = (int(count) for count in counts if count is not None)
    people, tested = f"{users:,} people and their {train:,} ratings of {items:,} items", "ratings"
    if lists:
        people, tested = f"{users:,} people with {train:,} items in their sets, of {items:,}", "items"
    return f"{people} ({dataset['kind']}); accuracy is measured on {test:,} {tested_on} {tested}."


def unit_in_words(unit: ComparableUnit, *, lists: bool) -> str:
    """Return the name of a unit: where lists are predicted, an item stands for a rating."""
    return "item" if lists and unit == "rating" else unit


PROTECTED: dict[ComparableUnit, dict[bool, str]] = {
    "rating": {False: "the value of one rating", True: "one rating, given or not"},
    "user": {False: "all values of a user, the item set revealed", True: "a user's whole profile"},
}
"""What is protected, by the unit and whether the item set is hidden."""


def protected(unit: ComparableUnit, hides: bool, *, lists: bool) -> str:
    """Return what is protected in a unit, in words."""
    return "one item, in the set or not" if lists and unit == "rating" else PROTECTED[unit][hides]


def profiles_compared(epsilon: float | None, *, hides_rated_items: bool, link: str = ", ") -> str:
    """Say of a loss per user that it is for profiles of the same items, where these are revealed."""
    return "" if hides_rated_items or epsilon is None else f"{link}same items"


QUICK_IN_WORDS = (
    "only the first seed and fold and the middle ε of the comparison were run, so nothing here is averaged; "
    "without --quick, all are."
)
"""What a quick comparison is."""


def listed(words: Iterable[str]) -> str:
    """Join words with commas and a final "and"."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last
