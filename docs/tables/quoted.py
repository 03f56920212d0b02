"""Figures of the committed results: in a sentence, by budget, by number of users, and side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from docs.tables import column_table
from docs.tables.leaderboard import PRICE, chosen_of, in_words, rounded
from docs.tables.results import summary
from simulation.analysis.columns import declared_column, text_column
from simulation.analysis.protocol_results import (
    BYTES,
    NETWORK_BYTES,
    PAYLOAD_BYTES,
    ProtocolResult,
    by_evaluation,
    by_protocol,
)
from simulation.analysis.vocabulary import METRICS, number
from simulation.storage.column import Column
from simulation.storage.columns import column

_USERS = "users="
_WHERE = {"messages": BYTES, "network": NETWORK_BYTES, "payload": PAYLOAD_BYTES}
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
            return _figure(wanted.column)(result)
    raise ValueError(f"{name}.csv holds no {protocol} with {' '.join(words) or 'no budget'}")


def accuracies(name: str, *protocols: str) -> str:
    """Return the accuracy at every budget, a line for each of some protocols, or for all."""
    held = summary(name)
    groups = by_evaluation(chosen_of(held.results, protocols, name))
    # Tables of one comparison say of what they are.
    title = "*{}.*\n\n" if len(groups) > 1 else ""
    return "\n\n".join(
        title.format(in_words(held, evaluation))
        + _by_budget(group, rounded(evaluation.metric).label, _figure(""))
        for evaluation, group in groups.items()
    )


def by_budget(name: str, figure: str, *protocols: str) -> str:
    """Return a figure at every budget, a line for each of some protocols, or for all."""
    return _by_budget(chosen_of(summary(name).results, protocols, name), _title(figure), _figure(figure))


def by_users(name: str, budget: str, *protocols: str) -> str:
    """Return the accuracy at a budget, or without one, by the number of users."""
    results = chosen_of(summary(name).populations, protocols, name)
    held = {(each.name, each.population): each for each in results if each.budget in (None, float(budget))}
    populations = sorted({each.population or "" for each in results}, key=float)

    def with_users(users: str) -> Column[str]:
        def text(protocol: str) -> str:
            return _figure("")(held[protocol, users]) if (protocol, users) in held else ""

        return replace(text_column(f"{int(users):,} users", text), holds=float)

    metric = next(iter(by_evaluation(results))).metric
    first: Column[str] = text_column(rounded(metric).label, "`{}`".format)
    return column_table([first, *map(with_users, populations)], list(by_protocol(results)))


def figures_at(name: str, budget: str, figures: str, *protocols: str) -> str:
    """Return some figures, their columns joined by commas, at a budget or without one."""
    results = chosen_of(summary(name).results, protocols, name)
    shown = [each for each in results if each.budget in (None, float(budget))]
    first: Column[ProtocolResult] = text_column("protocol", lambda each: f"`{each.name}`")
    columns = [
        replace(text_column(_title(figure), _figure(figure)), holds=float) for figure in figures.split(",")
    ]
    return column_table([first, *columns], shown)


def _title(figure: str) -> str:
    if figure in _METRICS:
        return rounded(_METRICS[figure]).label
    if figure in _WHERE:
        return f"{figure}, {PRICE[0].unit}"
    return column(figure).title


def _figure(name: str) -> Callable[[ProtocolResult], str]:
    """Return what writes a figure of a result: its accuracy, if it has no name."""

    def accuracy(result: ProtocolResult) -> str:
        metric = _METRICS[name] if name else result.evaluation.metric if result.evaluation else None
        return "" if metric is None else number(result.mean(metric.column), rounded(metric).digits)

    def bytes_of(result: ProtocolResult) -> str:
        ways: Sequence[Column[Any]] = _WHERE[name]
        return " / ".join(number(result.mean(way), 0) for way in ways)

    if not name or name in _METRICS:
        return accuracy
    return bytes_of if name in _WHERE else declared_column(_shown(name)).text


def _shown(name: str) -> Column[Any]:
    """Return a column; places are whole, and those that no version declares, as of attacks, hold shares."""
    declared = column(name)
    if "rank" in name.split("_"):
        return replace(declared, digits=0)
    return declared if declared.key else replace(declared, digits=3)


def _by_budget(results: Sequence[ProtocolResult], title: str, text: Callable[[ProtocolResult], str]) -> str:
    """Return a table with a row for each protocol and a column for each budget."""
    held = {(each.name, each.budget): text(each) for each in results}
    budgets = sorted({each.budget for each in results}, key=lambda budget: budget or 0.0)

    def at(budget: float | None) -> Column[str]:
        head = "no budget" if budget is None else f"ε = {budget:g}"
        return replace(text_column(head, lambda name: held.get((name, budget), "")), holds=float)

    first: Column[str] = text_column(title, "`{}`".format)
    return column_table([first, *map(at, budgets)], list(by_protocol(results)))
