"""The frame of every page: a self-contained document, whose templates escape whatever is not markup."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from simulation.pages.drawing import Draw, Plot
from simulation.pages.looks import COLOURS
from simulation.storage.column import Column, Line

Content = str | Plot | None
"""Markup; text, which becomes a paragraph; or a figure. Nothing is shown of what is empty."""


@dataclass(frozen=True)
class Section:
    """A part of a page, which is left out if nothing is in it."""

    name: str
    """Its anchor."""
    title: str
    content: Sequence[Content]
    folded: bool = True
    """Whether only its title is shown until a reader opens it, or follows a link into it."""


_SHOWN_NOTES = 5
"""Notes that are shown before the rest is unfolded."""


def page(
    title: str,
    kind: str,
    words: str,
    answers: Sequence[Section],
    notes: Sequence[str],
    sections: Sequence[Section],
    draw: Draw,
) -> str:
    """Return a whole page: the answers, the notes, and the sections.

    Notes are what a reader must know, the most important first; from the sixth on they are folded.
    """
    read = {name: files("simulation.pages").joinpath(name).read_text("utf-8") for name in _STATIC}
    light, dark = (
        " ".join(f"--{name}: {values[scheme]};" for name, values in COLOURS.items()) for scheme in (0, 1)
    )
    chips = "".join(f".{name} {{ background: var(--{name}); }}\n" for name in COLOURS if "look" in name)
    style_sheet = (
        f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"{read['page.css']}{chips}"
    )
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style_sheet, read["page.js"])
    ]
    return render_template(
        "page.html",
        title=title,
        kind=kind,
        description=words,
        answers=[(section, parts) for section in answers if (parts := _parts(section, draw))],
        notes=notes[:_SHOWN_NOTES],
        more_notes=notes[_SHOWN_NOTES:],
        sections=[(section, parts) for section in sections if (parts := _parts(section, draw))],
        # This style sheet, this script and an empty icon, and nothing else.
        policy="default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; "
        "base-uri 'none'; form-action 'none'".format(*digests),
        style_sheet=Markup(style_sheet),
        script=Markup(read["page.js"]),
    )


_STATIC = ("page.css", "page.js")


def _parts(section: Section, draw: Draw) -> list[Markup]:
    """Return the parts of a section; figures that follow each other stand side by side if there is room."""
    parts: list[Markup] = []
    for are_plots, group in groupby(filter(None, section.content), key=lambda part: isinstance(part, Plot)):
        if are_plots:
            figures = [draw(plot) for plot in group if isinstance(plot, Plot)]
            parts.append(render_template("figures.html", figures=figures))
        else:
            parts += [
                part if isinstance(part, Markup) else Markup("<p>{}</p>").format(part) for part in group
            ]
    return parts


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
    Nothing is returned without lines.
    """
    if not lines:
        return Markup("")
    cells = [[(column, column.text(line), column.value(line)) for column in columns] for line in lines]
    rows, buttons = list(zip(map(attributes, lines), cells, strict=True)), sortable and len(lines) > 1
    display = {"buttons": buttons, "style": style, "first_shown": first_shown}
    return render_template("table.html", caption=caption, columns=columns, rows=rows, **display)


def bullets(lines: Iterable[str]) -> Markup:
    """Return a list of lines; nothing without any."""
    items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<ul>{}</ul>").format(items) if items else items
