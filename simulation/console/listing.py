"""What `dprec ls` and `dprec diff` print. Names in files are anybody's: what is no text is not printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dprec.errors import shown
from simulation.analysis.vocabulary import DASH, number
from simulation.console.terminal import fitted, print_lines, table_console, width_of
from simulation.storage.column import Column, Line
from simulation.storage.columns import column

if TYPE_CHECKING:
    from simulation.analysis.gains import Gain
    from simulation.comparison.differences import Difference, Figure
    from simulation.listing import Found


def print_found(found: Sequence[Found], folder: Path, *, as_json: bool) -> None:
    """Print what a folder holds, a line each."""
    if as_json:
        print_json([each.values() for each in found])
        return
    if not found:
        typer.echo(f"no results in {text_of(folder)}")
        return
    columns: list[Column[Found]] = [
        text_column("", lambda each: each.path),
        text_column("kind", lambda each: each.kind, rank=3),
        text_column("what", lambda each: each.what, rank=4, wrapped=True),
        text_column("changed", lambda each: each.changed.astimezone().strftime("%Y-%m-%d %H:%M"), rank=2),
        text_column("state", lambda each: each.progress, rank=1),
        text_column("best", lambda each: each.damage or each.best, wrapped=True),
    ]
    print_table(columns, found)
    if any(each.state == "unfinished" for each in found):
        print_lines(["What is not finished runs, or was interrupted: --resume -o DIR goes on."])


def print_difference(difference: Difference, *, as_json: bool) -> None:
    """Print in what two runs or comparisons differ."""
    if as_json:
        print_json(difference.values())
        return
    names = text_of(difference.first), text_of(difference.second)
    if settings := list(difference.settings.items()):
        first, second = (
            text_column(name, partial(_setting, place), wrapped=True) for place, name in enumerate(names)
        )
        print_table([text_column("setting", lambda line: line[0]), first, second], settings)
    else:
        typer.echo("the same settings")
    typer.echo()
    if difference.figures:
        columns: list[Column[Figure]] = [
            text_column("protocol", lambda each: each.of),
            text_column("figure", lambda each: each.name),
            Column(names[0], text=lambda each: _figure(each.first)),
            Column(names[1], text=lambda each: _figure(each.second)),
        ]
        print_table(columns[difference.same_ratings is not None :], difference.figures)
    else:
        typer.echo("the same figures")
    print_lines(_last_words(difference, names))


def _last_words(difference: Difference, names: tuple[str, str]) -> list[str]:
    """Return the lines below the tables."""
    only = zip(names, (difference.only_first, difference.only_second), strict=True)
    lines = [f"only in {name}: {', '.join(map(text_of, labels))}" for name, labels in only if labels]
    if difference.same_ratings is False:
        lines.append("other test ratings, so that users cannot be compared")
    lines += [_gain_in_words(name, gain, names[1]) for name, gain in difference.gains.items()]
    return ["", *lines] if lines else []


def _gain_in_words(name: str, gain: Gain, second: str) -> str:
    label, worse = column(name).title, gain.mean < 0
    by, low, high = (
        number(-own if worse and own else own, gain.digits) for own in (gain.mean, gain.low, gain.high)
    )
    if gain.mean == 0:
        return f"{label}: no difference"
    beyond_chance = "" if gain.significant else ", not significant"
    words = f"{second} {'worse' if worse else 'better'} by {by}{beyond_chance}"
    ends = f"{high} to {low}" if worse else f"{low} to {high}"
    return f"{label}: {words}; 95 % interval over users {ends}"


def text_column(
    title: str, said: Callable[[Line], object], rank: int = 0, *, wrapped: bool = False
) -> Column[Line]:
    """Return a column of words, which are anybody's."""
    return Column(title, holds=str, text=lambda line: text_of(said(line)), rank=rank, wrapped=wrapped)


def _setting(place: int, line: tuple[str, tuple[Any, Any]]) -> Any:
    return line[1][place]


def _figure(value: float | str | bool | None) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def text_of(value: object) -> str:
    """Return a value in one line, without what a terminal would obey."""
    text = DASH if value is None else value if isinstance(value, str) else str(value)
    return shown("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))


def print_table(columns: Sequence[Column[Line]], lines: Sequence[Line]) -> None:
    """Print a table as it fits the terminal."""
    widths = (max(len(text) for text in (each.title, *map(each.text, lines))) + 2 for each in columns)
    shown_on = table_console(sum(widths))
    shown_on.print(fitted(columns, lines, width_of(shown_on)).table)


def print_json(values: Any) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(values, indent=2, default=str))
