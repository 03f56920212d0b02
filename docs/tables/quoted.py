"""Figures of the committed results: in a sentence, by budget, by number of users, and side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from docs.tables import column_table
from docs.tables.leaderboard import PRICE, both_ways, chosen_of, in_words, rounded
from docs.tables.results import summary
from simulation.analysis.columns import ResultColumn, accuracy_column, declared_column, text_column
from simulation.analysis.protocol_results import PAYLOAD_BYTES, ProtocolResult, by_evaluation, by_protocol
from simulation.analysis.vocabulary import METRICS
from simulation.storage.column import Column
from simulation.storage.columns import column

_USERS = "users="
_BOTH_WAYS = {"messages": PRICE[0], "network": PRICE[1], "payload": both_ways("payload", PAYLOAD_BYTES)}
_METRICS = {metric.column: metric for metric in METRICS}


@dataclass(frozen=True)
class _Quoted:
    """Which figure of a protocol is meant, from words in any order.

    A number is the budget, ``users=N`` the population, and anything else a column of comparison.csv; by
    default it is the accuracy without a budget, on the comparison's own ratings.
    """

    budget: float | None = None
    population: str | None = None
    column: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> _Quoted:
        found = cls()
        for word in words:
            if word.startswith(_USERS):
                found = replace(found, population=word.removeprefix(_USERS))
            elif word.replace(".", "", 1).isdecimal():
                found = replace(found, budget=float(word))
            else:
                found = replace(found, column=word)
        return found


def quoted(name: str, protocol: str, *words: str) -> str:
    """Return one figure of one protocol, see `_Quoted`; raises ValueError where there is none."""
    wanted, held = _Quoted.of(words), summary(name)
    every = held.results if wanted.population is None else held.populations
    for result in chosen_of(every, [protocol], name):
        if (result.budget, result.population) == (wanted.budget, wanted.population) and result.evaluation:
            return (_column_of(wanted.column).text if wanted.column else _accuracy)(result)
    raise ValueError(f"{name}.csv holds no {protocol} with {' '.join(words) or 'no budget'}")


def accuracies(name: str, *protocols: str) -> str:
    """Return the accuracy at every budget, a line for each of some protocols, or for all."""
    held = summary(name)
    groups = by_evaluation(chosen_of(held.results, protocols, name))
    # Tables of one comparison say of what they are.
    title = "*{}.*\n\n" if len(groups) > 1 else ""
    return "\n\n".join(
        title.format(in_words(held, evaluation))
        + _by_budget(group, accuracy_column(rounded(evaluation.metric)))
        for evaluation, group in groups.items()
    )


def by_budget(name: str, figure: str, *protocols: str) -> str:
    """Return a figure at every budget, a line for each of some protocols, or for all."""
    return _by_budget(chosen_of(summary(name).results, protocols, name), _column_of(figure))


def by_users(name: str, budget: str, *protocols: str) -> str:
    """Return the accuracy at a budget, or without one, by the number of users."""
    results = chosen_of(summary(name).populations, protocols, name)
    shown = [each for each in results if each.budget in (None, float(budget))]
    metric = next(iter(by_evaluation(shown))).metric
    return _crossed(
        shown,
        accuracy_column(rounded(metric)),
        lambda each: float(each.population or 0),
        lambda users: f"{users or 0:,.0f} users",
    )


def figures_at(name: str, budget: str, figures: str, *protocols: str) -> str:
    """Return some figures, their columns joined by commas, at a budget or without one."""
    results = chosen_of(summary(name).results, protocols, name)
    shown = [each for each in results if each.budget in (None, float(budget))]
    first: Column[ProtocolResult] = text_column("protocol", lambda each: f"`{each.name}`")
    return column_table([first, *map(_column_of, figures.split(","))], shown)


def _accuracy(result: ProtocolResult) -> str:
    return "" if result.evaluation is None else _column_of(result.evaluation.metric.column).text(result)


def _column_of(figure: str) -> ResultColumn:
    """Return the column of a figure: a metric, bytes both ways, or one of comparison.csv.

    Places are whole, and figures that no version declares, as of attacks, are shares.
    """
    if figure in _METRICS:
        return accuracy_column(rounded(_METRICS[figure]))
    if figure in _BOTH_WAYS:
        return _BOTH_WAYS[figure]
    declared = column(figure)
    if "rank" in figure.split("_"):
        declared = replace(declared, digits=0)
    elif not declared.key:
        declared = replace(declared, digits=3)
    return replace(declared_column(declared), unit="", holds=float)


def _by_budget(results: Sequence[ProtocolResult], figure: ResultColumn) -> str:
    return _crossed(
        results,
        figure,
        lambda each: each.budget,
        lambda budget: "no budget" if budget is None else f"ε = {budget:g}",
    )


def _crossed(
    results: Sequence[ProtocolResult],
    figure: ResultColumn,
    key: Callable[[ProtocolResult], float | None],
    head: Callable[[float | None], str],
) -> str:
    """Return a table of a figure, with a row for each protocol and a column for each key."""
    held = {(each.name, key(each)): figure.text(each) for each in results}
    keys = sorted({key(each) for each in results}, key=lambda each: each or 0.0)

    def at(place: float | None) -> Column[str]:
        return replace(text_column(head(place), lambda name: held.get((name, place), "")), holds=float)

    title = ", ".join(filter(None, (figure.title, figure.unit)))
    first: Column[str] = text_column(title, "`{}`".format)
    return column_table([first, *map(at, keys)], list(by_protocol(results)))
