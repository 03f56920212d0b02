"""What a column of a table is, from the field of a summary that it shows to pages, terminal and documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dprec.errors import InputError, accepted_by, listed

Direction = Literal["lower", "higher"]
"""Which way is better."""

LOWER: Final = "lower"
HIGHER: Final = "higher"

Amount = Annotated[float, Field(ge=0)]
"""A number that is never negative."""

Line = TypeVar("Line")
Other = TypeVar("Other")

_KINDS = {"string": "text", "boolean": "flag", "integer": "integer", "number": "number"}
"""What a cell holds, by its type in a JSON Schema."""

_LARGEST = 1e100
"""Above it, sums of numbers might have no value."""


def _no_value(line: object) -> float | str | None:
    return None


def _no_text(line: object) -> str:
    return ""


@dataclass(frozen=True)
class Column(Generic[Line]):
    """A column of a table.

    It marks a field of a summary that is a column of comparison.csv, or timing.csv, and takes its name, type
    and meaning from there (`simulation.storage.columns.COLUMNS`). A mapping has a column for each of its
    keys, which ``{key}`` in the title stands for; ``{of}`` stands for the word that the group of the field is
    annotated with, such as a direction.
    """

    title: str = ""
    """Its heading; by default its name."""
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
    name: str = ""
    """In files; of a mapping, what is before the key."""
    holds: Any = float
    """The type of a cell, as pydantic takes it."""
    meaning: str = ""
    key: str | None = None
    """Of the summary, dotted; None for what is no figure of a run."""
    keys: str | None = None
    """Of the columns of a mapping, a pattern of what follows the name."""
    mapping: str = ""
    """Of one key of a mapping, the name before it."""
    value: Callable[[Line], float | str | None] = _no_value
    """What a line of a table is sorted by; None if the column does not apply to it."""
    text: Callable[[Line], str] = _no_text
    """The same, as text for a reader."""
    figures: tuple[str, ...] = ()
    """The columns of comparison.csv that it shows, of results."""
    wrapped: bool = False
    """Whether its text may go on in the next line, where there is little room."""
    rank: int = 0
    """Where there is little room, columns of a higher rank are left out first, and of one rank the last."""

    @property
    def family(self) -> str:
        """Its name, without the key of a mapping."""
        return self.mapping or self.name

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a cell that is not empty."""
        schema = self._adapter.json_schema()
        return next((branch for branch in schema.get("anyOf", ()) if branch["type"] != "null"), schema)

    @property
    def kind(self) -> str:
        """What a cell holds: text, a flag, an integer or a number."""
        return _KINDS[self.schema["type"]]

    @property
    def numeric(self) -> bool:
        """Whether its cells are numbers, which are aligned to the right."""
        return self.holds is float or (self.holds is not str and self.kind in ("integer", "number"))

    def read(self, text: str, where: str) -> Any:
        """Return the value of a cell that is not empty; raises InputError."""
        try:
            value = self._adapter.validate_strings(text)
        except ValidationError as error:
            first = error.errors()[0]
        else:
            if isinstance(value, float) and abs(value) > _LARGEST:
                raise InputError(where, repr(text), f"a number of at most {_LARGEST:g}, or nothing")
            return value
        choices = self.schema.get("enum", [])
        accepted = listed(choices, text) if choices else accepted_by(first)
        raise InputError(where, repr(text), f"{accepted}, or nothing")

    def of_key(self, key: str) -> Column[Line]:
        """Return the column of one key of a mapping."""
        title, name = self.title.replace("{key}", key), f"{self.name}_{key}"
        return replace(self, title=title, name=name, key=f"{self.key}.{key}", keys=None, mapping=self.name)

    def of(self, part: Callable[[Other], Line]) -> Column[Other]:
        """Return the column of a table whose lines have what it speaks of as a part."""
        return Column(
            self.title,
            self.unit,
            holds=self.holds,
            value=lambda line: self.value(part(line)),
            text=lambda line: self.text(part(line)),
        )

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.holds, config=ConfigDict(allow_inf_nan=False))


IN_FILES: Final = Column[Any](where="files")
TIMED: Final = Column[Any](where="timing")


def better(title: str, direction: Direction, *, brief: bool = True) -> Column[Any]:
    """Return how a metric of accuracy is shown; on pages alone if it is not brief."""
    return Column(title, digits=4, better=direction, where="everywhere" if brief else "page")


def loss(title: str, unit: str = "") -> Column[Any]:
    """Return how a privacy loss is shown."""
    return Column(title, unit, written="loss", averaged="largest")


def on_pages(title: str, unit: str = "", digits: int = 0) -> Column[Any]:
    """Return how a figure is shown that only pages have room for."""
    return Column(title, unit, digits, where="page")
