"""The errors that dprec raises on purpose, so that every caller can distinguish them from defects.

`InputError` is for the caller to correct (a file, an argument, the ratings). `SettingError` is its
form for a configured setting; `RunError` means that a run failed although its input was accepted.

Pydantic checks the settings, both those read from a file and those of objects built in Python. This
module rephrases its errors, by their type and the limits that they carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LONGEST_FOUND = 1000
"""Characters of what was found that are shown; it can be a whole file."""


class InputError(ValueError):
    """Input that cannot be used, described in one line, which no terminal takes for commands.

    ``where``: the file and line, the command-line option or the argument at fault; ``found``: what it holds;
    ``accepted``: what would have been accepted.
    """

    def __init__(self, where: str, found: str, accepted: str) -> None:
        self.where, self.found, self.accepted = where, found, accepted
        shortened = found if len(found) <= _LONGEST_FOUND else f"{found[:_LONGEST_FOUND]}..."
        line = f"{where}: {shortened}; accepted: {accepted}"
        super().__init__(_printable(line))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.where, self.found, self.accepted)


def _printable(text: str) -> str:
    """Return text as one line, `escaped`."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Return text with its control characters, but for ends of lines, and what is no Unicode, escaped."""
    return "".join(
        mark if mark.isprintable() or mark == "\n" else mark.encode("unicode_escape").decode()
        for mark in text
    )


class SettingError(InputError):
    """A setting that cannot be used, named relative to the object that has it.

    A completion knows its "rank", but not the configuration that it is part of. The owner of the completion
    adds the path with `within` as the error propagates. ``key``: the setting, relative to the object that is
    configured; empty when several of its settings are incompatible.
    """

    def __init__(self, key: str, found: str, accepted: str) -> None:
        super().__init__(key or "settings", found, accepted)
        self.key = key

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.key, self.found, self.accepted)


def one_line(error: BaseException) -> str:
    """Return what an exception says in one line; the name of its class if it says nothing."""
    try:
        words = " ".join(str(error).split())
    except Exception:  # a user-defined class may not even be able to say it
        words = ""
    return words or type(error).__name__


def with_kind(error: BaseException) -> str:
    """Return the class of an exception, and what it says if it says anything, in one line."""
    kind, words = type(error).__name__, one_line(error)
    return kind if words == kind else f"{kind}: {words}"


@contextmanager
def within(prefix: str) -> Iterator[None]:
    """Prefix the key of a part, such as "completion", to that of any `SettingError` raised in the block."""
    try:
        yield
    except SettingError as error:
        key = f"{prefix}.{error.key}" if error.key else prefix
        raise SettingError(key, error.found, error.accepted) from None


class RunError(RuntimeError):
    """A run that could not be completed; why is one line, which no terminal takes for commands."""

    def __init__(self, reason: str) -> None:
        super().__init__(_printable(reason))


LESS_MEMORY = "fewer users, items, ratings or simulation.workers, or a larger machine"
"""What helps where memory is short."""


def out_of_memory(error: BaseException) -> str:
    """Return in one line what an error says of memory that was short, and what helps."""
    return f"not enough memory ({one_line(error)}): what helps is {LESS_MEMORY}"


@contextmanager
def interrupts_noted(note: Callable[[], str]) -> Iterator[None]:
    """Add a note, such as how to go on, to what ends the block from outside; empty is none.

    That is an interrupt, the end of memory, or an error of the system, such as a full disk.
    """
    _NOTES.append(note)
    try:
        yield
    except (KeyboardInterrupt, MemoryError, OSError, RunError) as ended:
        of_system = not isinstance(ended, RunError) or isinstance(
            ended.__cause__ or ended.__context__, OSError
        )
        if of_system and (words := note()):
            ended.add_note(words)
        raise
    finally:
        _NOTES.remove(note)


_NOTES: list[Callable[[], str]] = []
"""Of the blocks that this process is in."""


def how_to_go_on() -> str:
    """Return the note that an interrupt would have now, in whatever thread; empty without one."""
    return _NOTES[-1]() if _NOTES else ""


UNKNOWN_KEY = "an unknown key"
MAPPING = "a mapping of keys to values"

ACCEPTED = {
    "bool_parsing": "True, False",
    "bool_type": "true or false",
    "dict_type": MAPPING,
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_parsing": "an integer",
    "int_type": "an integer",
    "is_instance_of": "an instance of {class}",
    "json_invalid": "JSON",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": MAPPING,
    "model_type": MAPPING,
    "string_pattern_mismatch": "text that matches '{pattern}'",
    "string_too_long": "at most {max_length} character{plural}",
    "string_too_short": "at least {min_length} character{plural}",
    "string_type": "text",
    "too_long": "at most {max_length} item{plural}",
    "too_short": "at least {min_length} item{plural}",
    "tuple_type": "a list",
}
"""What is accepted, by the type of pydantic's error; names in braces come from the error's context."""

_LONGEST_SHOWN = 80


def accepted_by(error: ErrorDetails) -> str:
    """Return what would have been accepted instead of the input of a pydantic error."""
    if error["type"] not in ACCEPTED:
        # None of this project's fields cause such an error, but a field of a user-defined class may.
        return error["msg"]
    context: Mapping[str, Any] = error.get("ctx", {})
    length = context.get("min_length", context.get("max_length"))
    words = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }
    return ACCEPTED[error["type"]].format(**words, plural="" if length == 1 else "s")


def shown(text: str) -> str:
    """Return a value for a message, cut off if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(names: Sequence[str], given: object) -> str:
    """Return the accepted names, and the most similar to the given one, if any."""
    nearest = get_close_matches(str(given), names, n=1)
    meant = f"; did you mean {nearest[0]}?" if nearest else ""
    return ", ".join(names) + meant


def check_least(what: str, value: float, least: float = 0) -> None:
    """Refuse a number that is below the least, or NaN; raises ValueError."""
    if not value >= least:
        raise ValueError(f"{what} of {value}; accepted: at least {least:g}")
