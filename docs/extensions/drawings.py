"""Drawings in SVG stand in the page itself, so that they follow the theme that a reader chooses."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

_STANDALONE = re.compile(r"^ *(?:@media.*?\n    \}|:root.*?\})\n", re.MULTILINE | re.DOTALL)
"""The colours of a drawing that is looked at by itself; the site has its own."""


def put_inside(app: Sphinx, page: nodes.document) -> None:
    """Replace images of drawings by the drawings."""
    for image in list(page.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.parent.name == "_static":
            drawing = _STANDALONE.sub("", path.read_text(encoding="utf-8"))
            image.replace_self(nodes.raw("", f'<div class="drawn">{drawing}</div>', format="html"))


def setup(app: Sphinx) -> None:
    """Put drawings into pages once images have been found."""
    app.connect("doctree-read", put_inside)
