"""The code of the README does what the README says."""

import importlib
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dprec.mechanisms.base import Mechanism
from dprec.testing import MechanismContract
from simulation import compare
from simulation.comparison.planning import load_comparison
from simulation.console.command_line import main
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LOCAL = ["--set", "simulation.backend=local"]
TRIALS = ["--trials", "1000"]


def blocks(language: str) -> list[str]:
    """Return the code of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Return the commands of the README, each as its words."""
    lines = "".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def typed(*beginning: str) -> list[str]:
    """Return the first command that begins with some words."""
    return next(words for words in commands() if words[: len(beginning)] == list(beginning))[1:]


@pytest.fixture
def dprec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Return the command line in an empty directory; it has to end well."""
    monkeypatch.chdir(tmp_path)

    def command(arguments: list[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0

    return command


def test_every_command_is_tried_here() -> None:
    tried = [["make", "demo"], ["make", "test"]]
    verbs = "compare", "compare", "compare", "run", "advise", "audit", "deploy", "run", "audit"
    tried += [["dprec", verb] for verb in verbs]
    assert [command[:2] for command in commands()] == tried


def test_the_make_targets_exist() -> None:
    rules = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {words[1] for words in commands() if words[0] == "make"} <= set(rules)


@pytest.mark.parametrize("name", ["compare-seeds", "compare-per-user"])
def test_the_comparisons_that_it_shows_are_accepted(name: str) -> None:
    flag, override = typed("dprec", "compare", name)[2:]
    assert flag == "--set"
    loaded = load_comparison(name, [override])
    assert loaded.config.dataset.path == "PATH/TO/ml-100k"


def test_ratings_of_one_s_own_are_run(dprec: Callable[[list[str]], None], tmp_path: Path) -> None:
    rows = [f"{user},{item},{(user * item) % 5 + 1}" for user in range(20) for item in range(12)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    (compared,) = [words for words in commands() if words[1:] == ["compare", "ratings.csv"]]
    assert {cell.config.dataset.kind for cell in load_comparison(compared[2]).cells} == {"csv"}
    dprec([*typed("dprec", "run"), *LOCAL])
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()


def test_the_advice_is_given(
    dprec: Callable[[list[str]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["dataset={kind: synthetic, users: 40, items: 30, ratings: 400}", "simulation.backend=local"]
    compare("compare-quick", tmp_path / "COMPARISON", overrides=[*small, "seeds=[1]", "epsilons=[1.0]"])
    dprec(typed("dprec", "advise"))
    assert "nothing-sent" in capsys.readouterr().out


def test_the_audit_is_run(dprec: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    dprec([*typed("dprec", "audit"), *TRIALS])
    assert "no evidence against it" in capsys.readouterr().out


def test_a_pilot_is_prepared(dprec: Callable[[list[str]], None], tmp_path: Path) -> None:
    small = ["--set", "dataset={kind: synthetic, users: 40, items: 30, ratings: 400}"]
    dprec([*typed("dprec", "deploy"), *small])
    assert len(list((tmp_path / "pilot" / "devices").iterdir())) == 5


def test_a_run_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    program, _, _ = blocks("python")
    exec(program, {})
    assert 0.5 < float(capsys.readouterr().out.splitlines()[0]) < 2.0


@pytest.fixture
def geometric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files of the mechanism that the README shows to the current directory; return it."""
    for source in blocks("python")[1:]:
        (tmp_path / source.splitlines()[0].removeprefix("# ")).write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for module in ("geometric", "test_geometric"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


class TestTheMechanismOfTheReadme(MechanismContract):
    @pytest.fixture
    def mechanism(self, geometric: Path) -> Mechanism:
        mechanism: Mechanism = importlib.import_module("geometric").Geometric()
        return mechanism


def test_the_tests_of_the_mechanism_are_those_of_every_mechanism(geometric: Path) -> None:
    assert issubclass(importlib.import_module("test_geometric").TestGeometric, MechanismContract)


def test_the_mechanism_is_run_and_audited(
    geometric: Path, dprec: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    ran, audited = [words for words in commands() if "geometric:Geometric" in " ".join(words)]
    small = ["--set", "dataset={kind: synthetic, users: 40, items: 30, ratings: 400}"]
    dprec([*ran[1:], *LOCAL, *small, "--no-page"])
    assert "kind: geometric:Geometric" in (geometric / "runs" / "geometric" / "config.yaml").read_text()
    dprec([*audited[1:], *TRIALS])
    assert "no evidence against it" in capsys.readouterr().out
