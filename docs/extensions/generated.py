"""Parts of pages that are generated: a line "% generated: NAME" is replaced by what NAME makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sphinx.application import Sphinx

from docs.extensions.generated import (
    command_reference,
    comparison_reference,
    configuration_reference,
    summary_reference,
)

GENERATED: Mapping[str, Callable[[], str]] = {
    "comparison": comparison_reference,
    "commands": command_reference,
    "configuration": configuration_reference,
    "summary": summary_reference,
}
_LINE = re.compile(r"^% generated: (\w+)$", flags=re.MULTILINE)


def expand(source: str) -> str:
    """Return the text of a page with its generated parts."""
    return _LINE.sub(lambda found: GENERATED[found[1]](), source)


def expand_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Expand the source of a page that Sphinx has read."""
    source[0] = expand(source[0])


def setup(app: Sphinx) -> None:
    """Expand pages before anything else reads them."""
    app.connect("source-read", expand_page, priority=100)
