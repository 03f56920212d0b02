"""The frame of every page: one self-contained HTML document that loads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from simulation.analysis.numbers import DASH
from simulation.pages.assets import content_security_policy, script, style_sheet
from simulation.pages.figures.rendering import Rendered
from simulation.pages.markup import render_template

_MOST_NOTES, _SHOWN_NOTES = 8, 5
"""Notes that are all shown, and those of more that are shown before the rest is unfolded."""


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
    """

    name: str
    title: str
    content: tuple[str, ...]


def page(title: str, kind: str, words: str, notes: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    kind : str
        What is reported; shown above the title.
    words : str
        What was run.
    notes : sequence
        What a reader must know, as text or markup, the most important first. Many are folded after the first.
    sections : sequence of Section
    """
    shown = notes if len(notes) <= _MOST_NOTES else notes[:_SHOWN_NOTES]
    return render_template(
        "page.html",
        title=title,
        kind=kind,
        description=words,
        notes=shown,
        folded=notes[len(shown) :],
        sections=sections,
        policy=content_security_policy(),
        style_sheet=Markup(style_sheet()),
        script=Markup(script()),
    )


def figures(rendered: Sequence[Rendered]) -> Markup:
    """Return figures beside each other if there is room."""
    return render_template("figures.html", figures=rendered)


def paragraph(words: str) -> Markup:
    """Return a paragraph."""
    return Markup("<p>{}</p>").format(words)


def dashed(words: str) -> Markup:
    """Return a paragraph in place of what does not apply, with a dash before it."""
    return Markup('<p class="dash">{} {}</p>').format(DASH, words)


def does_not_apply(name: str, heading: str, why: str) -> Section:
    """Return a section that says why it is empty."""
    return Section(f"{name}-section", heading, (dashed(f"Does not apply: {why}"),))
