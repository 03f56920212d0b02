"""What the site adds to Sphinx: generated parts of pages, and citations by the keys of references.bib."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from docs.extensions import citations, generated


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect the parts with Sphinx."""
    generated.setup(app)
    citations.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
