"""The frame of every page: a self-contained document, whose templates escape whatever is not markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from simulation.analysis.vocabulary import DASH, number
from simulation.pages.figures.panels import page_colours
from simulation.pages.figures.rendering import Rendered, inline_svg


@cache
def script() -> str:
    """Return the scripts: of tables and sections, and of what figures show when pointed at."""
    return _read("page.js") + _read("hover.js")


@cache
def style_sheet() -> str:
    """Return the colours that a page shares with its figures, light and dark, and the layout."""
    looks = [name for name in page_colours(dark_mode=False) if name.startswith("look-")]
    chips = "".join(f".{look} {{ background: var(--{look}); }}\n" for look in looks)
    return (
        f":root {{ {_colours(dark_mode=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_colours(dark_mode=True)} }} }}\n"
        f"{_read('page.css')}{_read('comparison.css')}{_read('figures.css')}{chips}"
    )


def content_security_policy() -> str:
    """Return the policy: this style sheet, this script and an empty icon, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(style_sheet())}; "
        f"script-src {_digest(script())}; base-uri 'none'; form-action 'none'"
    )


def _colours(*, dark_mode: bool) -> str:
    return " ".join(f"--{name}: {value};" for name, value in page_colours(dark_mode=dark_mode).items())


def _read(name: str) -> str:
    return files("simulation.pages").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
    """A cell of a table.

    Parameters
    ----------
    shown : str
        Text, or markup.
    value : float or str, optional
        What it is sorted by; None sorts last.
    """

    shown: str
    value: float | str | None = None

    @property
    def is_long(self) -> bool:
        """Whether it may wrap, as the name of a row."""
        return len(str(self.value)) > _LONG_NAME


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
    columns : sequence of Column
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


_SHOWN_NOTES = 5
"""Notes that are shown before the rest is unfolded."""

_FEWEST_CONTENTS = 3
"""Sections from which on a page has a table of contents."""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    name : str
        Its anchor.
    title : str
    content : tuple
        Markup, or text.
    folded : bool
        Whether only its title is shown until a reader opens it, or follows a link into it.
    """

    name: str
    title: str
    content: tuple[str, ...]
    folded: bool = False


def page(
    title: str,
    kind: str,
    words: str,
    notes: Sequence[str],
    sections: Sequence[Section],
    answer: Markup | None = None,
) -> str:
    """Return a whole page: the answer, the notes, a table of contents, and the sections.

    Parameters
    ----------
    title : str
    kind : str
        What is reported; shown above the title.
    words : str
        What was run.
    notes : sequence
        What a reader must know, as text or markup, the most important first; from the sixth on folded.
    sections : sequence of Section
        Those that apply.
    answer : Markup or None
        What a reader came for, before anything else.
    """
    return render_template(
        "page.html",
        title=title,
        kind=kind,
        description=words,
        answer=answer,
        notes=notes[:_SHOWN_NOTES],
        more_notes=notes[_SHOWN_NOTES:],
        contents=sections if len(sections) >= _FEWEST_CONTENTS else (),
        sections=sections,
        policy=content_security_policy(),
        style_sheet=Markup(style_sheet()),
        script=Markup(script()),
    )


def figures(rendered: Sequence[Rendered], *, folded: bool = False) -> Markup:
    """Return figures beside each other if there is room, with their captions folded if that is wanted."""
    return render_template("figures.html", figures=rendered, folded=folded)


def paragraph(words: str) -> Markup:
    """Return a paragraph."""
    return Markup("<p>{}</p>").format(words)


def dashed(words: str) -> Markup:
    """Return a paragraph in place of a part that does not apply, with a dash before it."""
    return Markup('<p class="dash">{} {}</p>').format(DASH, words)
