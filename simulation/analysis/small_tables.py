"""The small tables of a run and of a comparison, for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    NETWORK,
    SERVER_SEES,
    STATUS,
    ResultColumn,
    accuracy_column,
    baseline_columns,
    best_columns,
    composed_column,
    spread_column,
    trust_columns,
)
from simulation.analysis.protocol_results import (
    ProtocolResult,
    by_evaluation,
    distinguishing_words,
    metrics_of,
    results_of,
)
from simulation.analysis.vocabulary import Metric, headlines
from simulation.storage.summary import by_column
from simulation.storage.tables import Row

_ASKED = replace(BUDGET, title="ε asked", hint="")
_MAIN_COSTS = (BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES)
_BRIEF_COSTS = (replace(BYTES_UP[0], hint="per user"), replace(BYTES_DOWN[0], hint="per user"), SERVER_SEES)


@dataclass(frozen=True)
class SmallTable:
    """A table with one line per setting."""

    title: str | None
    first: str
    """Heading of the settings' names."""
    columns: tuple[ResultColumn, ...]
    """The most important first."""
    results: tuple[ProtocolResult, ...]
    brief: tuple[ResultColumn, ...] = ()
    """The first columns as they are where there is little room: without the spread of the accuracy."""


def run_table(summary: Mapping[str, Any]) -> SmallTable:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    result = _run_as_result(summary)
    first, *others = [*map(accuracy_column, _metrics([result])), LOSSES[0]]
    return SmallTable(None, "run", (first, *_MAIN_COSTS, *others, *_costs([result])), (result,))


def tables_of_comparison(rows: Sequence[Row]) -> list[SmallTable]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation([each for each in results_of(rows) if each.population is None])
    tables = []
    for evaluation, results in groups.items():
        main = evaluation.metric
        others = [accuracy_column(each) for each in _metrics(results) if each != main]
        against = baseline_columns(main, results)
        brief = (_ASKED, accuracy_column(main), *against, *_BRIEF_COSTS)
        first = (_ASKED, spread_column(main, results), *against, *_MAIN_COSTS)
        columns = (*first, *best_columns(main, results), *others, LOSSES[0], *_costs(results))
        title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        tables.append(SmallTable(title, "protocol", columns, tuple(results), brief))
    return tables


def run_lines(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as text, with a line per figure."""
    small = run_table(summary)
    lines = [(small.first, small.results[0].name)]
    lines += [(f"{each.title} {each.hint}".strip(), each.text(small.results[0])) for each in small.columns]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _costs(results: Sequence[ProtocolResult]) -> tuple[ResultColumn, ...]:
    """Return the columns of what comes after the main ones: how far ε carries, and bytes on a network."""
    return STATUS, *trust_columns(results), LOSSES[1], composed_column(results), *NETWORK


def _metrics(results: Sequence[ProtocolResult]) -> list[Metric]:
    """Return the headline measures that any of the settings has."""
    return headlines(metrics_of(results))


def _run_as_result(summary: Mapping[str, Any]) -> ProtocolResult:
    """Return a run as a setting with a single row."""
    privacy, traffic = summary["privacy"], summary["traffic"]
    row = {
        **by_column(summary["accuracy"]),
        "epsilon_per_rating": privacy["epsilon_per_rating"],
        "epsilon_per_user_max": privacy["epsilon_per_user"]["max"],
        "delta": privacy["delta"],
        "epsilon_composed_max": privacy["epsilon_composed"]["max"],
        "epsilon_claimed_per_rating": privacy["epsilon_claimed"]["per_rating"],
        "epsilon_claimed_per_user": privacy["epsilon_claimed"]["per_user"],
        "status": privacy["status"],
        "uplink_message_mean_per_user": traffic["uplink"]["message_mean_per_user"],
        "downlink_message_mean_per_user": traffic["downlink"]["message_mean_per_user"],
        "uplink_network_mean_per_user": traffic["uplink"]["network_mean_per_user"],
        "downlink_network_mean_per_user": traffic["downlink"]["network_mean_per_user"],
        "trusts_server": privacy["trusts_server"],
        "hides_rated_items": privacy["hides_rated_items"],
        "unlinked": privacy.get("unlinked", False),
    }
    return ProtocolResult(summary["name"], None, (row,))
