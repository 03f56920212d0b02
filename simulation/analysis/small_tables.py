"""The small tables of a run and of a comparison, for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    NETWORK,
    SERVER_SEES,
    STATUS,
    SettingColumn,
    accuracy_column,
    best_columns,
    composed_column,
    floor_columns,
    spread_column,
    trust_columns,
)
from simulation.analysis.evaluations import distinguishing_words
from simulation.analysis.measures import Measure, headlines
from simulation.analysis.settings import Setting, by_evaluation, measures_of, settings_of
from simulation.configuration.dotted_keys import flatten
from simulation.storage.tables import Row


@dataclass(frozen=True)
class SmallTable:
    """A table with one line per setting.

    Parameters
    ----------
    title : str or None
    first : str
        Heading of the settings' names.
    columns : tuple of SettingColumn
    settings : tuple of Setting
    """

    title: str | None
    first: str
    columns: tuple[SettingColumn, ...]
    settings: tuple[Setting, ...]


def run_table(summary: Mapping[str, Any]) -> SmallTable:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    setting = _run_as_setting(summary)
    columns = (*map(accuracy_column, _measures([setting])), *_costs([setting]))
    return SmallTable(None, "run", columns, (setting,))


def tables_of_comparison(rows: Sequence[Row]) -> list[SmallTable]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation([each for each in settings_of(rows) if each.population is None])
    tables = []
    for evaluation, settings in groups.items():
        main = evaluation.measure
        others = [accuracy_column(each) for each in _measures(settings) if each != main]
        columns = (
            BUDGET,
            spread_column(main, settings),
            *floor_columns(main, settings),
            *best_columns(main, settings),
            *others,
            *_costs(settings),
        )
        title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        tables.append(SmallTable(title, "protocol", columns, tuple(settings)))
    return tables


def run_lines(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as text, with a line per figure."""
    small = run_table(summary)
    lines = [(small.first, small.settings[0].name)]
    lines += [(f"{each.title} {each.hint}".strip(), each.text(small.settings[0])) for each in small.columns]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _costs(settings: Sequence[Setting]) -> tuple[SettingColumn, ...]:
    losses = (STATUS, *trust_columns(settings), *LOSSES, composed_column(settings))
    return *losses, BYTES_UP[0], BYTES_DOWN[0], *NETWORK, SERVER_SEES


def _measures(settings: Sequence[Setting]) -> list[Measure]:
    """Return the headline measures that any of the settings has."""
    return headlines(measures_of(settings))


def _run_as_setting(summary: Mapping[str, Any]) -> Setting:
    """Return a run as a setting with a single row."""
    privacy, traffic = summary["privacy"], summary["traffic"]
    row = {
        **{key.replace(".", "_"): value for key, value in flatten(summary["accuracy"]).items()},
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
    return Setting(summary["name"], None, (row,))
