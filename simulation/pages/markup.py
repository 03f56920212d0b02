"""HTML as values: whatever is not markup already is escaped, so that nothing in a file can become markup."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis import numbers
from simulation.analysis.numbers import DASH

_LONG_NAME = 16

_VOID = frozenset({"img", "source", "meta", "link", "br", "path", "circle"})


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
    *children
        Markup as it is, anything else escaped; None is left out.
    **attributes
        ``class_`` is class and ``data_value`` is data-value; None is left out, True has no value.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{joined(*children)}</{name}>")


def joined(*children: object) -> Html:
    """Return children one after the other, escaped unless they are markup."""
    return Html(
        "".join(
            child if isinstance(child, Html) else escaped(child) for child in children if child is not None
        )
    )


def escaped(value: object) -> str:
    """Return text in which nothing is markup."""
    return html.escape(str(value), quote=True)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    shown : object
        Text, or markup.
    value : float or str, optional
        What it is sorted by; None sorts last.
    """

    shown: object
    value: float | str | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title : str
    hint : str
        Its unit, or how it is counted.
    numeric : bool
    """

    title: str
    hint: str = ""
    numeric: bool = True


def number_cell(value: float | None, digits: int) -> Cell:
    """Return a number as a cell; a dash for one that does not apply."""
    return Cell(numbers.number(value, digits), value)


def text_cell(value: object) -> Cell:
    """Return text as a cell."""
    return Cell(DASH, None) if value is None else Cell(value, str(value))


def table(
    caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, sortable: bool = True
) -> Html:
    """Return a table in a container of its own that scrolls where the page is narrow.

    Parameters
    ----------
    caption : str
        Names the table.
    columns : sequence of Column
    rows : sequence of sequence of Cell
        The first cell of each names the row.
    sortable : bool
        Whether its headers are buttons that sort it.
    """
    heads = [_head(column, sortable and len(rows) > 1) for column in columns]
    body = [
        element(
            "tr",
            *(
                element(
                    "td" if place else "th",
                    cell.shown,
                    scope=None if place else "row",
                    class_=_classes(column, "" if place else str(cell.value)),
                    data_value=cell.value,
                )
                for place, (column, cell) in enumerate(zip(columns, row, strict=True))
            ),
        )
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *heads)),
            element("tbody", *body),
            data_sortable=sortable or None,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _classes(column: Column, row_name: str) -> str | None:
    """Return the classes of a cell; a long name may be broken into lines where the page is narrow."""
    found = ["number"] * column.numeric + ["long"] * (len(row_name) > _LONG_NAME)
    return " ".join(found) or None


def _head(column: Column, sortable: bool) -> Html:
    label = joined(element("span", column.title), element("small", column.hint) if column.hint else None)
    return element(
        "th",
        element("button", label, type="button") if sortable else label,
        scope="col",
        class_="number" if column.numeric else None,
        aria_sort="none" if sortable else None,
    )
