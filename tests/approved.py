"""Texts that somebody has read and approved: pages, tables and sentences.

``DPREC_APPROVE=1 pytest ...`` writes what the tests see, to be read in the diff before it is committed.
"""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"


def check(name: str, text: str) -> None:
    """Compare a text with the approved one of that name."""
    file = FOLDER / f"{name}.txt"
    if os.environ.get("DPREC_APPROVE"):
        file.write_text(text.rstrip() + "\n", encoding="utf-8")
    assert text.rstrip() == file.read_text(encoding="utf-8").rstrip()


class _Words(HTMLParser):
    """The words of a page, a line for each of its parts, and how each is drawn for those who cannot see."""

    _OPEN, _CELLS = (
        {"section", "figure", "tr", "p", "li", "h1", "h2", "h3", "caption", "summary"},
        {"td", "th"},
    )

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script")
        if tag in self._OPEN or tag in ("dt", "figcaption"):
            self.words.append("\n")
        elif tag in (*self._CELLS, "dd", "small"):
            self.words.append(" | ")
        if dict(attrs).get("class") == "plot":
            self.words.append(f"\n({dict(attrs)['aria-label']})")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def words_of_page(html: str) -> str:
    """Return the words of a page, but for how long it took and on which machine."""
    reader = _Words()
    reader.feed(html)
    lines = [" ".join(line.split()).strip("| ") for line in "".join(reader.words).split("\n")]
    text = "\n".join(line for line in lines if line)
    return re.sub(r"\d+\.\d s in total.*", "(seconds, versions)", text)
