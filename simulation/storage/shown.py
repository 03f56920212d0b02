"""How a figure of a summary is shown in tables, where it is one of their columns."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

Direction = Literal["lower", "higher"]
"""Which way is better."""

LOWER: Final = "lower"
HIGHER: Final = "higher"

Amount = Annotated[float, Field(ge=0)]
"""A number that is never negative."""


@dataclass(frozen=True)
class Shown:
    """Marks a field of a summary that is a column of tables.

    A mapping has a column for each of its keys, which ``{key}`` in the title stands for; ``{of}`` stands for
    the word that the group of the field is annotated with, such as a direction.
    """

    title: str = ""
    """Heading; by default the name of the column."""
    unit: str = ""
    """Its unit, or how it is counted."""
    digits: int = 0
    """Decimals worth showing."""
    better: Direction | None = None
    """Which way is better, of a metric of accuracy."""
    written: Literal["number", "loss"] = "number"
    """As a privacy loss, which has four significant digits, or with its decimals."""
    averaged: Literal["mean", "largest"] = "mean"
    """What stands for several runs: a guarantee is that of the worst."""
    where: Literal["everywhere", "page", "files", "timing"] = "everywhere"
    """In all tables, those of the terminal included; in those of pages; in files alone; or in timing.csv."""


IN_FILES: Final = Shown(where="files")
TIMED: Final = Shown(where="timing")


def better(title: str, direction: Direction, *, brief: bool = True) -> Shown:
    """Return how a metric of accuracy is shown; on pages alone if it is not brief."""
    return Shown(title, digits=4, better=direction, where="everywhere" if brief else "page")


def loss(title: str, unit: str = "") -> Shown:
    """Return how a privacy loss is shown."""
    return Shown(title, unit, written="loss", averaged="largest")


def on_pages(title: str, unit: str = "", digits: int = 0) -> Shown:
    """Return how a figure is shown that only pages have room for."""
    return Shown(title, unit, digits, where="page")
