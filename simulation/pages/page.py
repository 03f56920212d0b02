"""The frame of every page: one self-contained HTML document that asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.numbers import size
from simulation.analysis.projection import METHOD, Projection
from simulation.pages.assets import content_security_policy, script, style_sheet
from simulation.pages.markup import Cell, Column, Html, element, joined, number_cell, table
from simulation.pages.plots import Rendered, picture


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
    content: tuple[object, ...]


def page(title: str, kind: str, words: str, notes: Sequence[object], sections: Sequence[Section]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    kind : str
        What is reported, in a word or two above the title.
    words : str
        What was run.
    notes : sequence
        What a reader must know, as text or markup.
    sections : sequence of Section
    """
    body = joined(
        element("a", "Skip to the results", href="#main", class_="skip"),
        element(
            "header",
            element("p", kind, class_="kind"),
            element("h1", title),
            element("p", words, class_="lede"),
        ),
        element(
            "main",
            _notes(notes),
            *(
                element(
                    "section",
                    element("h2", section.title, id=section.name),
                    *section.content,
                    aria_labelledby=section.name,
                )
                for section in sections
            ),
            id="main",
        ),
        element("script", Html(script())),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=content_security_policy()),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", f"{title} – dprec"),
        element("link", rel="icon", href="data:,"),
        element("style", Html(style_sheet())),
    )
    return "<!doctype html>\n" + element("html", head, element("body", body), lang="en") + "\n"


def figures(rendered: Sequence[Rendered]) -> Html:
    """Return figures beside each other where there is room."""
    return element("div", *(picture(figure) for figure in rendered), class_="figures")


def paragraph(words: object, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return element("p", words, class_=class_)


def projection_section(rows: Sequence[tuple[str, Projection]], population: float | None) -> Section:
    """Return the projected traffic of a deployment, or how to ask for it."""
    if population is None:
        asked = joined(
            "– Not asked for: ", element("code", "dprec report DIR --population 10e6"), " adds it."
        )
        return Section("projection", "Traffic of a deployment", (paragraph(asked, "dash"),))
    words = (
        f"{population:,.0f} users a day, each taking part once, with the bytes per user of the simulated "
        f"ones. {METHOD}. Deployed is what Flower's deployment engine moves for the same messages, where it "
        "was measured."
    )
    return Section(
        "projection", "Traffic of a deployment", (paragraph(words), projection_table(rows, population))
    )


def projection_table(rows: Sequence[tuple[str, Projection]], population: float) -> Html:
    """Return projections as a table."""
    columns = [
        Column("what", numeric=False),
        Column("a day"),
        Column("from", "95 % interval"),
        Column("to", "95 % interval"),
        Column("mean rate", "Mbit/s"),
    ]
    lines = [
        [
            Cell(label, label),
            Cell(size(projection.total), projection.total),
            *(Cell("–" if end is None else size(end), end) for end in (projection.low, projection.high)),
            number_cell(projection.bits_per_second / 1e6, 2),
        ]
        for label, projection in rows
    ]
    return table(f"Projected traffic of {population:,.0f} users a day", columns, lines)


def _notes(notes: Sequence[object]) -> Html | None:
    if not notes:
        return None
    return element(
        "aside",
        element("h2", "Read this first", id="notes"),
        element("ul", *(element("li", note) for note in notes)),
        class_="notes",
        aria_labelledby="notes",
    )
