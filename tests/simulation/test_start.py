"""What starting costs, told by the modules that are imported: a wall clock would measure the machine."""

import subprocess
import sys

import pytest

HEAVY = ["flwr", "ray", "scipy", "pydantic", "matplotlib", "numpy", "pandas"]

PARTS_OF_SCIPY = ["scipy.special", "scipy.linalg", "scipy.sparse", "scipy.fft", "scipy.stats"]


def command(*words: str) -> str:
    """Return a program that is a command of dprec."""
    return f"""
from simulation.console.command_line import main
try:
    main({list(words)!r})
except SystemExit as ended:
    assert ended.code == 0
"""


HELP = command("--help")

RUN = """
from simulation import run
data = {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400}
run("nothing-sent", dataset=data, split={"kind": "k-fold"})
"""


def imported_by(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has imported after a program."""
    code = f"{program}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(finished.stderr.split())


@pytest.mark.parametrize("program", ["import simulation", HELP], ids=["import simulation", "dprec --help"])
def test_starting_imports_nothing_heavy(program: str) -> None:
    assert imported_by(program).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("words", "spared"),
    [
        (["list"], {*HEAVY, "simulation.analysis"} - {"pydantic", "numpy"}),
        (["list", "protocols"], {*PARTS_OF_SCIPY, "flwr", "ray", "matplotlib", "numba", "polars"}),
        (["schema"], {*PARTS_OF_SCIPY, "flwr", "ray", "matplotlib", "numba", "polars"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_listing_imports_what_it_lists(words: list[str], spared: set[str]) -> None:
    assert imported_by(command(*words)).isdisjoint(spared)


@pytest.mark.thorough
def test_a_small_run_imports_neither_ray_nor_what_draws() -> None:
    assert imported_by(RUN).isdisjoint({"ray", "matplotlib", "scipy.special", "scipy.stats", "scipy.fft"})


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["import simulation.auditing", "import simulation.verbs"])
def test_a_verb_is_the_function_whatever_is_imported_first(first: str) -> None:
    imported_by(f"{first}\nfrom simulation import audit, run\nassert callable(audit)\nassert callable(run)")
