"""How a command ends: its exit code, and one line for every error that is not a defect of the program."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from click import ClickException
from click.exceptions import NoArgsIsHelpError

from dprec.errors import InputError, RunError, shown

_INPUT, _FAILED, _INTERRUPTED = 2, 1, 130

_OPTIONS = {
    "overrides": "--set",
    "jobs": "--jobs",
    "trials": "--trials",
    "confidence": "--confidence",
    "population": "--population",
    "metric": "--metric",
    "track": "--track",
}
"""The option for each argument of the verbs that an error may name."""


def exit_code(command: Callable[[], object]) -> int:
    """Call a command and return its exit code; what it raises becomes one line on standard error.

    Parameters
    ----------
    command : callable
        Its result is the exit code if it is an int.

    Returns
    -------
    int
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
