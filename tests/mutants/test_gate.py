"""Every mutant is caught by what is named for it, and the gate can tell who caught it and who did not."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.mutants.catalogue import Mutant, every_mutant
from tests.mutants.planting import loaded_functions, plant
from tests.paths import ROOT

MUTANTS = {mutant.name: mutant for mutant in every_mutant()}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, Any]]:
    """Return the verdicts of all mutants and controls, by name."""
    # In a process of its own: a process that forks should have no threads.
    command = [sys.executable, "-m", "tests.mutants", "--json"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return {verdict["mutant"]["name"]: verdict for verdict in json.loads(finished.stdout.splitlines()[-1])}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(verdicts: dict[str, dict[str, Any]], name: str) -> None:
    verdict = verdicts[name]
    survived = [catcher for catcher in MUTANTS[name].catchers if not verdict["caught"].get(catcher)]
    assert verdict["passed"], f"not caught by {survived}; {verdict['broken']}"


def test_a_harmless_change_is_not_caught(verdicts: dict[str, dict[str, Any]]) -> None:
    verdict = verdicts["harmless"]
    assert (verdict["passed"], verdict["broken"], [*verdict["caught"].values()]) == (False, "", [""])


def test_a_program_that_breaks_is_not_a_mistake_that_is_caught(verdicts: dict[str, dict[str, Any]]) -> None:
    verdict = verdicts["crashing"]
    assert not verdict["passed"]
    assert verdict["broken"].startswith("NameError")


def test_names_are_used_once_and_every_mutant_has_a_catcher() -> None:
    assert len(MUTANTS) == len(every_mutant())
    assert [name for name, mutant in MUTANTS.items() if not mutant.catchers] == []


MUTANT = Mutant("some", "None.", "dprec/metrics.py", "return float(value)", "return float(-value)")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "text that was there once"}, "stands 0 times in dprec/metrics.py"),
        ({"text": "return float("}, "stands [2-9] times in dprec/metrics.py"),
        ({"instead": MUTANT.text}, "changes nothing"),
        ({"text": "from dataclasses import dataclass", "instead": "import math"}, "changes no function"),
        ({"instead": "return float((value)"}, "was never closed"),
    ],
)
def test_a_mutant_that_is_out_of_date_is_refused(changes: dict[str, str], reason: str) -> None:
    with pytest.raises((ValueError, SyntaxError), match=reason):
        plant(replace(MUTANT, **changes), loaded_functions())
