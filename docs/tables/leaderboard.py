"""What the results say: tables by accuracy, and sentences, from the committed summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from docs.tables import table
from docs.tables.results import Result, provenance, source_of, summary, systems
from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.gains import NOTHING_SENT, SETS_ONLY, gain_digits
from simulation.analysis.vocabulary import (
    DASH,
    TRUST_IN_WORDS,
    listed,
    loss,
    number,
    plural,
    profiles_compared,
    with_claim,
)

_METRICS = {
    "rmse": "RMSE",
    "sign_accuracy": "share of signs that are right",
    "relative_error": "relative error",
}

_DATASETS = {
    "movielens-100k": "MovieLens 100K",
    "movielens-genres": "MovieLens 100K as two domains by genre",
    "rc": "Restaurant & Consumer",
    "douban": "Douban, books and music",
    "one-bit-synthetic": "synthetic signs",
}


def made(name: str) -> str:
    """Return how a summary was made, as a paragraph."""
    how = provenance(name)
    seeds = f"{'seed' if len(how.seeds) == 1 else 'seeds'} {', '.join(how.seeds)}"
    folds = f", {'fold' if len(how.folds) == 1 else 'folds'} {', '.join(how.folds)}" if how.folds else ""
    figures = f"[all figures](docs:results/{name}.csv)"
    return f"`{how.command}`\n({seeds}{folds}; dprec {how.dprec}, {how.date}; {figures})"


def leaderboard(name: str, budget: str) -> str:
    """Return one table for each thing that was predicted, best first, at one budget.

    Parameters
    ----------
    name : str
        Of the summary.
    budget : str
        The ε that is shown. Protocols without one are in every table.
    """
    shown = [result for result in summary(name) if result.epsilon in (None, float(budget))]
    return "\n\n".join(_board(group) for group in grouped(shown))


def accuracies(name: str, *protocols: str) -> str:
    """Return the accuracy at every budget, a line for each protocol.

    Parameters
    ----------
    name : str
        Of the summary.
    *protocols : str
        Those that are shown, in this order; all of them if none is named.
    """
    groups = list(grouped(_chosen(summary(name), protocols, name)))
    tables = [_by_budget(group, _metric(group), accuracy) for group in groups]
    if len(groups) == 1:
        return tables[0]
    # Tables of one comparison say of what they are.
    return "\n\n".join(
        f"*{evaluation_in_words(group)}.*\n\n{own}" for group, own in zip(groups, tables, strict=True)
    )


def absolute_errors(name: str, *protocols: str) -> str:
    """Return the mean absolute error at every budget, a line for each protocol; see `accuracies`."""
    groups = grouped(_chosen(summary(name), protocols, name))
    return "\n\n".join(
        _by_budget(group, "mean absolute error", lambda result: number(result.mae, 3)) for group in groups
    )


def _chosen(results: Sequence[Result], protocols: Sequence[str], name: str) -> list[Result]:
    """Return the results of some protocols in their order, or all."""
    missing = sorted(set(protocols) - {result.protocol for result in results})
    if missing:
        raise ValueError(f"{name}.csv holds no {missing[0]}")
    if not protocols:
        return list(results)
    return [result for protocol in protocols for result in results if result.protocol == protocol]


def grouped(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the results that predict the same, group by group."""
    for evaluation in dict.fromkeys(result.evaluation for result in results):
        yield [result for result in results if result.evaluation == evaluation]


def _board(results: Sequence[Result]) -> str:
    metric = results[0].measured_by
    ranked = sorted(results, key=lambda result: result.accuracy, reverse=not metric.lower_is_better)
    columns = [column for column in _LEADERBOARD if any(column[2](result) != DASH for result in results)]
    rows = [[text(result) for _, _, text in columns] for result in ranked]
    heads = [_heading(head, results) for head, _, _ in columns]
    caption = f"*{evaluation_in_words(results)}, {metric.direction}.*"
    return f"{caption}\n\n{table(heads, rows, [right for _, right, _ in columns])}"


def _by_budget(results: Sequence[Result], head: str, text: Callable[[Result], str]) -> str:
    budgets = sorted({result.epsilon for result in results if result.epsilon is not None})
    without = any(result.epsilon is None for result in results)
    held = {(result.protocol, result.epsilon): text(result) for result in results}
    columns = [*([None] if without else []), *budgets]
    heads = [head, *("no budget" if each is None else f"ε = {each:g}" for each in columns)]
    rows = [
        [f"`{protocol}`", *(held.get((protocol, budget), "") for budget in columns)]
        for protocol in dict.fromkeys(result.protocol for result in results)
    ]
    return table(heads, rows, [False, *(True for _ in columns)])


def evaluation_in_words(results: Sequence[Result]) -> str:
    """Return on what some results were measured, and by what.

    Parameters
    ----------
    results : sequence of Result
        Those that predict the same.
    """
    first = results[0]
    data = _DATASETS.get(first.dataset, first.dataset)
    panel = f", {first.panel}" if first.panel else ""
    return f"{data} ({first.split}){panel}: {_metric(results)}"


def _metric(results: Sequence[Result]) -> str:
    return _METRICS.get(results[0].metric, results[0].measured_by.label)


def _heading(head: str, results: Sequence[Result]) -> str:
    if head == "accuracy":
        return _metric(results)
    if head == "composed":
        deltas = sorted({result.delta for result in results if result.delta is not None})
        return f"{head}, δ = {', '.join(f'{delta:g}' for delta in deltas)}" if deltas else head
    return head


def accuracy(result: Result) -> str:
    """Return the accuracy of a result with the decimals that are worth showing."""
    return number(result.accuracy, gain_digits(result.measured_by))


def _ways(up: float | None, down: float | None) -> str:
    return DASH if up is None and down is None else f"{number(up, 0)} / {number(down, 0)}"


def _against(result: Result) -> str:
    gained = result.against_nothing_sent
    return DASH if gained is None else gained.written


def _summed(result: Result) -> str:
    proved, claimed = result.epsilon_per_user, result.claimed_per_user
    return with_claim(proved, claimed) + _compared(result, claimed if proved is None else proved)


def _compared(result: Result, epsilon: float | None) -> str:
    return profiles_compared(epsilon, hides_rated_items=result.hides_rated_items)


_LEADERBOARD: tuple[tuple[str, bool, Callable[[Result], str]], ...] = (
    ("protocol", False, lambda result: f"`{result.protocol}` ({source_of(result)})"),
    ("accuracy", True, accuracy),
    ("against nothing sent", True, _against),
    ("bytes up / down", True, lambda result: _ways(result.bytes_up, result.bytes_down)),
    ("ε per user, sum", True, _summed),
    ("composed", True, lambda result: loss(result.composed) + _compared(result, result.composed)),
    ("privacy", False, lambda result: result.status),
    ("trust; server sees", False, lambda result: f"{result.trust}; {result.server_sees}"),
    ("network up / down", True, lambda result: _ways(result.network_up, result.network_down)),
)


def answer(name: str, budget: str) -> str:
    """Return the statements about everything that a summary predicts, at one budget.

    Parameters
    ----------
    name : str
    budget : str
        The ε that protocols were given.
    """
    results = [result for result in summary(name) if result.epsilon in (None, float(budget))]
    paragraphs = []
    for group in grouped(results):
        about = f"**{evaluation_in_words(group)}, ε = {float(budget):g} per {group[0].unit}.**"
        paragraphs.append(" ".join([about, *statements(group)]))
    return "\n\n".join(paragraphs)


def statements(results: Sequence[Result]) -> Iterator[str]:
    """Yield what the results at one budget say, a sentence each.

    Parameters
    ----------
    results : sequence of Result
        Those that predict the same, baselines included.
    """
    baseline = next((result for result in results if result.baseline and _is(result, NOTHING_SENT)), None)
    if baseline is not None:
        yield f"With nothing sent, a device alone reaches {accuracy(baseline)}."
        yield from _published(results)
    yield from _proved([result for result in results if result.epsilon is not None])
    revealed = next((result for result in results if result.baseline and _is(result, SETS_ONLY)), None)
    if revealed is not None:
        yield f"Sending the item set, and no value, reaches {accuracy(revealed)} (`{revealed.protocol}`)."
    clear = [result for result in results if result.reference]
    if clear:
        own = _best(clear)
        yield f"Without privacy, `{own.protocol}` reaches {accuracy(own)}."


def _published(results: Sequence[Result]) -> Iterator[str]:
    names = {preset for system in systems().values() for preset in system.presets}
    published = [result for result in results if result.preset in names and result.epsilon is not None]
    if not published:
        return
    better = [result for result in published if _beats(result)]
    if len(published) == 1:
        said = f"is {_gained(published[0])}" if better else "does not do better"
        yield f"The one preset of a published system, `{published[0].protocol}`, {said}."
        return
    several = f"{plural(len(published), 'preset')} of published systems"
    if better:
        do = "one does" if len(better) == 1 else "these do"
        gains = listed([f"`{result.protocol}` ({_gained(result)})" for result in better])
        yield f"Of {several}, {do} better: {gains}."
    else:
        yield f"Of {several}, none does better."


def _proved(results: Sequence[Result]) -> Iterator[str]:
    """Yield what the best reaches that keeps its budget, and the best of those that hide item sets."""
    proved = [result for result in results if result.status == "proved"]
    if not proved:
        return
    best, compared = _best(proved), [result for result in proved if result.against_nothing_sent]
    if compared and not any(_beats(result) for result in compared):
        opening = "Nor does any other protocol that keeps its ε; the best is"
    else:
        opening = "The best that keeps its ε is"
    seen = f"{TRUST_IN_WORDS[best.trust]}; the server sees {best.server_sees}"
    yield f"{opening} `{best.protocol}`, {_told(best)} ({seen})."
    hidden = [result for result in proved if result.hides_rated_items]
    of_trust = [[each for each in hidden if each.trust == trust] for trust in LEAST_TRUST_FIRST]
    at_each = [_best(own) for own in of_trust if own]
    if at_each and at_each != [best]:
        told = (f"`{each.protocol}` {accuracy(each)} ({TRUST_IN_WORDS[each.trust]})" for each in at_each)
        yield f"Of those that also hide item sets, the best is {listed(told)}."


def _is(result: Result, baseline: str) -> bool:
    """Return whether a baseline is the named one; what it predicts, if not stars, ends its name."""
    return result.protocol == baseline or result.protocol.startswith(f"{baseline}-")


def _beats(result: Result) -> bool:
    """Return whether a result is significantly better than nothing sent."""
    gained = result.against_nothing_sent
    return gained is not None and gained.significantly_better


def _told(result: Result) -> str:
    """Return accuracy, gain and bytes."""
    gained = f" (against nothing sent: {_gained(result)})" if result.against_nothing_sent else ""
    up, down = number(result.bytes_up, 0), number(result.bytes_down, 0)
    return f"{accuracy(result)}{gained}, for {up} bytes up and {down} down per user"


def _gained(result: Result) -> str:
    gained = result.against_nothing_sent
    assert gained is not None
    return gained.written


def _best(results: Sequence[Result]) -> Result:
    metric = results[0].measured_by
    best = metric.best([result.accuracy for result in results])
    return next(result for result in results if result.accuracy == best)
