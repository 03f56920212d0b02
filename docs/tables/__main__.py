"""Fill the generated blocks of the documents.

    python -m docs.tables            # rewrite what is out of date

A block stands between two comments, of which the first says what fills it:

    <!-- generated: leaderboard ml-100k-u1 1 -->
    <!-- end -->

So does a figure in a sentence, of a summary and a protocol: its accuracy, or the column that is named,
maybe at a budget and for a number of users:

    <!-- row: ml-100k-u1 one-bit-on-device 1 -->0.903<!-- -->
    <!-- row: attacks cells-on-device 1 membership_auc -->0.685<!-- -->
    <!-- row: answers/ml-100k best-central-per-user 1 users=30000 -->0.907<!-- -->
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.tables.accounted import composed, guesses, sampled, shares, shuffled
from docs.tables.answer import grid
from docs.tables.benchmarks import announced, benchmark, measured_at
from docs.tables.field import field, field_bytes, left
from docs.tables.figures import figures
from docs.tables.gallery import picture
from docs.tables.groups import groups
from docs.tables.leaderboard import leaderboard, made
from docs.tables.moved import moved
from docs.tables.promises import changed, deviations, index, promises
from docs.tables.quoted import accuracies, by_budget, by_users, figures_at, quoted
from docs.tables.results import DOCS
from simulation.console.terminal import exit_code

_MAKERS = (
    accuracies,
    announced,
    benchmark,
    by_budget,
    by_users,
    changed,
    composed,
    deviations,
    field,
    field_bytes,
    figures_at,
    grid,
    groups,
    guesses,
    index,
    leaderboard,
    left,
    made,
    measured_at,
    moved,
    picture,
    promises,
    sampled,
    shares,
    shuffled,
)
BLOCKS: dict[str, Callable[..., str]] = {each.__name__.replace("_", "-"): each for each in _MAKERS}
"""What fills a block, by its name."""

_LINK = re.compile(r"\(docs:(?P<target>[^)]+)\)")
"""A link of a block, from the folder of the documents."""

_ROW = re.compile(r"<!-- row: (?P<call>[^>]+?) -->[^<]*<!-- -->")

_BLOCK = re.compile(r"<!-- generated: (?P<call>[^>]+?) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str, page: Path) -> str:
    """Return a document with its blocks made anew; their links are relative to its place, `page`."""

    def relative(match: re.Match[str]) -> str:
        return f"({os.path.relpath(DOCS / match['target'], page.parent)})"

    def block(match: re.Match[str]) -> str:
        name, *arguments = match["call"].split()
        text = _LINK.sub(relative, BLOCKS[name](*arguments))
        return f"<!-- generated: {match['call']} -->\n\n{text}\n\n<!-- end -->"

    def row(match: re.Match[str]) -> str:
        return f"<!-- row: {match['call']} -->{quoted(*match['call'].split())}<!-- -->"

    return _ROW.sub(row, _BLOCK.sub(block, text))


def documents() -> Iterator[Path]:
    """Yield the documents that have generated blocks."""
    for path in (
        *(DOCS.parent / name for name in ("CHANGELOG.md", "README.md")),
        *sorted(DOCS.rglob("*.md")),
    ):
        text = path.read_text(encoding="utf-8")
        if _BLOCK.search(text) or _ROW.search(text):
            yield path


def main() -> None:
    """Rewrite the documents and figures that are out of date, and print their paths."""
    blocks = ((path, filled(path.read_text(encoding="utf-8"), path)) for path in documents())
    for path, fresh in (*blocks, *figures()):
        if not path.is_file() or fresh != path.read_text(encoding="utf-8"):
            path.write_text(fresh, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    sys.exit(exit_code(main))
