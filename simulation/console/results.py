"""What the commands "run", "compare" and "report" print, and how a comparison ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dprec.errors import RunError
from simulation.console.results import (
    comparison_notes,
    comparison_tables,
    print_tables,
    projection_table,
    results_table,
)
from simulation.console.terminal import print_lines
from simulation.storage.directories import REPORT, SUMMARY, TABLE

if TYPE_CHECKING:
    from simulation.comparison.running import ComparisonResult
    from simulation.result import RunResult


def print_run(result: RunResult, folder: Path, population: float | None) -> None:
    """Print a run: its table, what a reader must know, and where everything is."""
    print_tables(lambda width: [results_table(result.summary, width)], str(folder / SUMMARY))
    print_lines(f"- {note}" for note in result.record.summary.notes)
    print_projection(folder, population)
    print_places("run", folder)


def print_comparison(result: ComparisonResult, population: float | None) -> None:
    """Print a comparison: its tables, what a reader must know, and where everything is."""
    print_tables(lambda width: comparison_tables(result.rows, width), _where(result.directory))
    print_lines(f"- {note}" for note in comparison_notes(result))
    print_lines(f"- {each.name} is left out: {each.reason}" for each in result.comparison.left_out)
    if result.rows:
        print_projection(result.directory, population)
    print_places("comparison", result.directory)


def check_complete(result: ComparisonResult) -> None:
    """Refuse a comparison in which runs have failed.

    Raises
    ------
    RunError
        With the first reason, and how to go on.
    """
    if result.failures:
        key, reason = next(iter(result.failures.items()))
        failed = f"{len(result.failures)} of {len(result.comparison.cells)} cells failed, {key}: {reason}"
        raise RunError(f"{failed}; --resume -o {result.directory} runs them again")


def print_projection(folder: Path, population: float | None) -> None:
    """Print the projected traffic of a population, if there is one."""
    if population is not None:
        from simulation.pages import projected

        rows = projected(folder, population)
        print_tables(lambda width: [projection_table(rows, population, width)], str(folder / REPORT))


def print_places(what: str, folder: Path) -> None:
    """Print where the page of a directory is, if it was drawn, and where the rest."""
    if (folder / REPORT).is_file():
        typer.echo(f"page: {folder / REPORT}")
    typer.echo(f"{what} directory: {folder}")


def _where(folder: Path) -> str:
    """Return where every column of a comparison is."""
    page = folder / REPORT
    return f"{folder / TABLE} and {page}" if page.is_file() else str(folder / TABLE)
