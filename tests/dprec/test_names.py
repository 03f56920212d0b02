"""`import dprec`: the mathematics at once, runs and comparisons when they are first used."""

import subprocess
import sys

import dprec
import simulation


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has imported nothing yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_verbs_are_those_of_the_simulation() -> None:
    assert {*simulation.__all__} == {*dprec.__all__} - {
        "InputError",
        "RunError",
        "SettingError",
        "__version__",
    }
    for name in simulation.__all__:
        assert getattr(dprec, name) is getattr(simulation, name)
    assert {*dprec.__all__} <= {*dir(dprec)}


def test_the_types_are_declared_for_every_name() -> None:
    stub = dprec.__file__.replace(".py", ".pyi")
    with open(stub, encoding="utf-8") as file:
        declared = {line.split()[-1] for line in file if " as " in line} | {"__version__"}
    assert declared == {*dprec.__all__}


def test_the_mathematics_does_not_import_the_simulation() -> None:
    shown = "import sys, dprec, dprec.mechanisms; print({'simulation', 'flwr', 'ray'} & {*sys.modules})"
    assert python(shown).stdout == "set()\n"


def test_without_the_simulation_it_is_named() -> None:
    code = "import sys; sys.modules['simulation'] = None; from dprec import run"
    finished = python(code)
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1].startswith("ImportError: dprec.run needs the simulation")
