"""How far a computation has come: one type for whoever computes and for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage, a short phrase such as "completing", the steps done and the steps planned."""


def silent(stage: str, done: int, planned: int) -> None:
    """Report progress to nobody."""
