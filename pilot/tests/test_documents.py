"""The pages of the pilot: their links lead to files and headings, and they name files that exist."""

import re
from pathlib import Path

import click
import pytest
from typer.main import get_command

from dprec_pilot.console import app
from tests.documents.pages import commands
from tests.paths import ROOT

PAGES = sorted([*(ROOT / "pilot").glob("*.md"), *(ROOT / "pilot" / "docs").glob("*.md")])


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)", text):
        target = page.parent / name if name else page
        assert target.is_file(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"
    for path in re.findall(r"`((?:pilot|clients|dprec|simulation|strategies)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


def test_what_a_device_installs_is_what_was_tested() -> None:
    locked = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    lines = (ROOT / "pilot" / "operating" / "device.txt").read_text(encoding="utf-8").splitlines()
    needed = [line.lower().replace("_", "-") for line in lines if not line.startswith("#")]
    assert [line for line in needed if f"\n{line} " not in locked] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_shows_is_one(page: Path) -> None:
    """Options and numbers of arguments are those of the command line."""
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shown = [words[1:] for code in blocks for words in commands(code) if words[0] == "dprec-pilot"]
    group = get_command(app)
    assert isinstance(group, click.Group)
    for verb, *arguments in shown:
        group.commands[verb].make_context(verb, list(arguments))
