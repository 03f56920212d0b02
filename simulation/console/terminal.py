"""Output that fits the terminal, and how a command ends: an exit code, and one line for every error."""

from __future__ import annotations

import errno
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

from dprec.errors import InputError, RunError, shown

if TYPE_CHECKING:
    from simulation.storage.column import Column, Line

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


_GAP = 2
"""Characters between two columns."""

_NARROWEST_TEXT = 12
"""Least characters per line of a text that may be wrapped, unless it is shorter."""


@dataclass(frozen=True)
class Fitted:
    """A table that fits."""

    table: Table
    width: int
    """Characters that it needs."""
    columns: int
    left_out: int
    """Numbers of its columns, and of those among them that found no place."""


@dataclass(frozen=True)
class _Placed:
    """A column with the text of its heading and its cells, and the least characters that it needs."""

    column: Column[Any]
    heading: str
    cells: tuple[str, ...]
    least_width: int


def _placed(column: Column[Line], lines: Sequence[Line], heading_width: int | None) -> _Placed:
    """Return a column whose heading has so many characters a line, or as many as its cells have."""
    cells, heading = tuple(map(column.text, lines)), f"{column.title} {column.unit}".strip()
    if heading_width is not None:
        words = [] if column.wrapped else map(len, cells)
        room = max(heading_width, *map(len, heading.split()), *words, 1)
        heading = "\n".join([*textwrap.wrap(column.title, room), *textwrap.wrap(column.unit, room)])
    parts = [part for text in (heading, *cells) for part in text.splitlines()]
    width = max(map(cell_len, parts), default=0)
    if column.wrapped:
        words = [cell_len(word) for part in parts for word in part.split()]
        width = min(width, max(_NARROWEST_TEXT, *words, 0))
    return _Placed(column, heading, cells, width)


def fitted(
    columns: Sequence[Column[Line]],
    lines: Sequence[Line],
    width: int | None,
    title: str | None = None,
    caption: str = "",
    heading_width: int | None = None,
) -> Fitted:
    """Return the columns that fit as a table; the first by rank is always among them.

    ``columns``: not empty.
    ``width``: characters that there are; by default, enough.
    ``heading_width``: characters of a line of a heading, where it goes on in the next one.
    """
    placed = [_placed(column, lines, heading_width) for column in columns]
    by_rank = sorted(range(len(placed)), key=lambda place: (columns[place].rank, place))

    def needed(kept: int) -> int:
        return sum(placed[place].least_width for place in by_rank[:kept]) + _GAP * (kept - 1)

    kept = len(columns)
    while kept > 1 and width is not None and needed(kept) > width:
        kept -= 1
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        show_header=any(each.heading for each in placed),
        title=None if title is None else Text(title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
    )
    shown = [placed[place] for place in sorted(by_rank[:kept])]
    for each in shown:
        fits = width is None or each.least_width <= width
        table.add_column(
            Text(each.heading),
            justify="right" if each.column.numeric else "left",
            no_wrap=fits and not each.column.wrapped,
            overflow="fold",
            min_width=each.least_width if fits else width,
        )
    for cells in zip(*(each.cells for each in shown), strict=True):
        table.add_row(*map(Text, cells))
    return Fitted(table, needed(kept), len(columns), len(columns) - kept)


_INPUT, _FAILED, _INTERRUPTED = 2, 1, 130

_OPTIONS = {
    "overrides": "--set",
    "jobs": "--jobs",
    "kinds": "--attack",
    "trials": "--trials",
    "confidence": "--confidence",
    "population": "--population",
    "metric": "--metric",
    "track": "--track",
}
"""The option for each argument of the verbs that an error may name."""


def exit_code(command: Callable[[], object]) -> int:
    """Call a command and return its exit code; what it raises becomes one line on standard error.

    ``command``: its result is the exit code if it is an int.
    0 done, 1 the run failed, 2 the input cannot be used, 130 interrupted.
    """
    try:
        code = command()
    except InputError as error:
        return _fail(_as_typed(error), _INPUT)
    except RunError as error:
        return _fail(str(error), _FAILED)
    except typer.Exit as error:
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as error:
        return _unexpected(error)
    # Typer turns an interrupt from the keyboard into the result of the command.
    if code == _INTERRUPTED:
        return _fail("interrupted", _INTERRUPTED)
    return code if isinstance(code, int) else 0


@contextmanager
def interrupts_explained() -> Iterator[None]:
    """Print what an interrupt leaves behind, as the notes of its exception say."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        for note in getattr(interrupt, "__notes__", ()):
            typer.echo(f"dprec: {note}", err=True)
        raise


def _as_typed(error: InputError) -> str:
    """Return an error with the option that was typed in place of the argument of Python."""
    name, space, rest = error.where.partition(" ")
    where = f"{_OPTIONS[name]}{space}{rest}" if name in _OPTIONS else error.where
    return str(InputError(where, error.found, error.accepted))


def _unexpected(error: Exception) -> int:
    if isinstance(error, NoArgsIsHelpError):
        typer.echo(error.format_message(), err=True)
        return error.exit_code
    if isinstance(error, ClickException):
        return _fail(" ".join(error.format_message().split()), error.exit_code)
    if isinstance(error, MemoryError):
        return _fail(f"not enough memory: {error}", _FAILED)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return _fail(
            str(InputError(shown(str(error.filename)), "a name that is too long", "a shorter one")), _INPUT
        )
    if isinstance(error, PermissionError) and error.filename is not None:
        denied = InputError(str(error.filename), str(error.strerror), "a path with permission to use it")
        return _fail(str(denied), _INPUT)
    if isinstance(error, OSError):
        return _fail(str(RunError(str(error))), _FAILED)
    raise error


def _fail(line: str, code: int) -> int:
    typer.echo(f"dprec: {line}", err=True)
    return code
