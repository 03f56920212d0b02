"""How wide output is: as the terminal, or as COLUMNS says; without either, tables are whole."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable

import typer
from rich.console import Console

_USUAL_WIDTH = 80

_TEXT_WIDTH = 260
"""Columns of a table without a terminal, if its figures need no more: text beyond it goes on below."""


def console(*, stderr: bool = False) -> Console:
    """Return a console; one of no width at all is as wide as a usual one."""
    made = Console(stderr=stderr, highlight=False)
    if made.width < 1:
        made.width = _USUAL_WIDTH
    return made


def width_of(shown: Console) -> int | None:
    """Return the columns that a console has, or None if it is no terminal and COLUMNS does not say."""
    given = os.environ.get("COLUMNS", "")
    return shown.width if shown.is_terminal or (given.isdigit() and int(given) > 0) else None


def table_console(needed: int = 0) -> Console:
    """Return a console for tables; without a terminal it is wide enough for a table of the given width."""
    made = console()
    if width_of(made) is None:
        made.width = max(_TEXT_WIDTH, needed)
    return made


def narrow_console() -> Console:
    """Return a console that without a terminal is as wide as a usual one."""
    made = console()
    made.width = width_of(made) or _USUAL_WIDTH
    return made


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; on a terminal, what is too long goes on below, indented, between two words."""
    width = width_of(console())
    for line in lines:
        if width is None or len(line) <= width:
            typer.echo(line)
            continue
        indent = " " * (len(line) - len(line.lstrip(" -")) + 2)
        # A path or a name is never broken, so that it can be copied.
        typer.echo(
            textwrap.fill(
                line,
                max(width, len(indent) + 1),
                subsequent_indent=indent[: width // 2],
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
