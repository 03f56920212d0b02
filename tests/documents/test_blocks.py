"""The code of every page does what the page says: what stands in a fenced block is run, or at least read."""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.protocols.one_shot import OneShotProtocol
from simulation import RunConfig, compare, load
from simulation.comparison import ComparisonConfig
from simulation.comparison.planning import load_comparison
from simulation.configuration.strict_yaml import parse_yaml
from simulation.tuning.space import read_space
from tests.documents.pages import PAGES, Block, blocks, commands, write_files
from tests.documents.sample import FRAME, SMALL, write_sample
from tests.documents.terminal import Terminal, pass_tests

WITH_CODE = [page for page in PAGES if any(not block.language.startswith("{") for block in blocks(page))]
OUTPUT = ("text", "")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return what returns the directory of a small comparison, which is run when it is first needed."""
    directory = tmp_path_factory.mktemp("documents") / "comparison"

    def made() -> Path:
        if not directory.exists():
            attacked = "attacks=[{kind: reconstruction}]"
            small = [SMALL, "simulation.backend=local", "seeds=[1]", "epsilons=[1.0]", attacked]
            compare("compare-quick", directory, overrides=small, page=False)
        return directory

    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the current directory, with the sample; modules that are imported from it are forgotten."""
    write_sample(tmp_path)
    write_files("docs/start.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page(page: str, folder: Path, comparison: Callable[[], Path]) -> None:
    write_files(page, folder)
    terminal, names = Terminal(folder, comparison), {"frame": FRAME}
    for block in blocks(page):
        try:
            do(block, terminal, names)
        except BaseException as error:
            error.add_note(f"{page}, line {block.line}")
            raise
    for file in [block.file for block in blocks(page) if block.file]:
        if file.startswith("test_"):
            pass_tests(file)


def do(block: Block, terminal: Terminal, names: dict[str, Any]) -> None:
    """Run a block, or read it."""
    if block.language == "bash":
        for words in commands(block.code):
            terminal.type(words)
    elif block.language == "python":
        if block.file is None:
            exec(block.code, names)
    elif block.language == "yaml":
        if block.file is None:
            accept(parse_yaml(block.code, "the page"))
    elif block.language == "json":
        json.loads(block.code)
    elif block.language == "toml":
        tomllib.loads(block.code)
    else:
        assert block.language in OUTPUT or block.language.startswith("{"), block.language


def accept(values: dict[str, Any]) -> None:
    """Check a part of a configuration, where it belongs."""

    def overrides(prefix: str = "") -> list[str]:
        return [f"{prefix}{key}={json.dumps(value)}" for key, value in values.items()]

    if values.keys() <= RunConfig.model_fields.keys():
        load("blp-mf", overrides())
    elif values.keys() <= OneShotProtocol.__dataclass_fields__.keys():
        load("blp-mf", overrides("protocol."))
    elif values.keys() <= ComparisonConfig.model_fields.keys():
        load_comparison("compare-populations", overrides())
    else:
        Path("space.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        read_space(Path("space.yaml"), {name: load(name) for name in ("isgd", "blp-mog-mf")})
