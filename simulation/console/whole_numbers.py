"""Whole numbers on the command line, in any of the ways that people write them."""

from __future__ import annotations

import typer


def integer(text: str) -> int:
    """Return an integer written as 100000, 100_000 or 1e5.

    Raises
    ------
    typer.BadParameter
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        raise typer.BadParameter(f"{text!r} is not an integer, such as 100000 or 1e5")
    return int(value)
