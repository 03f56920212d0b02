"""What a notebook shows of a channel, a run and a comparison: small tables, and the figure of a channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from dprec.channel import Channel
from dprec.reports import DeviceChannel
from simulation.analysis.columns import SmallTable, run_table, tables_of_comparison
from simulation.pages.comparison_tables import heading
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.panels import WIDE
from simulation.pages.page import Column, table, text_cell
from simulation.storage.tables import Row


def plot_channel(channel: Channel | DeviceChannel) -> Figure:
    """Draw what a channel sends for every true rating, and its mean."""
    noise = channel if isinstance(channel, DeviceChannel) else DeviceChannel(channel, 1, per_user=False)
    return draw_noise(WIDE, noise)


def run_html(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as HTML."""
    return _html(run_table(summary), str(summary["name"]))


def comparison_html(rows: Sequence[Row], name: str) -> str:
    """Return the tables of a comparison as HTML, one per evaluation."""
    return "".join(_html(each, name) for each in tables_of_comparison(rows))


def _html(small: SmallTable, name: str) -> str:
    columns = [Column(small.first, numeric=False), *map(heading, small.columns)]
    rows = [
        [text_cell(result.name), *(text_cell(column.text(result)) for column in small.columns)]
        for result in small.results
    ]
    return str(table(small.title or name, columns, rows, sortable=False))
