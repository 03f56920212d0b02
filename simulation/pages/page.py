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

from simulation.analysis.columns import Line, TableColumn
from simulation.analysis.vocabulary import DASH
from simulation.pages.figures.panels import page_colours
from simulation.pages.figures.rendering import Rendered


@cache
def _script() -> str:
    """Return the scripts: of tables and sections, and of what figures show when pointed at."""
    return _read("page.js") + _read("hover.js")


@cache
def _style_sheet() -> str:
    """Return the colours that a page shares with its figures, light and dark, and the layout."""
    looks = [name for name in page_colours(dark_mode=False) if name.startswith("look-")]
    chips = "".join(f".{look} {{ background: var(--{look}); }}\n" for look in looks)
    return (
        f":root {{ {_colours(dark_mode=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_colours(dark_mode=True)} }} }}\n"
        f"{_read('page.css')}{_read('comparison.css')}{_read('figures.css')}{chips}"
    )


def _content_security_policy() -> str:
    """Return the policy: this style sheet, this script and an empty icon, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(_style_sheet())}; "
        f"script-src {_digest(_script())}; base-uri 'none'; form-action 'none'"
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
    return Environment(
        loader=PackageLoader("simulation.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def cells_of(columns: Sequence[TableColumn[Line]], line: Line) -> list[tuple[TableColumn[Line], str, Any]]:
    """Return what columns say of a line, for a template: each column, its text, and what it is sorted by."""
    return [(column, column.text(line), column.value(line)) for column in columns]


def table(
    caption: str, columns: Sequence[TableColumn[Line]], lines: Sequence[Line], *, sortable: bool = True
) -> Markup:
    """Return a table, whose first column names the lines.

    Parameters
    ----------
    sortable : bool
        Whether its headers are buttons that sort it, if it has more than one line.
    """
    return render_template(
        "table.html",
        caption=caption,
        columns=columns,
        rows=[cells_of(columns, line) for line in lines],
        sortable=sortable,
        buttons=sortable and len(lines) > 1,
        long_name=_LONG_NAME,
    )


_SHOWN_NOTES = 5
"""Notes that are shown before the rest is unfolded."""

_FEWEST_CONTENTS = 3
"""Sections from which on a page has a table of contents."""


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    name: str
    """Its anchor."""
    title: str
    content: tuple[str, ...]
    """Markup, or text."""
    folded: bool = False
    """Whether only its title is shown until a reader opens it, or follows a link into it."""


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
        policy=_content_security_policy(),
        style_sheet=Markup(_style_sheet()),
        script=Markup(_script()),
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
