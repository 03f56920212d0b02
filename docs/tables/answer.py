"""Which protocol to take, from the committed results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from docs.tables import column_table
from docs.tables.leaderboard import PRICE, gain_column, gained, rounded
from docs.tables.results import Committed, summary
from dprec.accounting import LEAST_TRUST_FIRST, Trust
from simulation.analysis.columns import ANY_TWO, TableColumn, accuracy_column, text_column
from simulation.analysis.gains import SETS_ONLY, gain, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, number, plural

_HIDES = {"revealed": (False,), "hidden": (True,), "either": (False, True)}


@dataclass(frozen=True)
class Choice:
    """What to take where the item set may be revealed or not, under a trust model, for an epsilon."""

    hides: bool
    trust: Trust
    epsilon: float
    take: ProtocolResult


def choices(name: str, item_set: str, *budgets: str) -> str:
    """Return what to take under each trust model at each budget, and what that has to be compared with.

    Of a summary, the first thing that it predicts counts; the item set is hidden, revealed or either.
    """
    held = summary(name)
    evaluation, results = next(iter(by_evaluation(held.results).items()))
    when: list[TableColumn[Choice]] = [
        text_column("item set", lambda choice: "hidden" if choice.hides else "revealed"),
        text_column("trust", lambda choice: TRUST_IN_WORDS[choice.trust].removesuffix(" model")),
        text_column("ε", lambda choice: f"{choice.epsilon:g}"),
    ]
    taken: list[TableColumn[ProtocolResult]] = [
        text_column("take", lambda each: "nothing sent" if each.baseline else f"`{each.name}`"),
        accuracy_column(rounded(evaluation.metric)),
        gain_column(evaluation.metric, results),
        ANY_TWO,
        *PRICE,
    ]
    columns = [*when[item_set != "either" :], *(each.of(lambda choice: choice.take) for each in taken)]
    epsilons = [float(budget) for budget in budgets]
    lines = list(chosen(held, results, evaluation.metric, _HIDES[item_set], epsilons))
    notes = "; ".join(references(held, results, evaluation.metric, max(epsilons)))
    return f"{column_table(columns, lines)}\n\n{notes}."


def chosen(
    held: Committed, results: Sequence[ProtocolResult], metric: Metric, hides: Sequence[bool],
    epsilons: Sequence[float],
) -> Iterator[Choice]:  # fmt: skip
    """Yield what to take among results that predict the same, of those that protect alike.

    That is the most accurate protocol that is proved to keep the budget, if it is significantly better than
    nothing sent; otherwise nothing sent.
    """
    baseline = nothing_sent(results)
    assert baseline is not None  # every comparison holds it
    for hidden, trust, epsilon in product(hides, LEAST_TRUST_FIRST, epsilons):
        alike = [each for each in results if (each.flag("hides_rated_items"), each.trust) == (hidden, trust)]
        within = [each for each in alike if _keeps(held, each, epsilon)]
        if within:
            best = _best(within, metric)
            better = gain(best, baseline, metric)
            yield Choice(hidden, trust, epsilon, best if better and better.significantly_better else baseline)


def references(
    held: Committed, results: Sequence[ProtocolResult], metric: Metric, epsilon: float
) -> Iterator[str]:
    """Yield what to compare with, published systems at a budget among it."""

    def reached(result: ProtocolResult) -> str:
        return f"{number(result.mean(metric.column), rounded(metric).digits)} (`{result.name}`)"

    baseline = nothing_sent(results)
    assert baseline is not None
    yield f"A device alone, with nothing sent, reaches {reached(baseline)}"
    for own in (result for result in results if result.baseline == SETS_ONLY):
        yield f"the item set alone, and no value, {reached(own)}"
    if clear := [result for result in results if result.reference]:
        yield f"the true ratings, without privacy, {reached(_best(clear, metric))}"
    published = [result for result in results if held.published(result) and result.budget == epsilon]
    better = [
        f"`{each.name}` ({gained(against, metric)})"
        for each in published
        if (against := gain(each, baseline, metric)) and against.significantly_better
    ]
    if published:
        count, verb = plural(len(published), "preset"), "are" if len(better) > 1 else "is"
        said = f"{listed(better) or 'none'} {verb} significantly better than nothing sent"
        yield f"of {count} of published systems at ε = {epsilon:g}, {said}"


def _keeps(held: Committed, result: ProtocolResult, epsilon: float) -> bool:
    """Return whether a result is proved to keep a budget, its own or a larger one.

    Of a whole user, it keeps what it composes to as well. Beside budgets per rating, one that holds for a
    whole user is left out: the two protect different things.
    """
    if result.budget is None or result.status != "proved":
        return False
    if held.made.unit == "user":
        return min(result.budget, math.inf if result.composed is None else result.composed) <= epsilon
    return result.budget <= epsilon and (result.epsilon("user") or math.inf) > result.budget


def _best(results: Sequence[ProtocolResult], metric: Metric) -> ProtocolResult:
    return min(results, key=lambda each: metric.sort_key(each.mean(metric.column) or 0.0))
