"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from simulation.comparison.table import Row, average, grouped
from simulation.projection import METHOD, Projection

_FIGURES = (
    "RMSE",
    "MAE",
    "F@k",
    "ε per\nrating",
    "ε per user\n(max)",
    "bytes up\nper user",
    "bytes down\nper user",
)

_COLUMNS = (
    ("rmse", 4),
    ("mae", 4),
    ("f_score_at_k", 4),
    ("epsilon_per_rating", 3),
    ("epsilon_per_user_max", 3),
    ("uplink_message_mean_per_user", 1),
    ("downlink_message_mean_per_user", 1),
)


def results_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """Return one row per run: accuracy, privacy and bytes side by side."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("run", no_wrap=True)
    for column in (
        "RMSE",
        "MAE",
        "F@k",
        "ε per\nrating",
        "ε per user\nmax",
        "bytes up\nper user",
        "bytes down\nper user",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("server sees")
    for summary in summaries:
        accuracy, privacy, traffic = summary["accuracy"], summary["privacy"], summary["traffic"]
        users = traffic["users"]
        table.add_row(
            summary["name"],
            number(accuracy.get("rmse"), 4),
            number(accuracy.get("mae"), 4),
            number(accuracy.get("f_score_at_k"), 4),
            number(privacy["epsilon_per_rating"], 3),
            number(privacy["epsilon_per_user"]["max"], 3),
            number(traffic["uplink"]["message_bytes"] / users, 1),
            number(traffic["downlink"]["message_bytes"] / users, 1),
            _seen(privacy),
        )
    return table


def comparison_table(rows: Sequence[Row]) -> Table:
    """Return one line per protocol and epsilon, averaged over folds and seeds."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("protocol", no_wrap=True)
    for column in ("ε", *_FIGURES):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("server sees", no_wrap=True)
    for (name, epsilon), cells in grouped(rows).items():
        table.add_row(
            name,
            "–" if epsilon is None else f"{epsilon:g}",
            *(_mean(cells, column, digits) for column, digits in _COLUMNS),
            _seen(cells[0]),
        )
    return table


def _mean(cells: Sequence[Row], column: str, digits: int) -> str:
    found = average(cell.get(column) for cell in cells)
    if found is None:
        return "–"
    spread = f" ±{found.deviation:.{digits}f}" if found.count > 1 and column == "rmse" else ""
    return number(found.mean, digits) + spread


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
        ends = ("–" if end is None else f"{end:,.0f}" for end in (projection.low, projection.high))
        table.add_row(label, f"{projection.total:,.0f}", *ends, number(projection.bits_per_second / 1e6, 2))
    return table


def number(value: float | None, digits: int) -> str:
    """Format a number; what does not apply is a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


def _seen(privacy: dict[str, Any]) -> str:
    if privacy["trusts_server"]:
        return "true ratings"
    return "noise" if privacy["hides_rated_items"] else "items, noisy ratings"


def wide_console() -> Console:
    """Return a console on which a table keeps its columns, also where there is no terminal."""
    console = Console()
    console.width = max(console.width, 132)
    return console
