"""The errors that dprec raises on purpose, so that every caller can tell them from defects.

`InputError` is the caller's to mend (a configuration, a file, a command line); `RunError` is a run
that could not be completed although its input was accepted.
"""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used, told in one line.

    Parameters
    ----------
    where : str
        The file and line, the configuration key or the argument at fault.
    found : str
        What stands there.
    accepted : str
        What would have been accepted.
    """

    def __init__(self, where: str, found: str, accepted: str) -> None:
        self.where, self.found, self.accepted = where, found, accepted
        line = f"{where}: {found}; accepted: {accepted}"
        super().__init__(" ".join(line.split()))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.where, self.found, self.accepted)


class RunError(RuntimeError):
    """A run that started and could not be completed."""
