"""What `dprec ls` and `dprec diff` print. Names in files are anybody's: what is no text is not printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dprec.errors import shown
from simulation.analysis.vocabulary import DASH, number
from simulation.console.terminal import Column, fitted, print_lines, table_console, width_of

if TYPE_CHECKING:
    from simulation.comparison.tabulation import Difference, Gain
    from simulation.listing import Found


def print_found(found: Sequence[Found], folder: Path, *, as_json: bool) -> None:
    """Print what a folder holds, a line each."""
    if as_json:
        print_json([each.values() for each in found])
        return
    if not found:
        typer.echo(f"no results in {text_of(folder)}")
        return
    columns = [
        text_column("", (each.path for each in found)),
        text_column("kind", (each.kind for each in found), rank=3),
        text_column("what", (each.what for each in found), rank=4, wrapped=True),
        text_column(
            "changed", (each.changed.astimezone().strftime("%Y-%m-%d %H:%M") for each in found), rank=2
        ),
        text_column("state", (each.progress for each in found), rank=1),
        text_column("best", (each.damage or each.best for each in found), wrapped=True),
    ]
    print_table(columns)
    if any(each.state == "unfinished" for each in found):
        print_lines(["What is not finished runs, or was interrupted: --resume -o DIR goes on."])


def print_difference(difference: Difference, *, as_json: bool) -> None:
    """Print in what two runs or comparisons differ."""
    if as_json:
        print_json(difference.values())
        return
    names = text_of(difference.first), text_of(difference.second)
    if difference.settings:
        settings = difference.settings.items()
        print_table(
            [
                text_column("setting", (key for key, _ in settings)),
                *(
                    text_column(name, (pair[at] for _, pair in settings), wrapped=True)
                    for at, name in enumerate(names)
                ),
            ]
        )
    else:
        typer.echo("the same settings")
    typer.echo()
    if difference.figures:
        figures = difference.figures
        of = (
            [text_column("protocol", (each.of for each in figures))]
            if difference.same_ratings is None
            else []
        )
        print_table(
            [
                *of,
                text_column("figure", (each.name for each in figures)),
                _figures(names[0], [each.first for each in figures]),
                _figures(names[1], [each.second for each in figures]),
            ]
        )
    else:
        typer.echo("the same figures")
    print_lines(_last_words(difference, names))


def _last_words(difference: Difference, names: tuple[str, str]) -> list[str]:
    """Return the lines below the tables."""
    only = zip(names, (difference.only_first, difference.only_second), strict=True)
    lines = [f"only in {name}: {', '.join(map(text_of, labels))}" for name, labels in only if labels]
    if difference.same_ratings is False:
        lines.append("other test ratings, so that users cannot be compared")
    lines += [_gain_in_words(gain, names[1]) for gain in difference.gains]
    return ["", *lines] if lines else []


def _gain_in_words(gain: Gain, second: str) -> str:
    worse = gain.better_by < 0
    by, low, high = (
        (gain.better_by, gain.low, gain.high) if not worse else (-gain.better_by, -gain.high, -gain.low)
    )
    if by == 0:
        return f"{gain.metric.label}: no difference"
    words = f"{second} {'worse' if worse else 'better'} by {number(by, gain.metric.digits)}"
    interval = (
        f"95 % interval over users {number(low, gain.metric.digits)} to {number(high, gain.metric.digits)}"
    )
    beyond_chance = "" if gain.significant else ", not significant"
    return f"{gain.metric.label}: {words}{beyond_chance}; {interval}"


def text_column(heading: str, values: Iterable[object], rank: int = 0, *, wrapped: bool = False) -> Column:
    """Return a column of words."""
    return Column(heading, tuple(map(text_of, values)), numeric=False, wrapped=wrapped, rank=rank)


def _figures(heading: str, values: Sequence[float | str | bool | None]) -> Column:
    return Column(heading, tuple(map(_figure, values)))


def _figure(value: float | str | bool | None) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def text_of(value: object) -> str:
    """Return a value in one line, without what a terminal would obey."""
    text = DASH if value is None else value if isinstance(value, str) else str(value)
    return shown("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))


def print_table(columns: Sequence[Column]) -> None:
    """Print a table as it fits the terminal."""
    shown_on = table_console(sum(max(map(len, (each.heading, *each.cells))) + 2 for each in columns))
    shown_on.print(fitted(columns, width_of(shown_on)).table)


def print_json(values: Any) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(values, indent=2, default=str))
