"""What a page must not say is noticed: programs nobody knows, options and presets that do not exist."""

from pathlib import Path

import click
import pytest

from dprec.errors import InputError
from tests.documents.pages import commands
from tests.documents.terminal import Terminal, parse


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(tmp_path, lambda: tmp_path)


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("dprec-run blp-mf", AssertionError),
        ("dprec rum blp-mf", click.UsageError),
        ("dprec run blp-mf --outptu runs", click.UsageError),
        ("dprec describe blp-fm", AssertionError),
        ("dprec compare compare-sedes", InputError),
        ("dprec compare compare-seeds --set epsilon=[1.0]", InputError),
        ("make demonstration", AssertionError),
        ("python benchmarks/sacle.py", AssertionError),
    ],
)
def test_a_mistake_is_noticed(typed: str, error: type[Exception], terminal: Terminal) -> None:
    with pytest.raises(error):
        terminal.type(typed.split())


def test_lines_that_go_on_are_one_command() -> None:
    code = "dprec run blp-mf \\\n    -o runs/a   # a comment\n\n# nothing\nmake demo\n"
    assert commands(code) == [["dprec", "run", "blp-mf", "-o", "runs/a"], ["make", "demo"]]


def test_what_is_right_is_parsed() -> None:
    parse(["describe", "blp-mf"])
    parse(["--version"])
