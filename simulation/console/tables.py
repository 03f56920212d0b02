"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from simulation.analysis.averages import average
from simulation.analysis.numbers import DASH, number
from simulation.analysis.projection import METHOD, Projection
from simulation.analysis.settings import by_evaluation, settings_of, told_apart
from simulation.storage.tables import Row

if TYPE_CHECKING:
    from simulation.auditing import Audit

_ACCURACY = (
    ("rmse", "RMSE"),
    ("mae", "MAE"),
    ("f_score_at_k", "F@k"),
    ("sign_accuracy", "sign\naccuracy"),
    ("relative_error", "relative\nerror"),
)
"""Every run has some of these; a table shows those that any of its rows has."""

_DIGITS = 4

_COSTS = (
    ("epsilon_per_rating", "ε per\nrating", 3),
    ("epsilon_per_user_max", "ε per user\nmax", 3),
    ("uplink_message_mean_per_user", "bytes up\nper user", 1),
    ("downlink_message_mean_per_user", "bytes down\nper user", 1),
)


def results_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """Return one row per run: accuracy, privacy and bytes side by side."""
    shown = _shown([summary["accuracy"] for summary in summaries])
    table = _table("run", [name for _, name in shown])
    for summary in summaries:
        accuracy, privacy, traffic = summary["accuracy"], summary["privacy"], summary["traffic"]
        users = traffic["users"]
        table.add_row(
            summary["name"],
            *(number(accuracy.get(column), _DIGITS) for column, _ in shown),
            number(privacy["epsilon_per_rating"], 3),
            number(privacy["epsilon_per_user"]["max"], 3),
            number(traffic["uplink"]["message_bytes"] / users, 1),
            number(traffic["downlink"]["message_bytes"] / users, 1),
            _seen(privacy),
        )
    return table


def comparison_tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table for each thing that is predicted, one line per protocol and epsilon.

    Figures are averages over folds and seeds.
    """
    groups = by_evaluation(settings_of(rows))
    tables = []
    for evaluation, settings in groups.items():
        shown = _shown([row for setting in settings for row in setting.rows])
        table = _table("protocol", ["ε", *(name for _, name in shown)])
        table.title = ", ".join(told_apart(evaluation, list(groups))) or None
        # The main accuracy stands for the others, with its spread.
        main = evaluation.measure.column
        for setting in settings:
            cells = setting.rows
            table.add_row(
                setting.name,
                DASH if setting.budget is None else f"{setting.budget:g}",
                *(_mean(cells, column, _DIGITS, spread=column == main) for column, _ in shown),
                *(_mean(cells, column, digits) for column, _, digits in _COSTS),
                _seen(cells[0]),
            )
        tables.append(table)
    return tables


def audit_table(audit: Audit) -> Table:
    """Return one line per pair of profiles that were told apart."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        caption=f"{audit.trials:,} people per profile; a bound holds with probability {audit.confidence:g}",
        caption_justify="left",
    )
    table.add_column("profiles differ in")
    table.add_column("promised for a")
    for column in ("ε promised", "ε at least"):
        table.add_column(column, justify="right")
    table.add_column("")
    for finding in audit.findings:
        verdict = "nothing found against it" if finding.holds else "broken"
        spent = number(finding.claimed, 4), number(finding.at_least, 4)
        table.add_row(finding.difference, finding.unit, *spent, verdict)
    return table


def _shown(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the kinds of accuracy that any of the rows has."""
    return [
        (column, name) for column, name in _ACCURACY if any(row.get(column) not in (None, "") for row in rows)
    ]


def _table(first: str, figures: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in (*figures, *(name for _, name, _ in _COSTS)):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("server sees", no_wrap=True)
    return table


def _mean(cells: Sequence[Row], column: str, digits: int, *, spread: bool = False) -> str:
    found = average(cell.get(column) for cell in cells)
    if found is None:
        return DASH
    if column.startswith("epsilon"):
        # A guarantee holds for everybody, so the worst of the cells is what may be said of them all.
        return number(max(float(cell[column]) for cell in cells), digits)
    deviation = f" ±{found.deviation:.{digits}f}" if spread and found.count > 1 else ""
    return number(found.mean, digits) + deviation


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


def _seen(privacy: dict[str, Any]) -> str:
    if privacy["trusts_server"]:
        return "true ratings"
    return "noise" if privacy["hides_rated_items"] else "items, noise"


def wide_console() -> Console:
    """Return a console on which a table keeps its columns, also where there is no terminal."""
    console = Console()
    console.width = max(console.width, 132)
    return console
