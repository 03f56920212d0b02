"""The errors that dprec raises on purpose, so that every caller can distinguish them from defects.

`InputError` is for the caller to correct (a file, an argument, the ratings). `SettingError` is its
form for a configured setting; `RunError` means that a run failed although its input was accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LONGEST_FOUND = 1000
"""Characters of what was found that are shown; it can be a whole file."""


class InputError(ValueError):
    """Input that cannot be used, described in one line, which no terminal takes for commands.

    Parameters
    ----------
    where : str
        The file and line, the command-line option or the argument at fault.
    found : str
        What it holds.
    accepted : str
        What would have been accepted.
    """

    def __init__(self, where: str, found: str, accepted: str) -> None:
        self.where, self.found, self.accepted = where, found, accepted
        line = f"{where}: {_cut(found)}; accepted: {accepted}"
        super().__init__(_printable(line))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.where, self.found, self.accepted)


def _cut(found: str) -> str:
    return found if len(found) <= _LONGEST_FOUND else f"{found[:_LONGEST_FOUND]}..."


def _printable(text: str) -> str:
    """Return text as one line, with its control characters, and what is no Unicode, escaped."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in line)


class SettingError(InputError):
    """A setting that cannot be used, named relative to the object that has it.

    A completion knows its "rank", but not the configuration that it is part of. The owner of the
    completion adds the path with `within` as the error propagates.

    Parameters
    ----------
    key : str
        The setting, relative to the object that is configured ("rank", "privacy.epsilon"); empty when
        several settings of that object are incompatible.
    found : str
        What it holds.
    accepted : str
        What would have been accepted.
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
    except Exception:  # somebody's own class may not even be able to say it
        words = ""
    return words or type(error).__name__


@contextmanager
def within(prefix: str) -> Iterator[None]:
    """Prefix the key of a part to the key of any `SettingError` raised in the block.

    Parameters
    ----------
    prefix : str
        The part's own key, as seen from its owner ("completion").
    """
    try:
        yield
    except SettingError as error:
        key = f"{prefix}.{error.key}" if error.key else prefix
        raise SettingError(key, error.found, error.accepted) from None


class RunError(RuntimeError):
    """A run that started and could not be completed; why is one line, which no terminal takes for commands."""

    def __init__(self, reason: str) -> None:
        super().__init__(_printable(reason))


@contextmanager
def interrupts_noted(note: Callable[[], str]) -> Iterator[None]:
    """Add a note to an interrupt of the block, such as how to go on; an empty one is left out."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        if words := note():
            interrupted.add_note(words)
        raise
