"""What the committed results say: which protocol to take, and a few sentences about each comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from docs.tables import column_table
from docs.tables.leaderboard import PRICE, gain_column, gained, in_words, rounded
from docs.tables.results import Committed, summary
from dprec.accounting import LEAST_TRUST_FIRST, Trust
from simulation.analysis.columns import ANY_TWO, TableColumn, accuracy_column, text_column
from simulation.analysis.gains import SETS_ONLY, gain, nothing_sent
from simulation.analysis.protocol_results import Evaluation, ProtocolResult, by_evaluation
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, number, plural, size

Choice = tuple[Trust, float, ProtocolResult]
"""What to take under a trust model, for an epsilon that is asked for."""


def choices(name: str, item_set: str, *budgets: str) -> str:
    """Return what to take under each trust model at each budget, among protocols that protect the same.

    Of a summary, the first thing that it predicts counts; the item set is hidden or revealed.
    """
    held = summary(name)
    evaluation, results = next(iter(by_evaluation(held.results).items()))
    metric, baseline = evaluation.metric, nothing_sent(results)
    assert baseline is not None  # every comparison holds it
    proved = _proved(held, results, hides=item_set == "hidden")
    lines = []
    for trust, epsilon in product(LEAST_TRUST_FIRST, map(float, budgets)):
        # A smaller budget keeps a larger one too.
        within = [each for each in proved if each.trust == trust and _keeps(held, each, epsilon)]
        if within:
            best = _best(within, metric)
            lines.append((trust, epsilon, best if _beats(best, baseline, metric) else baseline))
    when: list[TableColumn[Choice]] = [
        text_column("trust", lambda choice: TRUST_IN_WORDS[choice[0]]),
        text_column("ε", lambda choice: f"{choice[1]:g}"),
    ]
    taken: list[TableColumn[ProtocolResult]] = [
        text_column("take", lambda each: "nothing sent" if each is baseline else f"`{each.name}`"),
        ANY_TWO,
        accuracy_column(rounded(metric)),
        gain_column(metric, results),
        *PRICE,
    ]
    table = column_table([*when, *(column.of(lambda choice: choice[2]) for column in taken)], lines)
    return "\n\n".join([table, *(_sets_only(results, metric) if item_set == "revealed" else ())])


def answer(name: str, budget: str) -> str:
    """Return the statements about everything that a summary predicts, at one budget."""
    held, epsilon = summary(name), float(budget)
    shown = [result for result in held.results if result.budget in (None, epsilon)]
    return "\n\n".join(
        f"**{in_words(held, evaluation)}, ε = {epsilon:g} per {held.made.unit}.** "
        + " ".join(statements(held, evaluation, results))
        for evaluation, results in by_evaluation(shown).items()
    )


def statements(held: Committed, evaluation: Evaluation, results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Yield what the results at one budget say, a sentence each.

    `results` are those that predict the same, baselines included.
    """
    metric, baseline = evaluation.metric, nothing_sent(results)
    if baseline is not None:
        yield f"With nothing sent, a device alone reaches {_reached(baseline, metric)}."
        yield from _published(held, results, baseline, metric)
    for hides, where in ((False, "revealed"), (True, "hidden")):
        proved = _proved(held, results, hides=hides)
        of_trust = [[each for each in proved if each.trust == trust] for trust in LEAST_TRUST_FIRST]
        if proved:
            best = [_told(_best(own, metric), baseline, metric) for own in of_trust if own]
            verb = "is" if len(best) == 1 else "in each trust model is"
            yield f"With the item set {where}, the best that keeps its ε {verb} {listed(best)}."
    yield from _sets_only(results, metric)
    clear = [result for result in results if result.reference]
    if clear:
        own = _best(clear, metric)
        yield f"Without privacy, `{own.name}` reaches {_reached(own, metric)}."


def _sets_only(results: Sequence[ProtocolResult], metric: Metric) -> Iterator[str]:
    for own in (result for result in results if result.baseline == SETS_ONLY):
        yield f"The item set alone, and no value, reaches {_reached(own, metric)} (`{own.name}`)."


def _published(
    held: Committed, results: Sequence[ProtocolResult], baseline: ProtocolResult, metric: Metric
) -> Iterator[str]:
    published = [result for result in results if held.published(result) and result.budget is not None]
    better = [result for result in published if _beats(result, baseline, metric)]
    if published:
        said = listed(f"`{each.name}` ({_against(each, baseline, metric)})" for each in better) or "none"
        verb = "is" if len(better) < 2 else "are"
        count = plural(len(published), "preset")
        yield f"Of {count} of published systems, {said} {verb} significantly better."


def _proved(held: Committed, results: Sequence[ProtocolResult], *, hides: bool) -> list[ProtocolResult]:
    """Return the results that are proved to keep their budget, and treat the item set as told.

    Beside others with a budget per rating, those that give the same to a whole user are left out: the two
    protect different things.
    """
    return [
        each
        for each in results
        if each.budget is not None
        and each.status == "proved"
        and each.flag("hides_rated_items") == hides
        and (held.made.unit == "user" or (each.epsilon("user") or math.inf) > each.budget)
    ]


def _keeps(held: Committed, result: ProtocolResult, epsilon: float) -> bool:
    """Return whether a result was given at most a budget; of a whole user, also whether it composes to it."""
    spent = [result.budget, result.composed if held.made.unit == "user" else None]
    return any(each is not None and each <= epsilon for each in spent)


def _beats(result: ProtocolResult, baseline: ProtocolResult, metric: Metric) -> bool:
    """Return whether a result is significantly better than nothing sent."""
    against = gain(result, baseline, metric)
    return against is not None and against.significantly_better


def _best(results: Sequence[ProtocolResult], metric: Metric) -> ProtocolResult:
    return min(results, key=lambda each: metric.sort_key(each.mean(metric.column) or 0.0))


def _told(result: ProtocolResult, baseline: ProtocolResult | None, metric: Metric) -> str:
    """Return accuracy, trust, gain and price."""
    words = [TRUST_IN_WORDS[result.trust]]
    if baseline is not None:
        words.append(_against(result, baseline, metric))
    if (messages := result.bytes_per_user) is not None:
        network = result.network_bytes_per_user
        carried = f", {size(network)} on the network" if network is not None else ""
        words.append(f"{size(messages)} of messages{carried}")
    return f"`{result.name}`, {_reached(result, metric)} ({'; '.join(words)})"


def _against(result: ProtocolResult, baseline: ProtocolResult, metric: Metric) -> str:
    against = gain(result, baseline, metric)
    return "" if against is None else gained(against, metric)


def _reached(result: ProtocolResult, metric: Metric) -> str:
    return number(result.mean(metric.column), rounded(metric).digits)
