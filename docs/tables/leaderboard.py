"""The tables of results: what every protocol reaches, from the committed summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from docs.tables import table
from docs.tables.results import Result, provenance, source_of, summary
from simulation.analysis.gains import gain_digits
from simulation.analysis.vocabulary import DASH, loss, number, profiles_compared, with_claim

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
    return DASH if gained is None else gained.written(gain_digits(result.measured_by))


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
    ("trusted; server sees", False, lambda result: f"{result.trust}; {result.server_sees}"),
    ("network up / down", True, lambda result: _ways(result.network_up, result.network_down)),
)
