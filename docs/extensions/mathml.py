"""Formulas as MathML, which browsers draw themselves: pages need no script and nothing from elsewhere."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    formula = convert(node.astext(), display="block")
    # On a narrow screen the formula is scrolled, and not the page.
    translator.body.append(f'<div class="math" style="overflow-x: auto">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the way of writing formulas."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
