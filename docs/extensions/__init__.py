"""What the site adds to Sphinx: generated parts of pages, citations by key, MathML, and drawings.

[shin2018], in a page or a docstring, links to the bibliography under the same key. Formulas are MathML, which
browsers draw themselves. Drawings stand in the page itself, to follow the theme that a reader chooses. What
the theme leaves out for those who use keys or a screen reader is completed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

from docs.extensions.generated import expand_page

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


_STANDALONE = re.compile(r"^ *(?:@media.*?\n    \}|:root.*?\})\n", re.MULTILINE | re.DOTALL)
"""The colours of a drawing that is looked at by itself; the site has its own."""


_WIDE = re.compile(r'<svg [^>]*viewBox="0 0 (?:[6-9]\d\d|\d{4,})\b')
"""A figure of several panels, 360 wide each."""


def put_inside(app: Sphinx, page: nodes.document) -> None:
    """Replace images of drawings by the drawings, and mark wide figures, which narrow screens scroll."""
    for image in list(page.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.parent.name == "_static":
            drawing = _STANDALONE.sub("", path.read_text(encoding="utf-8"))
            image.replace_self(nodes.raw("", f'<div class="drawn">{drawing}</div>', format="html"))
        elif path.suffix == ".svg" and _WIDE.match(path.read_text(encoding="utf-8")):
            image["classes"].append("wide")


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    formula = convert(node.astext(), display="block")
    # On a narrow screen the formula is scrolled, and not the page.
    scrolled = 'class="math" style="overflow-x: auto" tabindex="0" role="group" aria-label="formula"'
    translator.body.append(f"<div {scrolled}>{formula}</div>\n")
    raise nodes.SkipNode


_GROUP = 'tabindex="0" role="group"'
_COMPLETED = (
    (re.compile(r'(role="heading")>'), r'\1 aria-level="2">'),
    (re.compile(r'(<div class="table-wrapper[^"]*")>'), rf'\1 {_GROUP} aria-label="table">'),
    (re.compile(r'(<div class="highlight")><pre>'), rf'\1><pre {_GROUP} aria-label="code">'),
    (re.compile(r'(<aside class="sidebar-drawer")>'), r'\1 aria-label="pages">'),
    (re.compile(r'(<aside class="toc-drawer[^"]*")>'), r'\1 aria-label="sections">'),
)
"""What the theme leaves out: levels of headings, keys for what scrolls, and names of parts."""


def completed(page: str) -> str:
    """Return a page of the site with what those need who use keys, or a screen reader."""
    for pattern, complete in _COMPLETED:
        page = pattern.sub(complete, page)
    return page


def complete_pages(app: Sphinx, error: Exception | None) -> None:
    """Complete all pages that were written."""
    for path in Path(app.outdir).rglob("*.html") if error is None else ():
        path.write_text(completed(path.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect the parts with Sphinx; pages are expanded before anything else reads them."""
    register_plugin("pybtex.style.formatting", "keys", KeyStyle)
    app.connect("source-read", expand_page, priority=100)
    app.connect("source-read", cite_in_page)
    app.connect("autodoc-process-docstring", cite_in_docstring)
    app.connect("doctree-read", put_inside)
    app.connect("build-finished", complete_pages)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
