"""No figure of the documents is typed: it is generated, quoted from a row, or listed as what it is."""

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.documents.pages import PAGES
from tests.paths import ROOT

LISTED = yaml.safe_load((ROOT / "docs" / "typed.yaml").read_text(encoding="utf-8"))
REASONS = {"paper", "formula", "setting", "tested"}
"""Of a publication, from a formula, a setting or a constant, or held by a test."""

# Code, generated blocks, quoted rows, comments, and where links lead to.
_NOT_PROSE = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence)$|<!-- generated: .*?<!-- end -->|<!-- row: .*?<!-- -->|<!--.*?-->"
    r"|`[^`]*`|\]\([^)]*\)|^\[[^\]]+\]: .*?$",
    re.M | re.S,
)
# What is asked for, and numbers of versions.
_ASKED = re.compile(r"[εδτ][₀₁₂∞]? ?(?:[=≤<>≥]|per \w+ [=≤]) ?[\d.,/ ]*\d|\b(?:Python|version|dprec) [\d.]+")
_UNIT = r"(?:%|[kMG]?B\b|(?:byte|second|minute|hour)s?\b|s\b)"
_FIGURE = re.compile(rf"(?<![\w.,])(?:\d[\d,]*)?\.\d+|(?<![\w.,])\d[\d,]*(?= ?{_UNIT})")


def typed(text: str) -> Iterator[str]:
    """Yield the figures that stand in prose and tables: fractions, percentages, sizes and times."""
    prose = _NOT_PROSE.sub(" ", text)
    for figure in _FIGURE.finditer(_ASKED.sub(" ", prose)):
        yield figure[0]


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/api/")])
def test_a_page_has_no_figure_that_is_only_typed(page: str) -> None:
    listed = LISTED.get(page, {})
    known = {str(figure) for own in listed.values() for figure in own}
    assert set(listed) <= REASONS
    assert set(typed(PAGES[page].read_text(encoding="utf-8"))) == known


@pytest.mark.parametrize("page", PAGES)
def test_no_line_begins_with_a_quoted_row(page: str) -> None:
    """A comment at the beginning of a line ends the paragraph."""
    assert re.findall(r"^[ >]*<!-- row: .*", PAGES[page].read_text(encoding="utf-8"), re.M) == []


def test_every_listed_page_is_there() -> None:
    assert set(LISTED) <= set(PAGES)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It reaches .905, or 0.90 at ε = 0.5, in 12,442 bytes and 3 MB.", [".905", "0.90", "12,442", "3"]),
        ("`0.5` and <!-- row: t p 1 -->0.905<!-- --> of [a page](a/0.5.md) in 2.5 % of 943 users", ["2.5"]),
        ("```bash\ndprec run --set x=0.5\n```\n<!-- generated: made t -->\n\n0.7\n\n<!-- end -->", []),
    ],
)
def test_what_counts_as_typed(text: str, figures: list[str]) -> None:
    assert list(typed(text)) == figures
