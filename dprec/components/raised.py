"""What user-defined code raises: for whoever wrote it, the lines of its own files, as text that travels."""

import sys
import traceback
from pathlib import Path
from types import FrameType

from dprec.errors import InputError, RunError, escaped, one_line, out_of_memory, with_kind
from dprec.start import PACKAGES

OF_PYTHON = sys.stdlib_module_names - {"__main__"}
"""The modules of Python itself."""

_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of packages that somebody else wrote."""


class CodeError(Exception):
    """What code has raised, here or in another process; its words are the whole traceback.

    ``line``: what was raised, and where; ``own``: the traceback as far as it is in files of the user's own,
    empty if it is in none; ``whole``: all of it. Any of them may tell of a profile, so that no reply has it.
    """

    def __init__(self, line: str, own: str, whole: str) -> None:
        super().__init__(line, own, whole)
        self.line, self.own, self.whole = line, own, whole

    def __str__(self) -> str:
        return self.whole

    @classmethod
    def of(cls, error: BaseException) -> "CodeError":
        """Return what an exception says that has just been caught."""
        whole_trace = escaped("".join(traceback.format_exception(error)))
        if isinstance(error, InputError | RunError):  # which says where by itself
            cause = error.__cause__
            return cls(one_line(error), cause.own if isinstance(cause, cls) else "", whole_trace)
        message = out_of_memory(error) if isinstance(error, MemoryError) else with_kind(error)
        frames = traceback.StackSummary.extract(
            (frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_own(frame)
        )
        if not frames:
            return cls(f"{message} (--debug shows where)", "", whole_trace)
        lines = "".join(["Traceback (most recent call last):\n", *frames.format(), message])
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
        return cls(f"{message} ({place})", escaped(lines), whole_trace)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame is of a file that is neither ours, nor Python's, nor of an installed package."""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    written = file != "<string>" and _INSTALLED.isdisjoint(Path(file).parts)
    return written and module.partition(".")[0] not in OF_PYTHON.union(PACKAGES)
