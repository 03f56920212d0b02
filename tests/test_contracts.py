"""The contracts of import-linter and ruff in pyproject.toml: broken by what they are there for."""

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.paths import ROOT
from tests.waiting import PATIENCE_SECONDS

PACKAGES = ("clients", "dprec", "simulation", "strategies")

PLANTED = {
    "dprec/completion/planted.py": "import dprec.mechanisms.planted",
    "dprec/mechanisms/planted.py": "import dprec.completion.planted",
    "dprec/wire/planted.py": "import yaml",
    "dprec/accounting/planted.py": "import clients",
    "dprec/gradients/planted.py": "import pytest",
    "clients/planted.py": "import rich\nimport dprec.accounting.pld\nimport dprec_pilot",
    "simulation/storage/planted.py": "import simulation.comparison",
    "simulation/analysis/planted.py": "import typer",
    "simulation/unplaced.py": "",
}
FINDINGS = {
    "The packages point one way": "dprec.accounting.planted -> clients",
    "The mathematics knows neither Flower nor Ray": "dprec.wire.planted -> yaml",
    "Devices and server know Flower": "clients.planted -> rich",
    "Only the contract tests need pytest": "dprec.gradients.planted -> pytest",
    "Only the command line knows the terminal": "simulation.analysis.planted -> typer",
    "The layers of the simulation": "simulation.storage.planted -> simulation.comparison",
    "Accounting has one face": "clients.planted -> dprec.accounting.pld",
    "Nothing knows the pilot": "clients.planted -> dprec_pilot",
    "No circles between siblings": "No cycles are allowed in dprec.",
}
"""What each contract is to say of the planted imports."""


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what import-linter says of a copy with planted imports."""
    folder = tmp_path_factory.mktemp("planted")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, source in PLANTED.items():
        (folder / path).write_text(f'"""Planted."""\n\n{source}\n')
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    finished = subprocess.run(
        [sys.executable, "-c", program, "--no-logo", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert finished.returncode == 1, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("contract", FINDINGS)
def test_a_contract_is_broken_by_what_it_forbids(linted: str, contract: str) -> None:
    summary, _, details = linted.partition("Broken contracts")
    assert any(line.startswith(contract) and " BROKEN" in line for line in summary.splitlines())
    assert FINDINGS[contract] in details


def test_every_contract_is_tried() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    names = [contract["name"] for contract in contracts["contracts"]]
    assert [name for name in names if not name.startswith(tuple(FINDINGS))] == []


def test_a_module_of_the_simulation_needs_a_layer(linted: str) -> None:
    assert "- simulation.unplaced" in linted
