"""The progress of a computation: types for the code that computes and the code that shows it."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage, a short phrase such as "completing", the steps done and the steps planned;
none are planned where their number is not known, or there is one."""


def silent(stage: str, done: int, planned: int) -> None:
    """Ignore progress."""


def unheard(message: object) -> None:
    """Do nothing."""
