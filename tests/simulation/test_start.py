"""What starting costs, told by the modules that are imported: a wall clock would measure the machine."""

import subprocess
import sys

import pytest

HEAVY = ["flwr", "ray", "scipy", "pydantic", "matplotlib", "numpy", "pandas"]

HELP = """
from simulation.console.command_line import main
try:
    main(["--help"])
except SystemExit:
    pass
"""


def imported_by(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has imported after a program."""
    code = f"{program}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(finished.stderr.split())


@pytest.mark.parametrize("program", ["import simulation", HELP], ids=["import simulation", "dprec --help"])
def test_starting_imports_nothing_heavy(program: str) -> None:
    assert imported_by(program).isdisjoint(HEAVY)


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["import simulation.auditing", "import simulation.verbs"])
def test_a_verb_is_the_function_whatever_is_imported_first(first: str) -> None:
    imported_by(f"{first}\nfrom simulation import audit, run\nassert callable(audit)\nassert callable(run)")
