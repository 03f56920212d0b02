"""Which protocol to take, from the committed results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from docs.tables import column_table, table
from docs.tables.leaderboard import PRICE, gain_columns, rounded
from docs.tables.results import Committed, summary
from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit
from simulation.analysis.columns import ANY_TWO, accuracy_column, text_column
from simulation.analysis.decision import GridCell, decision_grid
from simulation.analysis.gains import (
    POPULARITY,
    SETS_ONLY,
    Gain,
    baseline_in_words,
    held_against,
    nothing_sent,
    plain_nothing_sent,
    strongest,
)
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation
from simulation.analysis.vocabulary import DASH, Metric, listed, number, plural
from simulation.storage.column import Column

_HIDES = {"revealed": (False,), "hidden": (True,), "either": (False, True)}


class Choice(NamedTuple):
    """What to take where the item set may be revealed or not, under a trust model, for an epsilon."""

    cell: GridCell
    take: ProtocolResult


_PROTECTED: dict[str, tuple[ComparableUnit, bool]] = {
    "one rating's value": ("rating", False),
    "one rating, given or not": ("rating", True),
    "all values of a user": ("user", False),
    "a whole user": ("user", True),
}
"""What is protected: the unit, and whether the item set is hidden."""


def grid(name: str, budget: str) -> str:
    """Return what to take at a budget: a row for each trust model, a column for what is protected."""
    evaluation, results = next(iter(by_evaluation(summary(name).results).items()))
    metric, baseline = evaluation.metric, nothing_sent(results)
    lists = strongest(results, POPULARITY)
    silent = lists or baseline
    assert silent is not None  # every comparison holds it
    cells = {
        (words, cell.trust): _taken(cell, metric, silent)
        for words, (unit, hides) in _PROTECTED.items()
        for cell in decision_grid(
            results, metric, unit, None, epsilons=[float(budget)], models=LEAST_TRUST_FIRST
        )
        if cell.hides == hides
    }
    shown = [words for words in _PROTECTED if any(of == words for of, _ in cells)]
    heads = [f"{rounded(metric).label} at ε = {budget}", *shown]
    rows = ([f"`{trust}`", *(cells[words, trust] for words in shown)] for trust in LEAST_TRUST_FIRST)
    said = f"{baseline_in_words(silent)} {number(silent.mean(metric.column), rounded(metric).digits)}"
    return f"{table(heads, rows)}\n\nTo be beaten: {said}."


def _taken(cell: GridCell, metric: Metric, silent: ProtocolResult) -> str:
    """Return what to take in a cell, with its accuracy, or why nothing there is taken."""

    def beats(result: ProtocolResult) -> bool:
        return metric.better(result.mean(metric.column) or 0.0, silent.mean(metric.column) or 0.0)

    best, less = cell.best, cell.with_less
    if less is not None and beats(less):
        return f"as `{less.trust}`"
    if best is None:
        return DASH
    if cell.nothing_sent_wins or not beats(best):
        return baseline_in_words(silent)
    return f"`{best.name}` {number(best.mean(metric.column), rounded(metric).digits)}"


def choices(name: str, item_set: str, *budgets: str) -> str:
    """Return what to take under each trust model at each budget, and what that has to be compared with.

    Of a summary, the first thing that it predicts counts; the item set is hidden, revealed or either.
    """
    held = summary(name)
    evaluation, results = next(iter(by_evaluation(held.results).items()))
    when: list[Column[GridCell]] = [
        text_column("item set", lambda cell: "hidden" if cell.hides else "revealed"),
        text_column("trust", lambda cell: cell.trust),
        text_column("ε", lambda cell: f"{cell.epsilon:g}"),
    ]
    taken: list[Column[ProtocolResult]] = [
        text_column("take", lambda each: baseline_in_words(each) if each.baseline else f"`{each.name}`"),
        accuracy_column(rounded(evaluation.metric)),
        *gain_columns(evaluation.metric, results)[:1],
        ANY_TWO,
        *PRICE,
    ]
    columns = [each.of(attrgetter("cell")) for each in when[item_set != "either" :]]
    columns += [each.of(attrgetter("take")) for each in taken]
    epsilons = [float(budget) for budget in budgets]
    lines = list(chosen(held, results, evaluation.metric, _HIDES[item_set], epsilons))
    notes = "; ".join(references(held, results, evaluation.metric, max(epsilons)))
    return f"{column_table(columns, lines)}\n\n{notes}."


def chosen(
    held: Committed, results: Sequence[ProtocolResult], metric: Metric, hides: Sequence[bool],
    epsilons: Sequence[float],
) -> Iterator[Choice]:  # fmt: skip
    """Yield what to take among results that predict the same, as `dprec advise` and pages decide.

    Where no protocol is better than the strongest baseline that sends nothing, that is taken.
    """
    baseline = nothing_sent(results)
    assert baseline is not None  # every comparison holds it
    for cell in decision_grid(results, metric, held.made.unit, None, epsilons=epsilons):
        if cell.best and cell.hides in hides:
            yield Choice(cell, baseline if cell.nothing_sent_wins else cell.best)


def references(
    held: Committed, results: Sequence[ProtocolResult], metric: Metric, epsilon: float
) -> Iterator[str]:
    """Yield what to compare with, published systems at a budget among it."""

    def reached(result: ProtocolResult) -> str:
        return f"{number(result.mean(metric.column), rounded(metric).digits)} (`{result.name}`)"

    baseline, plain = nothing_sent(results), plain_nothing_sent(results)
    assert baseline is not None
    yield f"For comparison: {baseline_in_words(baseline)} {reached(baseline)}"
    if plain:
        yield f"{baseline_in_words(plain)} {reached(plain)}"
    if sets := strongest(results, SETS_ONLY):
        yield f"item sets alone {reached(sets)}"
    if clear := [result for result in results if result.reference]:
        yield f"without privacy {reached(_best(clear, metric))}"
    published = [result for result in results if held.published(result) and result.budget == epsilon]
    if published:
        count = plural(len(published), "published preset")
        bases = [(baseline_in_words(base), gained) for base, gained in held_against(results, metric)]
        said = _better(published, dict(reversed(bases)))
        yield f"of {count} at ε = {epsilon:g}, {said}"


def _better(
    results: Sequence[ProtocolResult],
    bases: Mapping[str, Callable[[ProtocolResult], Gain | None]],
) -> str:
    """Say which results are significantly better than which baselines, and than which none is."""
    clauses, beaten = list[str](), set[str]()
    for each in results:
        better = {
            base: f"{base} ({against.written})"
            for base, held in bases.items()
            if (against := held(each)) and against.significantly_better
        }
        if better:
            clauses.append(f"`{each.name}` is significantly better than {' and than '.join(better.values())}")
        beaten |= better.keys()
    if unbeaten := [base for base in bases if base not in beaten]:
        clauses.append(f"none is significantly better than {' or than '.join(unbeaten)}")
    return listed(clauses)


def _best(results: Sequence[ProtocolResult], metric: Metric) -> ProtocolResult:
    return min(results, key=lambda each: metric.sort_key(each.mean(metric.column) or 0.0))
