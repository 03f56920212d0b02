"""Output that fits the terminal, and how a command ends: an exit code, and one line for every error."""

from __future__ import annotations

import errno
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from click import ClickException
from click.exceptions import NoArgsIsHelpError
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dprec.errors import InputError, RunError, out_of_memory, shown

if TYPE_CHECKING:
    from simulation.storage.column import Column, Line

_USUAL_WIDTH = 80


def console(*, stderr: bool = False) -> Console:
    """Return a console; one of no width at all is as wide as a usual one."""
    terminal = Console(stderr=stderr, highlight=False)
    if terminal.width < 1:
        terminal.width = _USUAL_WIDTH
    return terminal


def width_of(terminal: Console) -> int | None:
    """Return the columns that a console has, or None if it is no terminal and COLUMNS does not say."""
    columns = os.environ.get("COLUMNS", "")
    return terminal.width if terminal.is_terminal or (columns.isdigit() and int(columns) > 0) else None


def narrow_console() -> Console:
    """Return a console that without a terminal is as wide as a usual one."""
    terminal = console()
    terminal.width = width_of(terminal) or _USUAL_WIDTH
    return terminal


def print_json(values: Any) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(values, indent=2, default=str))


def text_of(value: object) -> str:
    """Return a value, which is anybody's, in one line, without what a terminal would obey."""
    return shown(printable("\N{EN DASH}" if value is None else str(value)))


def printable(text: str) -> str:
    """Return a text in one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


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


_GAP = 2
"""Characters between two columns."""

_NARROWEST_TEXT = 12
"""Least characters per line of a text that may be wrapped, unless it is shorter."""


@dataclass(frozen=True)
class FittedTable:
    """A table that fits."""

    table: Table
    width: int
    """Characters that it needs."""
    left_out: int
    """Columns that found no place."""


def _placed(
    column: Column[Line], lines: Sequence[Line], wrapped: bool, heading_width: int | None
) -> tuple[str, tuple[str, ...], int]:
    """Return the heading of a column, its cells, and the least characters that it needs.

    ``heading_width``: characters of a line of the heading; by default, as many as its cells have.
    """
    cells, heading = tuple(map(column.text, lines)), f"{column.title} {column.unit}".strip()
    if heading_width is not None:
        words = [] if column.wrapped else map(len, cells)
        room = max(heading_width, *map(len, heading.split()), *words, 1)
        heading = "\n".join([*textwrap.wrap(column.title, room), *textwrap.wrap(column.unit, room)])
    parts = [part for text in (heading, *cells) for part in text.splitlines()]
    width = max(map(cell_len, parts), default=0)
    if wrapped:
        longest = (cell_len(word) for part in parts for word in part.split())
        width = min(width, max(_NARROWEST_TEXT, *longest, 0))
    return heading, cells, width


def fitted(
    columns: Sequence[Column[Line]],
    lines: Sequence[Line],
    width: int | None,
    title: str | None = None,
    caption: str = "",
    heading_width: int | None = None,
    gap: int = _GAP,
) -> FittedTable:
    """Return the columns that fit as a table; the first by rank is always among them.

    ``columns``: not empty.
    ``width``: characters that there are; by default enough, so that no text is wrapped.
    ``heading_width``: characters of a line of a heading, where it goes on in the next one.
    ``gap``: characters between two columns.
    """
    limited = width is not None
    placed = [_placed(column, lines, column.wrapped and limited, heading_width) for column in columns]
    by_rank = sorted(range(len(placed)), key=lambda place: (columns[place].rank, place))

    def needed(n_columns: int) -> int:
        return sum(placed[place][2] for place in by_rank[:n_columns]) + gap * (n_columns - 1)

    n_fitting = len(columns)
    while n_fitting > 1 and width is not None and needed(n_fitting) > width:
        n_fitting -= 1
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        show_header=any(heading for heading, *_ in placed),
        title=None if title is None else Text(title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
    )
    fitting = sorted(by_rank[:n_fitting])
    for column, (heading, _, least) in ((columns[place], placed[place]) for place in fitting):
        fits = width is None or least <= width
        table.add_column(
            Text(heading),
            justify="right" if column.numeric else "left",
            no_wrap=fits and not (column.wrapped and limited),
            overflow="fold",
            min_width=least if fits else width,
        )
    for cells in zip(*(placed[place][1] for place in fitting), strict=True):
        table.add_row(*map(Text, cells))
    return FittedTable(table, needed(n_fitting), len(columns) - n_fitting)


def print_tables(make: Callable[[int | None], Sequence[FittedTable]], where: str) -> None:
    """Print tables; on a terminal they fit, and what is left out is said.

    ``make``: returns the tables for a width.
    ``where``: where all columns are.
    """
    terminal = console()
    width = width_of(terminal)
    tables = make(width)
    if width is None:
        terminal.width = max([_USUAL_WIDTH, *(fitted_table.width + _GAP for fitted_table in tables)])
    for place, fitted_table in enumerate(tables):
        terminal.print(*([""] if place else []), fitted_table.table)
    if left_out := max((fitted_table.left_out for fitted_table in tables), default=0):
        print_lines([f"left out in a width of {width}: {left_out} columns; all are in {where}"])


def print_table(
    columns: Sequence[Column[Line]],
    lines: Sequence[Line],
    where: str,
    title: str | None = None,
    caption: str = "",
) -> None:
    """Print a table, as `print_tables` does."""
    print_tables(lambda width: [fitted(columns, lines, width, title, caption)], where)


_INPUT, _FAILED, _INTERRUPTED = 2, 1, 130

_OPTIONS = {
    "overrides only": "--only",
    "overrides": "--set",
    "format": "--format",
    "jobs": "--jobs",
    "kinds": "--attack",
    "trials": "--trials",
    "confidence": "--confidence",
    "users_a_day": "--users-a-day",
    "metric": "--metric",
    "track": "--track",
    "save_split": "--save-split",
}
"""The option for each argument of the verbs that an error may name."""


def exit_code(command: Callable[[], object], program: str = "dprec") -> int:
    """Call a command and return its exit code; what it raises becomes one line on standard error.

    Before it come its notes, and where a user's own code has raised it, if it did.

    ``command``: its result is the exit code if it is an int.
    0 done, 1 the run failed, 2 the input cannot be used, 130 interrupted.
    """
    line = ""
    try:
        result = command()
        code = result if isinstance(result, int) else 0
    except (InputError, RunError) as error:
        if user_traceback := getattr(error.__cause__, "own", ""):  # of a `dprec.components.CodeError`
            typer.echo(user_traceback, err=True)
        _echo_notes(error, program)
        code, line = _of_ours(error)
    except typer.Exit as error:
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except NoArgsIsHelpError as error:
        typer.echo(error.format_message(), err=True)
        return error.exit_code
    except ClickException as error:
        code, line = error.exit_code, " ".join(error.format_message().split())
    except MemoryError as error:
        _echo_notes(error, program)
        code, line = _FAILED, out_of_memory(error)
    except OSError as error:
        _echo_notes(error, program)
        code, line = _of_system(error)
    # Typer turns an interrupt from the keyboard into the result of the command.
    if line := "interrupted" if code == _INTERRUPTED else line:
        typer.echo(f"{program}: {line}", err=True)
    return code


def _of_ours(error: InputError | RunError) -> tuple[int, str]:
    """Return the exit code and the line; an option that was typed stands in place of Python's argument."""
    if isinstance(error, RunError):
        return _FAILED, str(error)
    name, space, rest = error.where.partition(" ")
    where = _OPTIONS.get(error.where) or f"{_OPTIONS.get(name, name)}{space}{rest}"
    return _INPUT, str(InputError(where, error.found, error.accepted))


def _of_system(error: OSError) -> tuple[int, str]:
    """Return the exit code and the line of an error of the system; what was typed may be at fault."""
    name, reason = str(error.filename), str(error.strerror)
    if error.errno == errno.ENAMETOOLONG:
        return _INPUT, str(InputError(shown(name), "a name that is too long", "a shorter one"))
    if isinstance(error, PermissionError) and error.filename is not None:
        return _INPUT, str(InputError(name, reason, "a path with permission to use it"))
    return _FAILED, str(RunError(str(error) if error.filename is None else f"{name}: {reason}"))


@contextmanager
def interrupts_explained() -> Iterator[None]:
    """Print what an interrupt leaves behind, as the notes of its exception say."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        _echo_notes(interrupt, "dprec")
        raise


def _echo_notes(error: BaseException, program: str) -> None:
    for note in getattr(error, "__notes__", ()):
        typer.echo(f"{program}: {note}", err=True)
