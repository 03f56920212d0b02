"""Which protocol to take, from the committed results."""

from __future__ import annotations

from docs.tables import table
from docs.tables.leaderboard import rounded
from docs.tables.results import summary
from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.decision import GridCell, decision_grid
from simulation.analysis.gains import (
    POPULARITY,
    SETS_ONLY,
    baseline_in_words,
    nothing_sent,
    shown_from,
    strongest,
)
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation
from simulation.analysis.vocabulary import DASH, PROTECTED, Metric, number


def grid(name: str, budget: str) -> str:
    """Return what to take at a budget: a row for each trust model, a column for what is protected.

    Where budgets are for users, nothing less than a user is protected.
    """
    held = summary(name)
    evaluation, results = next(iter(by_evaluation(held.results).items()))
    metric, base = evaluation.metric, strongest(results, POPULARITY) or nothing_sent(results)
    assert base is not None  # every comparison holds it
    # Who reveals an item set has to beat what that gives by itself.
    bases = {True: base, False: strongest(results, SETS_ONLY) or base}
    epsilons, models = [float(budget)], LEAST_TRUST_FIRST
    taken = {
        (PROTECTED[unit][cell.hides], cell.trust): _taken(cell, metric, bases[cell.hides])
        for unit in PROTECTED
        if held.made.unit in ("rating", unit)
        for cell in decision_grid(results, metric, unit, None, epsilons=epsilons, models=models)
    }
    protected = [words for each in PROTECTED.values() for words in each.values()]
    shown = [words for words in protected if (words, LEAST_TRUST_FIRST[0]) in taken]
    heads = [f"{rounded(metric).label} at ε = {budget}", *shown]
    rows = ([f"`{trust}`", *(taken[words, trust] for words in shown)] for trust in LEAST_TRUST_FIRST)
    said = [
        f"{baseline_in_words(each)} {number(each.mean(metric.column), rounded(metric).digits)}"
        for each in (base, bases[False])
    ]
    revealed = f"; where item sets are revealed, {said[1]}" if PROTECTED["rating"][False] in shown else ""
    return f"{table(heads, rows)}\n\nTo be beaten: {said[0]}{revealed}."


def _taken(cell: GridCell, metric: Metric, base: ProtocolResult) -> str:
    """Return what to take in a cell, with its accuracy, or why nothing there is taken."""
    digits, least = rounded(metric).digits, base.mean(metric.column)

    def ahead(result: ProtocolResult) -> float:
        """Return by how much a result is better than what is to be beaten."""
        reached = result.mean(metric.column)
        assert reached is not None  # grids hold what has the metric
        assert least is not None
        return metric.sort_key(least) - metric.sort_key(reached)

    best, less = cell.best, cell.with_less
    if less is not None and ahead(less) >= shown_from(digits):
        return f"as `{less.trust}`"
    if best is None:
        return DASH
    if cell.against is not None and cell.nothing_sent_wins:
        return cell.against.base
    taken = f"`{best.name}` {number(best.mean(metric.column), digits)}"
    if ahead(best) >= shown_from(digits):
        return taken
    return f"{taken}, {'below' if ahead(best) <= -shown_from(digits) else 'like'} {baseline_in_words(base)}"
