"""The code of docs/methods.md does what the page says."""

import importlib
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dprec.testing import CompletionContract, DatasetContract, MechanismContract
from simulation.console.command_line import main
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOCAL = ["--set", "simulation.backend=local", "--no-page"]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write every file that the page shows, and the README's mechanism, to the current directory."""
    for text in (*blocks(README, "python"), *blocks(PAGE, "python"), *blocks(PAGE, "yaml")):
        if named := re.match(r"# (\w+\.(?:py|yaml))\n", text):
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
    rows = [{"user": u, "item": i, "rating": (u * i) % 5 + 1} for u in range(30) for i in range(12)]
    (tmp_path / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for file in tmp_path.glob("*.py"):
        monkeypatch.delitem(sys.modules, file.stem, raising=False)
    return tmp_path


def command(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 0


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(blocks(PAGE, "bash")).splitlines()
    described, ran, audited, compared = (shlex.split(line)[1:] for line in lines)
    command(*described)
    assert capsys.readouterr().out.startswith("geometric:Geometric: a mechanism\n")
    command(*ran, *LOCAL, "--set", "dataset={kind: synthetic, users: 40, items: 30, ratings: 400}")
    assert audited[:4] == ["audit", *ran[1:4]]  # which the README's test runs
    command(*compared, *LOCAL, "--set", "epsilons=[1.0]", "--set", "floors=false")
    table = pd.read_csv(folder / "runs" / "mine" / "comparison.csv")
    assert table["name"].tolist() == ["blp-mf", "geometric", "softened", "shrunken"]
    assert table["mechanism"].tolist()[1:3] == ["geometric:Geometric", "softened:Softened"]
    assert table["completion"].tolist()[3] == "shrunken:Shrunken"
    assert set(table["dataset"]) == {"json_lines:JsonLines"}


def test_the_notebook(folder: Path) -> None:
    shown: dict[str, Any] = {"Softened": importlib.import_module("softened").Softened}
    exec(blocks(PAGE, "python")[3], shown)
    assert shown["result"].summary["mechanism"] == "softened:Softened"
    assert shown["compared"].to_pandas()["name"].tolist() == ["blp-mf", "softened"]


def test_the_mathematics() -> None:
    frame = pd.DataFrame(
        [
            (user, item, len(user + item) % 5 + 1)
            for user in ("ann", "bob", "eve")
            for item in ("film", "a", "bc")
        ],
        columns=["user", "item", "rating"],
    )
    shown: dict[str, Any] = {"frame": frame}
    exec(blocks(PAGE, "python")[4], shown)
    assert 0.999 < shown["channel"].epsilon <= 1.0
    assert shown["fitted"].predict(["ann", "bob"], "film").shape == (2,)


def test_the_tests(folder: Path) -> None:
    tests = importlib.import_module("test_mine")
    assert issubclass(tests.TestSoftened, MechanismContract)
    assert issubclass(tests.TestShrunken, CompletionContract)
    assert issubclass(tests.TestJsonLines, DatasetContract)
    command("describe", "shrunken:Shrunken")


class TestTheMechanismOfThePage(MechanismContract):
    @pytest.fixture
    def mechanism(self, folder: Path) -> Any:
        return importlib.import_module("softened").Softened(share=1.0)


class TestTheCompletionOfThePage(CompletionContract):
    @pytest.fixture
    def completion(self, folder: Path) -> Any:
        return importlib.import_module("shrunken").Shrunken(strength=0.5)
