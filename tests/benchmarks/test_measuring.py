"""What benchmarks share: sides in turn, the best of each, rows, and what a process tree takes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.programs import at_hand
from tests.paths import ROOT


@pytest.fixture(scope="module")
def home() -> Iterator[Any]:
    with at_hand():
        import measuring

        yield measuring


def test_sides_are_measured_in_turn_and_the_least_of_each_figure_is_the_best(home: Any) -> None:
    order: list[str] = []
    seconds = {"before": iter((9.0, 7.0, 8.0)), "after": iter((2.0, 3.0, 1.0))}

    def side(name: str) -> Any:
        order.append(name)
        return home.Cost({"CPU s": next(seconds[name]), "MB": float(len(order))}, bits="a")

    found = home.alternated({name: partial(side, name) for name in seconds}, 3)
    assert order == ["before", "after"] * 3
    best = {name: home.best(costs) for name, costs in found.items()}
    assert best["before"] == home.Cost({"CPU s": 7.0, "MB": 1.0}, "a")
    assert best["after"].figures == {"CPU s": 1.0, "MB": 2.0}


def test_bits_that_differ_from_time_to_time_are_none(home: Any) -> None:
    assert home.best([home.Cost({"s": 1.0}, "a"), home.Cost({"s": 2.0}, "b")]).bits == ""


COMPARED = [("a", "a", "same"), ("a", "b", "other"), ("", "b", "")]


@pytest.mark.parametrize(("before", "after", "bits"), COMPARED)
def test_a_row_for_each_unit_says_if_bits_are_the_same(home: Any, before: str, after: str, bits: str) -> None:
    line = home.Line("a run", (), units=("CPU s", "RMSE"), settings="rank 2")
    costs = {
        "before": home.Cost({"CPU s": 3.0}, before),
        "after": home.Cost({"CPU s": 1.23456789, "RMSE": 0.9}, after),
    }
    seconds, error = home.rows_of(line, costs, "peer 1.0", "today")
    assert (seconds.before, seconds.after, seconds.peer) == (3.0, 1.234568, None)
    assert (error.before, error.after, error.unit) == (None, 0.9, "RMSE")
    assert {row.bits for row in (seconds, error)} == {bits}


def test_rows_of_lines_that_are_measured_again_are_replaced(home: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    home.keep(path, [home.Row(what, "s", after=1.0, made="then") for what in "abc"], ["a", "b", "c"])
    home.keep(path, [home.Row("b", "s", before=2.5, made="now")], ["b", "a"])
    assert path.read_text(encoding="utf-8").splitlines() == [
        "what,unit,before,after,peer,beside,bits,settings,made",
        "b,s,2.5,,,,,,now",
        "a,s,,1.0,,,,,then",
    ]


def told_by(program: str, *arguments: str) -> str:
    """Return what a program says that has the home of benchmarks at hand, and no children but its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


COST = """
import json, sys, measuring as home
cost = home.cost_of(sys.executable, sys.argv[1:], home.ROOT)
print(json.dumps([cost.figures, cost.bits]))
"""


def cost_of(*command: str) -> tuple[dict[str, float], str]:
    figures, bits = json.loads(told_by(COST, *command))
    return figures, bits


CHILDREN = """
import subprocess, sys, time
work = "import time\\nuntil = time.process_time() + 0.4\\nwhile time.process_time() < until: pass"
subprocess.run([sys.executable, "-c", work])
subprocess.Popen([sys.executable, "-c", work])  # outlives its parent
print('{"RMSE": 0.5, "bits": "digest"}')
"""


def test_a_command_takes_what_all_of_its_processes_take() -> None:
    figures, bits = cost_of("-c", CHILDREN)
    assert figures["CPU s"] >= 0.8
    assert figures["MB"] > 1
    assert (figures["RMSE"], bits) == (0.5, "digest")


def test_a_command_that_fails_is_said() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        cost_of("-c", "raise SystemExit('no such thing')")
    assert "no such thing\nended with 1" in failed.value.stderr


def test_predictions_are_digested_whatever_their_compression() -> None:
    write = (
        "import gzip, pathlib, sys; folder = pathlib.Path(sys.argv[1]); folder.mkdir(); "
        "gzip.open(folder / 'predictions.csv.gz', 'wb', int(sys.argv[3])).write(sys.argv[2].encode())"
    )
    written = ("1,2", "1"), ("1,2", "9"), ("1,3", "1")
    same, again, other = (cost_of("-c", write, "{out}/run", *each)[1] for each in written)
    assert same == again != other


@pytest.mark.parametrize("wrong", [["--times", "0"], ["--before", "nowhere"], ["something else"]])
def test_what_cannot_be_measured_is_refused_in_one_line(
    home: Any, wrong: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", *wrong])
    with pytest.raises(SystemExit) as ended:
        home.main("program.py", "A program.", (home.Line("a run", ("-c", "")),))
    assert ended.value.code == 2
    assert "--before holds dprec/, and words are of: a run" in capsys.readouterr().err


PROGRAM = """
import pathlib, sys, measuring as home
home.RESULTS = pathlib.Path(sys.argv.pop(1))
ours, theirs = (("-c", f"print('{{\\"RMSE\\": {error}}}')") for error in (0.5, 0.75))
line = home.Line("a fit", ours, (), home.Peer("numpy", theirs, here=True), "rank 2", ("RMSE",))
home.main("fits.py", "Fits.", (line,))
"""


def test_lines_are_measured_and_kept_beside_their_peer(tmp_path: Path) -> None:
    told_by(PROGRAM, str(tmp_path), "--times", "1", "--write")
    heads, row = (tmp_path / "fits.csv").read_text(encoding="utf-8").splitlines()
    assert heads == "what,unit,before,after,peer,beside,bits,settings,made"
    assert row.startswith(f"a fit,RMSE,,0.5,0.75,numpy {np.__version__},,rank 2,")
