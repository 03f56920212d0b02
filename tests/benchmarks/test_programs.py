"""Every program of benchmarks imports and says what it is for, and pages name none that is not there."""

import ast
import csv
import re
import runpy
import sys
from pathlib import Path

import pytest

from docs.tables.benchmarks import benchmark, tables_of_lines
from tests.benchmarks.programs import PROGRAMS, at_hand
from tests.paths import ROOT

PACKAGES = "clients", "configs", "docs", "dprec", "simulation", "strategies"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_what_it_is_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    description = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert description
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    with at_hand():
        if "__main__" not in path.read_text(encoding="utf-8"):
            runpy.run_path(str(path))
            return
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " ".join(description.partition("\n")[0].split()) in said


def test_programs_that_are_named_are_there() -> None:
    kinds, named = {".py", ".md", ".yaml"}, set[str]()
    for path in (path for folder in PACKAGES for path in (ROOT / folder).rglob("*")):
        if path.suffix in kinds:
            named.update(re.findall(r"benchmarks/[a-z_/]+\.py", path.read_text(encoding="utf-8")))
    named -= {"benchmarks/network.py"}  # of an earlier commit, as it says there
    assert "benchmarks/choosing/settings.py" in named
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_all_programs_together_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PROGRAMS}
    assert sum(lines.values()) <= 3000


@pytest.mark.parametrize("path", tables_of_lines(), ids=lambda path: path.stem)
def test_figures_are_of_lines_that_a_program_has_and_on_the_page(path: Path) -> None:
    with at_hand():
        lines = runpy.run_path(str(ROOT / "benchmarks" / f"{path.stem}.py"))["LINES"]
    units = {(line.what, unit): line.settings for line in lines for unit in line.units}
    with path.open(encoding="utf-8", newline="") as file:
        kept = {(row["what"], row["unit"]): row["settings"] for row in csv.DictReader(file)}
    assert kept
    assert kept.items() <= units.items()
    assert f"<!-- generated: benchmark {path.stem} -->" in (ROOT / "docs" / "scale.md").read_text()


def test_a_table_has_a_row_for_each_figure_and_the_columns_that_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs.tables.benchmarks.MEASURED", tmp_path)
    heads = "what,unit,before,after,peer,beside,bits,settings,made\n"
    lines = "a run,CPU s,1234.5,0.012345,,,same,,now\na run,MB,,56.78,,,same,,now\n"
    (tmp_path / "program.csv").write_text(heads + lines, encoding="utf-8")
    assert benchmark("program").splitlines() == [
        "| measured | unit | before | after |",
        "| --- | --- | --: | --: |",
        "| a run | CPU s | 1,234 | 0.0123 |",
        "|  | MB |  | 56.8 |",
        "",
        "Measured by `python benchmarks/program.py`; bits: same.",
    ]
    other = "a run,MB,2,1,,,other,,now\nanother,MB,4,3,,,other,draws differ,now\n"
    (tmp_path / "changed.csv").write_text(heads + other, encoding="utf-8")
    assert benchmark("changed").splitlines()[2:] == [
        "| a run † | MB | 2.00 | 1.00 |",
        "| another † | MB | 4.00 | 3.00 |",
        "",
        "Measured by `python benchmarks/changed.py`; †: other bits (draws differ).",
    ]
    (tmp_path / "alone.csv").write_text(heads + "a run,MB,,56.78,,,same,,now\n", encoding="utf-8")
    assert benchmark("alone").startswith("| measured | unit | dprec |")
    assert benchmark("other") == "No figures are kept: `python benchmarks/other.py` prints them."
