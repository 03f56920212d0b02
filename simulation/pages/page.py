"""The frame of every page: one self-contained HTML document that loads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from simulation.analysis.vocabulary import DASH
from simulation.pages.figures.rendering import Rendered
from simulation.pages.page import content_security_policy, render_template, script, style_sheet

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
