"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from simulation.analysis.columns import (
    BUDGET,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    SERVER_SEES,
    STATUS,
    SettingColumn,
    accuracy_column,
    best_columns,
    composed_column,
    floor_columns,
    spread_column,
)
from simulation.analysis.evaluations import distinguishing_words
from simulation.analysis.measures import Measure, headlines
from simulation.analysis.numbers import DASH, number
from simulation.analysis.projection import METHOD, Projection
from simulation.analysis.settings import Setting, by_evaluation, measures_of, settings_of
from simulation.configuration.dotted_keys import flatten
from simulation.storage.tables import Row

if TYPE_CHECKING:
    from simulation.auditing import Audit, PresetAudit


def results_table(summary: Mapping[str, Any]) -> Table:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    setting = _run_as_setting(summary)
    measures = _measures([setting])
    return _settings_table("run", [*map(accuracy_column, measures), *_costs([setting])], [setting])


def comparison_tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation(settings_of(rows))
    tables = []
    for evaluation, settings in groups.items():
        main = evaluation.measure
        others = [accuracy_column(each) for each in _measures(settings) if each != main]
        columns = [
            spread_column(main, settings),
            *floor_columns(main, settings),
            *best_columns(main, settings),
            *others,
        ]
        table = _settings_table("protocol", [BUDGET, *columns, *_costs(settings)], settings)
        table.title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        tables.append(table)
    return tables


def audit_table(audit: Audit) -> Table:
    """Return one line per test: the epsilon that is promised, its lower bound, and the verdict."""
    people = f"{audit.trials:,} people per profile"
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        caption=f"{people}; all bounds hold together with probability {audit.confidence:g}",
        caption_justify="left",
    )
    table.add_column("test")
    table.add_column("promised for a")
    for column in ("ε promised", "ε charged", "ε at least"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for finding in audit.findings:
        verdict = f"{finding.defect or 'no evidence against it'}; {finding.strength}"
        figures = (number(value, 4) for value in (finding.promised, finding.charged, finding.at_least))
        table.add_row(finding.test, finding.unit, *figures, verdict)
    return table


def presets_table(presets: Sequence[PresetAudit]) -> Table:
    """Return one line per preset: what its audit found, or why there is none."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("preset", no_wrap=True)
    for column in ("ε promised", "ε at least", "seconds"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for preset in presets:
        audit = preset.audit
        if audit is None:
            table.add_row(preset.name, DASH, DASH, DASH, preset.reason)
            continue
        verdict = audit.verdict + (f" (as {preset.same_as})" if preset.same_as else "")
        figures = number(audit.promised, 4), number(audit.lower_bound, 4), number(preset.seconds, 1)
        table.add_row(preset.name, *figures, verdict)
    return table


_HEADING = 12
"""Characters per line of a heading, so that the numbers below it decide the width of a column."""


def _costs(settings: Sequence[Setting]) -> tuple[SettingColumn, ...]:
    return STATUS, *LOSSES, composed_column(settings), BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES


def _measures(settings: Sequence[Setting]) -> list[Measure]:
    """Return the headline measures that any of the settings has."""
    return headlines(measures_of(settings))


def _settings_table(first: str, columns: Sequence[SettingColumn], settings: Sequence[Setting]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in columns:
        heading = "\n".join([*wrap(column.title, _HEADING), *wrap(column.hint, _HEADING)])
        table.add_column(heading, justify="right" if column.numeric else "left", no_wrap=True)
    for setting in settings:
        table.add_row(setting.name, *(column.text(setting) for column in columns))
    return table


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
        "trusts_server": privacy["trusts_server"],
        "hides_rated_items": privacy["hides_rated_items"],
    }
    return Setting(summary["name"], None, (row,))


def projection_table(rows: Sequence[tuple[str, Projection]], population: float) -> Table:
    """Return the projected traffic of a population, one row per direction or protocol."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        title=f"traffic of {population:,.0f} users a day, each taking part once",
        caption=METHOD,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for column in ("bytes a day", "from", "to", "mean Mbit/s"):
        table.add_column(column, justify="right", no_wrap=True)
    for label, projection in rows:
        ends = (DASH if end is None else f"{end:,.0f}" for end in (projection.low, projection.high))
        table.add_row(label, f"{projection.total:,.0f}", *ends, number(projection.bits_per_second / 1e6, 2))
    return table


def wide_console() -> Console:
    """Return a console that is wide enough for the columns of a table, even without a terminal."""
    console = Console()
    console.width = max(console.width, 220)
    return console
