"""The start of the command: interrupts while modules are imported, and modules that hide the packages."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dprec.start import return_memory
from tests.paths import ROOT
from tests.waiting import PATIENCE_SECONDS

START = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in background jobs
sys.argv[0] = "dprec"
runpy.run_module("dprec", run_name="__main__")
"""

# A signal that arrives just before a sleep does not end it: so many short ones are slept.
WAITING = (
    f"""print("importing", flush=True); [time.sleep(0.1) for _ in range({20 * int(PATIENCE_SECONDS)})]"""
)

SLOW = f"import time; {WAITING}"

ENDING = f"""
import time
try:
    {WAITING}
finally:
    print("ending", flush=True)
    time.sleep(0.3)
    print("ended", flush=True)
"""


def environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*folders, ROOT]))}


ENDS = (signal.SIGINT, signal.SIGTERM)


def interrupted(
    folder: Path, arguments: list[str], *ends: tuple[str, signal.Signals]
) -> tuple[int, str, str]:
    """Start the command, send signals when it has printed their lines, and return how it ended."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = subprocess.Popen([sys.executable, "-c", START, *arguments], env=environment(folder), **pipes)
    assert command.stdout is not None
    for line, end in ends:
        assert command.stdout.readline() == f"{line}\n"
        command.send_signal(end)
    output, errors = command.communicate(timeout=PATIENCE_SECONDS)
    return command.returncode, output, errors


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("slow", "arguments"), [("typer", ["--help"]), ("pydantic", ["schema"])])
def test_an_interrupt_during_an_import_is_one_line(
    tmp_path: Path, slow: str, arguments: list[str], end: signal.Signals
) -> None:
    (tmp_path / f"{slow}.py").write_text(SLOW)
    assert interrupted(tmp_path, arguments, ("importing", end)) == (130, "", "dprec: interrupted\n")


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_a_second_interrupt_does_not_disturb_the_end(
    tmp_path: Path, first: signal.Signals, second: signal.Signals
) -> None:
    (tmp_path / "typer.py").write_text(ENDING)
    ended = interrupted(tmp_path, ["--help"], ("importing", first), ("ending", second))
    assert ended == (130, "ended\n", "dprec: interrupted\n")


def test_nothing_but_sys_is_imported_before_interrupts_are_caught() -> None:
    tree = ast.parse((ROOT / "dprec" / "__main__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from __future__ import annotations", "import sys"]


def started_in(folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Start the command as the installed script does, which does not import from the current directory."""
    return subprocess.run(
        [sys.executable, "-P", "-c", "from dprec.__main__ import main; main()", "list", "splits"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(*path),
    )


@pytest.mark.parametrize("hiding", ["simulation.py", "clients/__init__.py", "strategies.py"])
@pytest.mark.parametrize("on_the_path", [False, True])
def test_a_module_that_hides_a_package_is_one_line(tmp_path: Path, hiding: str, on_the_path: bool) -> None:
    own = tmp_path / hiding
    own.parent.mkdir(exist_ok=True)
    own.touch()
    finished = started_in(tmp_path, *[tmp_path] * on_the_path)
    assert (finished.returncode, finished.stdout) == (2, "")
    name = Path(hiding).parts[0].removesuffix(".py")
    line = f"dprec: {own}: hides the package '{name}' of {ROOT}; accepted: "
    assert finished.stderr.startswith(line)
    assert finished.stderr.count("\n") == 1


def test_a_module_beside_a_notebook_that_hides_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "clients.py").touch()
    command = [sys.executable, "-c", "from dprec import InputError\ntry:\n from dprec import run\n"]
    command[-1] += "except InputError as error:\n print(error)"
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment(tmp_path)
    )
    assert finished.stderr == ""
    assert finished.stdout.startswith(f"{tmp_path / 'clients.py'}: hides the package 'clients' of {ROOT}; ")


@pytest.mark.thorough
def test_a_folder_of_results_with_a_package_s_name_is_in_nobody_s_way(tmp_path: Path) -> None:
    (tmp_path / "simulation").mkdir()
    (tmp_path / "simulation" / "results.csv").touch()
    finished = started_in(tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "holdout" in finished.stdout


def test_a_directory_that_was_deleted_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    start = "import os; os.rmdir(os.getcwd()); from dprec.__main__ import main; main()"
    finished = subprocess.run(
        [sys.executable, "-c", start, "list", "splits"],
        capture_output=True,
        text=True,
        check=False,
        cwd=gone,
        env=environment(ROOT),
    )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == (
        "dprec: the current directory: it was deleted; accepted: a directory that exists\n"
    )


@pytest.mark.parametrize("limit", [300_000_000, 590_000_000])
def test_too_little_memory_to_load_the_libraries_is_one_line(limit: int) -> None:
    start = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); "
        "from dprec.__main__ import main; main()"
    )
    finished = subprocess.run(
        [sys.executable, "-c", start, "list", "splits"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(ROOT),
    )
    found = f"memory: a limit of {limit / 1e9:.3g} GB"
    accepted = "at least 0.6 GB, or none: ulimit -v unlimited"
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"dprec: {found}; accepted: {accepted}\n"


@pytest.mark.parametrize("library", [None, "libm.so.6", "no-such-library.so"])
def test_memory_is_returned_to_the_system_where_the_library_can(library: str | None) -> None:
    return_memory(library)
