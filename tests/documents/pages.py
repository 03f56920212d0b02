"""The pages of the documentation, and the code that they show."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "_build" not in path.parts
}

_BLOCK = re.compile(r"^(?P<fence>`{3,}|:{3,})(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$", re.M | re.S)
_FILE = re.compile(r"# ([\w-]+\.(?:py|yaml|toml))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Parameters
    ----------
    line : int
        Where it begins, from 1.
    language : str
        What stands behind the fence; a directive of the site in braces.
    code : str
    """

    line: int
    language: str
    code: str

    @property
    def file(self) -> str | None:
        """The name of the file that it shows, from its first line; None if it shows none."""
        named = _FILE.match(self.code)
        return named[1] if named else None


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = PAGES[page].read_text(encoding="utf-8")
    return [
        Block(text[: found.start()].count("\n") + 1, found["info"].strip(), found["code"])
        for found in _BLOCK.finditer(text)
    ]


def commands(code: str) -> list[list[str]]:
    """Return the commands of a block for the shell, each as its words, comments left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page shows."""
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.code, encoding="utf-8")
