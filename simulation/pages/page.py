"""The frame of every page: a self-contained document, whose templates escape whatever is not markup."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from simulation.analysis.columns import free_column
from simulation.analysis.vocabulary import DASH, number
from simulation.pages.drawing import Draw, Plot
from simulation.pages.looks import COLOURS
from simulation.storage.column import Column, Line


@cache
def _style_sheet() -> str:
    """Return the colours that a page shares with its figures, light and dark, and the layout."""
    light, dark = (
        " ".join(f"--{name}: {values[scheme]};" for name, values in COLOURS.items()) for scheme in (0, 1)
    )
    chips = "".join(f".{name} {{ background: var(--{name}); }}\n" for name in COLOURS if "look" in name)
    return (
        f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"{_read('page.css')}{_read('comparison.css')}{chips}"
    )


def _read(name: str) -> str:
    return files("simulation.pages").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def render_template(name: str, **values: Any) -> Markup:
    """Return a template of this package, filled in with values that are escaped unless they are `Markup`."""
    return Markup(_templates().get_template(name).render(values))


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("simulation.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def table(
    caption: str,
    columns: Sequence[Column[Line]],
    lines: Sequence[Line],
    *,
    sortable: bool = True,
    style: str = "",
    first_shown: int = 0,
    attributes: Callable[[Line], Mapping[str, str]] = lambda line: {},
) -> Markup:
    """Return a table, whose first column names the lines; it is sorted by its headers if that is wanted.

    Before a reader chooses others, so many columns are ``first_shown``; 0 is for no choice, and no filter.
    """
    cells = [[(column, column.text(line), column.value(line)) for column in columns] for line in lines]
    rows, buttons = list(zip(map(attributes, lines), cells, strict=True)), sortable and len(lines) > 1
    shown = {"buttons": buttons, "style": style, "first_shown": first_shown}
    return render_template("table.html", caption=caption, columns=columns, rows=rows, **shown)


Cell = str | tuple[float | None, str] | None
"""Text, or a number and how it is written; a dash for None."""


def cell(value: float | None, written: int | Callable[[float], str]) -> tuple[float | None, str]:
    """Return a number with so many decimals, or written in a way of its own; a dash for None."""
    if value is None:
        return None, DASH
    return value, number(value, written) if isinstance(written, int) else written(value)


def rows_table(
    caption: str,
    headings: Sequence[str | tuple[str, str]],
    rows: Sequence[Sequence[Cell]],
    *,
    sortable: bool = True,
) -> Markup:
    """Return a table of rows of cells; a heading may have a hint, such as a unit."""

    def column(place: int, title: str, hint: str = "") -> Column[Sequence[Cell]]:
        def parts(row: Sequence[Cell]) -> tuple[float | str | None, str]:
            held = row[place]
            return held if isinstance(held, tuple) else (held, DASH if held is None else held)

        numeric = any(isinstance(row[place], tuple) for row in rows)
        return free_column(title, hint, lambda row: parts(row)[0], lambda row: parts(row)[1], numeric=numeric)

    titles = [(each,) if isinstance(each, str) else each for each in headings]
    columns = [column(place, *title) for place, title in enumerate(titles)]
    return table(caption, columns, rows, sortable=sortable)


_SHOWN_NOTES = 5
"""Notes that are shown before the rest is unfolded."""

_FEWEST_CONTENTS = 3
"""Unfolded sections from which on a page has a table of contents."""


@dataclass(frozen=True)
class Section:
    """A part of a page, which is left out if nothing is in it."""

    name: str
    """Its anchor."""
    title: str
    content: Sequence[str | Sequence[Plot]]
    """Markup, text, which becomes a paragraph, and figures."""
    folded: bool = False
    """Whether only its title is shown until a reader opens it, or follows a link into it."""


def page(
    title: str,
    kind: str,
    words: str,
    notes: Sequence[str],
    sections: Sequence[Section],
    draw: Draw,
    answer: Markup | None = None,
    scripts: Sequence[str] = (),
) -> str:
    """Return a whole page: the answer, the notes, a table of contents, and the sections.

    Notes are what a reader must know, the most important first; from the sixth on they are folded. Scripts
    are files of this package that run beside those of every page.
    """
    script = "".join(map(_read, ("page.js", *scripts)))
    shown = [
        (each, parts) for each in sections if (parts := [_part(part, draw) for part in each.content if part])
    ]
    return render_template(
        "page.html",
        title=title,
        kind=kind,
        description=words,
        answer=answer,
        notes=notes[:_SHOWN_NOTES],
        more_notes=notes[_SHOWN_NOTES:],
        # Where every section is folded, their titles are the contents.
        with_contents=sum(not each.folded for each, _ in shown) >= _FEWEST_CONTENTS,
        sections=shown,
        # This style sheet, this script and an empty icon, and nothing else.
        policy=f"default-src 'none'; img-src data:; style-src {_digest(_style_sheet())}; "
        f"script-src {_digest(script)}; base-uri 'none'; form-action 'none'",
        style_sheet=Markup(_style_sheet()),
        script=Markup(script),
    )


def _part(part: str | Sequence[Plot], draw: Draw) -> Markup:
    if isinstance(part, str):
        return part if isinstance(part, Markup) else Markup("<p>{}</p>").format(part)
    return figures(part, draw)


def figures(plots: Sequence[Plot], draw: Draw, *, folded: bool = False) -> Markup:
    """Return figures beside each other if there is room, with their captions folded if that is wanted."""
    return render_template("figures.html", figures=[draw(plot) for plot in plots], folded=folded)


def bullets(lines: Iterable[str]) -> Markup:
    """Return a list of lines; nothing without any."""
    every = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<ul>{}</ul>").format(every) if every else every
