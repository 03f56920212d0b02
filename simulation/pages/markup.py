"""Turns values into HTML: templates that escape whatever is not markup, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from simulation.analysis.vocabulary import DASH, number
from simulation.pages.figures.rendering import inline_svg

_LONG_NAME = 16
"""Length beyond which the name of a row may wrap if the page is narrow."""


def render_template(name: str, **values: Any) -> Markup:
    """Return a template of this package, filled in.

    Parameters
    ----------
    name : str
        Its file in templates/.
    **values
        Escaped where they are used, unless they are `Markup`.
    """
    return Markup(_templates().get_template(name).render(values))


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("simulation.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = lambda svg, name, **options: Markup(inline_svg(svg, name, **options))
    return environment


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    shown: str
    """Text, or markup."""
    value: float | str | None = None
    """What it is sorted by; None sorts last."""

    @property
    def is_long(self) -> bool:
        """Whether it may wrap, as the name of a row."""
        return len(str(self.value)) > _LONG_NAME


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    hint: str = ""
    """Its unit, or how it is counted."""
    numeric: bool = True

    @property
    def css(self) -> str | None:
        """The class of its cells."""
        return "number" if self.numeric else None


def number_cell(value: float | None, digits: int) -> Cell:
    """Return a number as a cell; a dash for one that does not apply."""
    return Cell(number(value, digits), value)


def text_cell(value: object) -> Cell:
    """Return text as a cell; a dash for what does not apply."""
    return Cell(DASH) if value is None else Cell(str(value), str(value))


def table(
    caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, sortable: bool = True
) -> Markup:
    """Return a table.

    Parameters
    ----------
    caption : str
        Names the table.
    rows : sequence of sequence of Cell
        The first cell of each names the row.
    sortable : bool
        Whether its headers are buttons that sort it, if it has more than one row.
    """
    return render_template(
        "table.html",
        caption=caption,
        columns=columns,
        rows=[list(zip(columns, row, strict=True)) for row in rows],
        sortable=sortable,
        buttons=sortable and len(rows) > 1,
    )
