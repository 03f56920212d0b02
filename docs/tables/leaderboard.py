"""Tables of the committed results: all protocols at one budget, with what they cost and promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from docs.tables import column_table
from docs.tables.results import DOCS, Committed, files_of, summary
from simulation.analysis.columns import (
    ANY_TWO,
    LOSSES,
    SERVER_SEES,
    TRUST,
    ResultColumn,
    accuracy_column,
    baseline_columns,
    composed_column,
    text_column,
)
from simulation.analysis.gains import gain_digits, held_against
from simulation.analysis.protocol_results import (
    BYTES,
    NETWORK_BYTES,
    Evaluation,
    ProtocolResult,
    by_evaluation,
    by_protocol,
)
from simulation.analysis.vocabulary import DASH, Metric, listed, number
from simulation.storage.column import Column

_METRICS = {"sign_accuracy": "share of signs that are right"}
_DATASETS = {
    "movielens-100k": "MovieLens 100K",
    "movielens-genres": "MovieLens 100K as two domains by genre",
    "rc": "Restaurant & Consumer",
    "douban": "Douban, books and music",
    "one-bit-synthetic": "synthetic signs",
    "csv": "ratings.csv",
    "lightgcn": "sets of items",
}


def made(name: str) -> str:
    """Return how a summary was made, as a paragraph."""
    how = summary(name).made
    return f"`{how.command}`\n({how.runs}; [CSV](docs:{files_of(name)[0].relative_to(DOCS)}))"


def leaderboard(name: str, budget: str, *protocols: str) -> str:
    """Return some protocols, or all, at one budget or none: a table for each thing that they predict."""
    held = summary(name)
    chosen = chosen_of(held.results, protocols, name)
    shown = [result for result in chosen if result.budget in (None, float(budget))]
    return "\n\n".join(_board(held, *group) for group in by_evaluation(shown).items())


def chosen_of(results: Sequence[ProtocolResult], names: Sequence[str], summary: str) -> list[ProtocolResult]:
    """Return the results of some protocols in their order, or all."""
    known = by_protocol(results)
    missing = sorted(set(names) - known.keys())
    if missing:
        raise ValueError(f"{summary}.csv holds no {missing[0]}")
    return [result for name in names or known for result in known[name]]


def rounded(metric: Metric) -> Metric:
    """Return a metric under the documents' name, with the decimals that are worth showing."""
    return replace(metric, label=_METRICS.get(metric.column, metric.label), digits=gain_digits(metric))


def in_words(held: Committed, evaluation: Evaluation) -> str:
    """Return on what some results were measured, and by what."""
    data = _DATASETS.get(evaluation.dataset, evaluation.dataset)
    panel = f", {evaluation.panel}" if evaluation.panel else ""
    split = held.made.splits[evaluation.dataset]
    return f"{data} ({split}){panel}: {rounded(evaluation.metric).label}"


def _board(held: Committed, evaluation: Evaluation, results: Sequence[ProtocolResult]) -> str:
    metric, every = evaluation.metric, by_evaluation(held.results)[evaluation]
    ranked = sorted(results, key=lambda result: metric.sort_key(result.mean(metric.column) or 0.0))
    composed = composed_column(results)
    columns = [
        text_column("protocol", lambda result: f"`{result.name}` ({held.source(result)})"),
        _with_spread(metric, every),
        *gain_columns(metric, every),
        *PRICE,
        replace(LOSSES[1], unit="sum"),
        replace(composed, title="composed", unit=composed.unit.removeprefix("largest, ")),
        ANY_TWO,
        TRUST,
        SERVER_SEES,
    ]
    caption = f"*{in_words(held, evaluation)}, {metric.direction}.*"
    tuned = sorted({ratings for result in results if (ratings := held.tuned_on(result))})
    chosen = f"\n\n† Settings were chosen on train ratings of {listed(tuned)}, which no ε counts."
    return f"{caption}\n\n{column_table(columns, ranked)}{chosen if tuned else ''}"


def _with_spread(metric: Metric, every: Sequence[ProtocolResult]) -> ResultColumn:
    """Return the column of accuracies, with the standard deviation where runs differ more than users do."""
    column, compared = accuracy_column(rounded(metric)), [gained for _, gained in held_against(every, metric)]

    def text(result: ProtocolResult) -> str:
        gains, deviation = [gained(result) for gained in compared], result.mean("deviation")
        widths = [gain.half_width for gain in gains if gain and gain.half_width is not None]
        if deviation is None or not widths or deviation <= max(widths):
            return column.text(result)
        return f"{column.text(result)} ± {number(deviation, gain_digits(metric))} over runs"

    return replace(column, text=text)


def gain_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the columns that hold results against nothing sent; documents say once what their ± is."""
    return [replace(column, unit="") for column in baseline_columns(metric, results)]


def both_ways(
    title: str,
    columns: Sequence[Column[Any]],
    unit: str = "bytes up / down",
    written: Callable[[float], str] = lambda value: number(value, 0),
) -> ResultColumn:
    """Return a column of what goes up and down."""

    def text(result: ProtocolResult) -> str:
        ways = [result.mean(way) for way in columns]
        said = (DASH if way is None else written(way) for way in ways)
        return DASH if ways == [None, None] else " / ".join(said)

    return replace(text_column(title, text, unit), holds=float)


PRICE = both_ways("messages", BYTES), both_ways("network", NETWORK_BYTES)
"""What a protocol costs a user: the bytes of messages, and what a network carries for them."""
