"""Which protocol to take, from the committed results."""

from __future__ import annotations

from docs.tables import table
from docs.tables.leaderboard import rounded
from docs.tables.results import summary
from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit
from simulation.analysis.decision import GridCell, decision_grid
from simulation.analysis.gains import (
    POPULARITY,
    baseline_in_words,
    nothing_sent,
    strongest,
)
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation
from simulation.analysis.vocabulary import DASH, Metric, number

_PROTECTED: dict[str, tuple[ComparableUnit, bool]] = {
    "one rating's value": ("rating", False),
    "one rating, given or not": ("rating", True),
    "all values of a user": ("user", False),
    "a whole user": ("user", True),
}
"""What is protected: the unit, and whether the item set is hidden."""


def grid(name: str, budget: str) -> str:
    """Return what to take at a budget: a row for each trust model, a column for what is protected.

    Where budgets are for users, nothing less than a user is protected.
    """
    held = summary(name)
    evaluation, results = next(iter(by_evaluation(held.results).items()))
    metric, baseline = evaluation.metric, nothing_sent(results)
    lists = strongest(results, POPULARITY)
    silent = lists or baseline
    assert silent is not None  # every comparison holds it
    cells = {
        (words, cell.trust): _taken(cell, metric, silent)
        for words, (unit, hides) in _PROTECTED.items()
        if held.made.unit in ("rating", unit)
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
        reached, base = result.mean(metric.column), silent.mean(metric.column)
        return reached is not None and base is not None and metric.better(reached, base)

    best, less = cell.best, cell.with_less
    if less is not None and beats(less):
        return f"as `{less.trust}`"
    if best is None:
        return DASH
    if cell.nothing_sent_wins or not beats(best):
        return baseline_in_words(silent)
    return f"`{best.name}` {number(best.mean(metric.column), rounded(metric).digits)}"
