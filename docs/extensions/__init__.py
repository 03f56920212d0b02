"""What the site adds to Sphinx: generated parts of pages, citations by key, MathML, and drawings."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from docs.extensions import citations, drawings, generated, mathml


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect the parts with Sphinx."""
    generated.setup(app)
    citations.setup(app)
    mathml.setup(app)
    drawings.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
