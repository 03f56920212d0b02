"""Citations: [shin2018], in a page or a docstring, links to the bibliography under the same key."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx

KEY = re.compile(r"(?<![`\w])\[([a-z]+[0-9]{4})\](?![(_\w])")
FENCED = re.compile(r"(^(?:```|:::).*?^(?:```|:::)$)", flags=re.MULTILINE | re.DOTALL)


class KeyLabels(BaseLabelStyle):  # type: ignore[misc]
    """Labels that are the keys."""

    def format_labels(self, sorted_entries: Iterable[Entry]) -> Iterable[str]:
        """Return the key of every entry."""
        return [entry.key for entry in sorted_entries]


class KeyStyle(PlainStyle):  # type: ignore[misc]
    """Plain entries under their keys."""

    default_label_style = KeyLabels


def cite_in_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Make the keys of a Markdown page citations, except in its code."""
    parts = FENCED.split(source[0])
    parts[::2] = [KEY.sub(r"{cite:p}`\1`", text) for text in parts[::2]]
    source[0] = "".join(parts)


def cite_in_docstring(
    app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Make the keys of a docstring citations."""
    lines[:] = [KEY.sub(r":cite:p:`\1`", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Register the style of the bibliography, and read keys as citations."""
    register_plugin("pybtex.style.formatting", "keys", KeyStyle)
    app.connect("source-read", cite_in_page)
    app.connect("autodoc-process-docstring", cite_in_docstring)
