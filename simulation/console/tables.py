"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from simulation.analysis.delta_notes import notes_on_delta
from simulation.analysis.numbers import DASH, number
from simulation.analysis.populations import population_words
from simulation.analysis.projection import METHOD, Projection
from simulation.analysis.settings import settings_of
from simulation.analysis.small_tables import SmallTable, run_table, tables_of_comparison
from simulation.storage.tables import Row

if TYPE_CHECKING:
    from simulation.auditing import Audit, PresetAudit
    from simulation.comparison.running import ComparisonResult


def results_table(summary: Mapping[str, Any]) -> Table:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    return _of_settings(run_table(summary))


def comparison_tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table per evaluation, with one line per protocol and epsilon."""
    return [_of_settings(table) for table in tables_of_comparison(rows)]


def comparison_notes(result: ComparisonResult) -> Iterator[str]:
    """Yield what a reader of the tables must know beside them."""
    if (delta := result.comparison.config.match.delta) is not None:
        yield from notes_on_delta(delta, settings_of(result.rows))
    yield from population_words(result.rows)


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


def _of_settings(small: SmallTable) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
    table.title = small.title
    table.add_column(small.first, no_wrap=True)
    for column in small.columns:
        heading = "\n".join([*wrap(column.title, _HEADING), *wrap(column.hint, _HEADING)])
        table.add_column(heading, justify="right" if column.numeric else "left", no_wrap=True)
    for setting in small.settings:
        table.add_row(setting.name, *(column.text(setting) for column in small.columns))
    return table


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
    console.width = max(console.width, 260)
    return console
