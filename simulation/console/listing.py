"""What `dprec ls` and `dprec diff` print. Names in files are anybody's: what is no text is not printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from simulation.analysis.vocabulary import number
from simulation.console.terminal import print_json, print_lines, print_table, text_of
from simulation.storage.column import Column, Line
from simulation.storage.columns import column
from simulation.storage.directories import DEPLOYMENT

if TYPE_CHECKING:
    from simulation.comparison.differences import Difference, UnequalFigure
    from simulation.listing import Found


def text_column(
    title: str, content_of: Callable[[Line], object], rank: int = 0, *, wrapped: bool = False
) -> Column[Line]:
    """Return a column of words, which are anybody's."""
    return Column(title, holds=str, text=lambda line: text_of(content_of(line)), rank=rank, wrapped=wrapped)


def print_found(entries: Sequence[Found], folder: Path, *, as_json: bool) -> None:
    """Print what a folder holds, a line each."""
    if as_json:
        print_json([entry.values() for entry in entries])
        return
    if not entries:
        typer.echo(f"no results in {text_of(folder)}")
        return
    columns: list[Column[Found]] = [
        text_column("", lambda entry: entry.path),
        text_column("kind", lambda entry: entry.kind, rank=3),
        text_column("what", lambda entry: entry.what, rank=4, wrapped=True),
        text_column("changed", lambda entry: entry.changed.astimezone().strftime("%Y-%m-%d %H:%M"), rank=2),
        text_column("state", lambda entry: entry.progress, rank=1),
        text_column("best", lambda entry: entry.damage or entry.best, wrapped=True),
    ]
    print_table(columns, entries, "dprec ls --json")
    unfinished = [entry.path for entry in entries if entry.state == "unfinished"]
    of_pilots = [path for path in unfinished if (path.absolute().parent.parent / DEPLOYMENT).is_file()]
    begun = "What is not finished runs, or was interrupted"
    if len(of_pilots) < len(unfinished):
        print_lines([f"{begun}: the same command with --resume -o DIR goes on."])
    if of_pilots:
        print_lines([f"{begun}, in a pilot: dprec-pilot resume SERVER DIR goes on."])


def print_difference(difference: Difference, *, as_json: bool) -> None:
    """Print in what two runs or comparisons differ."""
    if as_json:
        print_json(difference.values())
        return
    first, second = text_of(difference.first), text_of(difference.second)
    if difference.settings:
        settings: list[Column[tuple[str, tuple[object, object]]]] = [
            text_column("setting", lambda line: line[0]),
            text_column(first, lambda line: line[1][0], wrapped=True),
            text_column(second, lambda line: line[1][1], wrapped=True),
        ]
        print_table(settings, list(difference.settings.items()), "dprec diff --json")
    else:
        typer.echo("the same settings")
    typer.echo()
    if difference.figures:
        figures: list[Column[UnequalFigure]] = [
            text_column("protocol", lambda figure: figure.of),
            text_column("figure", lambda figure: figure.name),
            Column(first, text=lambda figure: _figure(figure.first)),
            Column(second, text=lambda figure: _figure(figure.second)),
        ]
        columns = figures[difference.same_ratings is not None :]
        print_table(columns, difference.figures, "dprec diff --json")
    else:
        typer.echo("the same figures")
    only = ((first, difference.only_first), (second, difference.only_second))
    lines = [f"only in {name}: {', '.join(map(text_of, labels))}" for name, labels in only if labels]
    if difference.same_ratings is False:
        lines.append("other test ratings, so that users cannot be compared")
    for name, gain in difference.gains.items():
        # What is worse by so much has the ends of its interval the other way round.
        sign, words = (-1, "worse") if gain.mean < 0 else (1, "better")
        ends = (gain.mean, *(gain.low, gain.high)[::sign])
        by, low, high = (number((end and sign * end) or end, gain.digits) for end in ends)
        chance = "" if gain.significant else ", not significant"
        sentence = f"{second} {words} by {by}{chance}; 95 % interval over users {low} to {high}"
        lines.append(f"{column(name).title}: {sentence if gain.mean else 'no difference'}")
    print_lines(["", *lines] if lines else [])


def _figure(value: float | str | bool | None) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text_of(value)
