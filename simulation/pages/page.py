"""The frame of every page: one self-contained HTML document that asks nobody for anything."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.analysis.numbers import DASH
from simulation.pages.assets import content_security_policy, script, style_sheet
from simulation.pages.figures.colours import dark
from simulation.pages.figures.rendering import Rendered
from simulation.pages.markup import Html, element, joined


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


def does_not_apply(name: str, heading: str, why: str) -> Section:
    """Return a section that says why it is empty."""
    return Section(f"{name}-section", heading, (paragraph(f"{DASH} Does not apply: {why}", "dash"),))


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


_NARROW_MEDIA, _DARK_MEDIA = "(max-width: 640px)", "(prefers-color-scheme: dark)"


def picture(rendered: Rendered) -> Html:
    """Return the HTML of a figure: wide or narrow, light or dark, as the reader's device asks for."""
    plot = rendered.plot
    sources = [
        (f"{_NARROW_MEDIA} and {_DARK_MEDIA}", dark(rendered.narrow_svg)),
        (_NARROW_MEDIA, rendered.narrow_svg),
        (_DARK_MEDIA, dark(rendered.svg)),
    ]
    return element(
        "figure",
        element("h3", plot.title),
        element(
            "picture",
            *(element("source", media=media, srcset=_data_uri(svg)) for media, svg in sources),
            element("img", src=_data_uri(rendered.svg), alt=plot.alt),
        ),
        element("figcaption", plot.caption),
        class_="wide" if plot.full_width else None,
        id=plot.name,
    )


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
