"""Run what should catch each mutant in a forked process of its own, and see whether it does.

The tests are collected once. For each mutant the process forks, plants the mistake and runs the named
tests; imports are paid once, and nothing of a mutant remains. A mutant counts as caught by a test if an
assertion fails: any other exception shows that the program broke, not that a mistake was detected.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.catalogue import Mutant
from tests.mutants.planting import loaded_functions, plant


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant.

    Parameters
    ----------
    mutant : Mutant or None
        None for the tests without a mutant.
    caught : dict of str to str
        What each test that was run said, empty if it passed.
    broken : str
        Why the gate could not decide; empty if it could.
    seconds : float
        Processor time.
    """

    mutant: Mutant | None
    caught: dict[str, str]
    broken: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every catcher caught the mutant."""
        named = self.mutant.caught_by if self.mutant else ()
        return bool(named) and not self.broken and all(self.caught.get(test) for test in named)


class Gate:
    """A pytest plugin that, instead of running the collected tests, runs them against mutants.

    Parameters
    ----------
    mutants : sequence of Mutant
    """

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.mutants = mutants
        self.tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.caught_by))
        self.verdicts: list[Verdict] = []
        self._items: list[pytest.Item] = []
        self._loaded: list[FunctionType] = []
        self._raised: BaseException | None = None

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Remember what a test raised."""
        if call.excinfo is not None:
            self._raised = call.excinfo.value

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests without a mutant, then those of each mutant with it."""
        if session.testsfailed:
            raise session.Interrupted("a test that should catch a mutant cannot be collected")
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self._items, self._loaded = session.items, loaded_functions()
        # A child that counts references or collects would copy the memory that it shares with its parent.
        gc.disable()
        gc.freeze()
        sound = self._in_a_child(None)
        failing = [test for test, complaint in sound.caught.items() if complaint]
        if failing or sound.broken:
            raise session.Interrupted(f"without a mutant, {failing} fail; {sound.broken}")
        self.verdicts = [self._in_a_child(mutant) for mutant in self.mutants]
        return True

    def _in_a_child(self, mutant: Mutant | None) -> Verdict:
        """Fork, and return what the child found."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as pipe:
                json.dump(self._found(mutant), pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        _, status, usage = os.wait4(child, 0)
        found = json.loads(answer) if answer else {"caught": {}, "broken": f"ended with status {status}"}
        return Verdict(mutant, found["caught"], found["broken"], usage.ru_utime + usage.ru_stime)

    def _found(self, mutant: Mutant | None) -> dict[str, object]:
        """Plant a mutant, if there is one, and return what the tests say."""
        caught: dict[str, str] = {}
        try:
            if mutant is not None:
                plant(mutant, self._loaded)
            for test in self.tests if mutant is None else mutant.caught_by:
                own = [item for item in self._items if f"{item.nodeid}[".startswith(f"{test}[")]
                caught[test] = next(filter(None, map(self._complaint, own)), "")
        except Exception as error:
            return {"caught": caught, "broken": f"{type(error).__name__}: {error}"}
        return {"caught": caught, "broken": ""}

    def _complaint(self, item: pytest.Item) -> str:
        """Run a test and return the assertion that failed, in one line; empty if it passed.

        Raises
        ------
        Exception
            When it failed in any other way.
        """
        self._raised = None
        runtestprotocol(item, nextitem=None, log=False)
        if self._raised is None or isinstance(self._raised, pytest.skip.Exception):
            return ""
        if not isinstance(self._raised, AssertionError | pytest.fail.Exception):
            raise self._raised
        return (str(self._raised).strip() or "assertion failed").splitlines()[0]


def try_mutants(mutants: Sequence[Mutant]) -> list[Verdict]:
    """Return what becomes of each mutant.

    Raises
    ------
    RuntimeError
        When a test that should catch a mutant does not exist, or fails without one.
    """
    gate = Gate(mutants)
    with tempfile.TemporaryDirectory() as folder:
        options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib"]
        options += ["--capture=sys", "--no-header", "-qq", "-p", "no:warnings", f"--basetemp={folder}/tests"]
        code = pytest.main([*options, *gate.tests], plugins=[gate])
    if len(gate.verdicts) != len(mutants):
        raise RuntimeError(f"the tests that should catch mutants cannot be run (pytest ended with {code!r})")
    return gate.verdicts
