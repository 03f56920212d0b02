"""The tables of the documents, from committed summaries of comparisons and from the presets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulation.analysis.vocabulary import DASH
from simulation.storage.column import Column, Line


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return a table in Markdown."""
    rule = ["--:" if right else "---" for right in numeric or [False] * len(heads)]
    return "\n".join(f"| {' | '.join(map(_escaped, cells))} |" for cells in (heads, rule, *rows))


def column_table(columns: Iterable[Column[Line]], lines: Sequence[Line]) -> str:
    """Return a table with one row a line, without the columns that apply to none of the lines."""
    shown = [column for column in columns if any(column.text(line) not in ("", DASH) for line in lines)]
    heads = [", ".join(filter(None, (column.title, column.unit))) for column in shown]
    rows = ([column.text(line) for column in shown] for line in lines)
    return table(heads, rows, [column.numeric for column in shown])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
