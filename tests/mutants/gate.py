"""Run what should catch each mutant in a forked process of its own, and see whether it does.

The tests are collected once. For each mutant the process forks, plants the mistake and runs the named
tests; imports are paid once, and nothing of a mutant remains. A mutant counts as caught by a test if an
assertion fails: any other exception shows that the program broke, not that a mistake was detected.
"""

import gc
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import FunctionType

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from dprec.kernels.compilation import Kernel, prepare
from tests.mutants.audits import defect_of
from tests.mutants.catalogue import Mutant
from tests.mutants.forking import in_a_child, ready_to_fork
from tests.mutants.planting import loaded_functions, plant


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant.

    Parameters
    ----------
    mutant : Mutant
    caught : dict of str to str
        What each catcher that was run said, empty if it noticed nothing.
    broken : str
        Why the gate could not decide; empty if it could.
    seconds : float
        Processor time.
    """

    mutant: Mutant
    caught: dict[str, str]
    broken: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every catcher caught the mutant."""
        named = self.mutant.catchers
        return bool(named) and not self.broken and all(self.caught.get(catcher) for catcher in named)


class Gate:
    """A pytest plugin that, instead of running the collected tests, runs them against mutants.

    Parameters
    ----------
    mutants : sequence of Mutant
    sound : bool
        Whether to check first that the tests pass without a mutant.
    """

    def __init__(self, mutants: Sequence[Mutant], *, sound: bool) -> None:
        self.mutants, self.sound = mutants, sound
        self.verdicts: list[Verdict] = []
        self._items: list[pytest.Item] = []
        self._loaded: list[FunctionType] = []
        self._kernels: list[Kernel] = []
        self._raised: BaseException | None = None

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Remember what a test raised."""
        if call.excinfo is not None:
            self._raised = call.excinfo.value

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Let no test look for smaller examples of what it has caught, nor begin with another mutant's."""
        settings.register_profile("gate", settings(), phases=[Phase.explicit, Phase.generate], database=None)
        settings.load_profile("gate")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what is to catch each mutant with that mutant planted; or, if asked for, all without any."""
        if session.testsfailed:
            raise session.Interrupted("a test that should catch a mutant cannot be collected")
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for file in {mutant.file for mutant in self.mutants}:  # some are imported by a run alone
            with suppress(ImportError):
                import_module(file.removeprefix("pilot/").removesuffix(".py").replace("/", "."))
        prepare()
        self._items, self._loaded = session.items, loaded_functions()
        self._kernels = [each for each in gc.get_objects() if isinstance(each, Kernel)]
        ready_to_fork()
        if self.sound:
            failing, _ = in_a_child(self._failing)
            if failing:
                raise session.Interrupted(f"fails without a mutant: {failing}")
        for mutant in self.mutants:
            found, seconds = in_a_child(partial(self._found, mutant))
            self.verdicts.append(Verdict(mutant, found["caught"], found["broken"], seconds))
        return True

    def _failing(self) -> list[str]:
        """Return the tests that fail without a mutant."""
        return [item.nodeid for item in self._items if self._complaint(item)]

    def _found(self, mutant: Mutant) -> dict[str, object]:
        """Plant a mutant, and return what its catchers say."""
        caught: dict[str, str] = {}
        try:
            plant(mutant, self._loaded)
            if mutant.file.startswith("dprec/kernels/"):
                for kernel in self._kernels:
                    del kernel.ready
            for test in mutant.caught_by:
                own = [item for item in self._items if f"{item.nodeid}[".startswith(f"{test}[")]
                caught[test] = next(filter(None, map(self._complaint, own)), "")
            if mutant.audit is not None:
                caught[str(mutant.audit)] = defect_of(mutant.audit, seed=1)
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


def try_mutants(mutants: Sequence[Mutant], *, sound: bool = True) -> list[Verdict]:
    """Return what becomes of each mutant.

    Parameters
    ----------
    mutants : sequence of Mutant
    sound : bool
        Whether to check first that the tests pass without a mutant; where they are run anyway, they need
        not be run again.

    Raises
    ------
    RuntimeError
        When a test that should catch a mutant does not exist, or fails without one.
    """
    gate = Gate(mutants, sound=sound)
    tests = dict.fromkeys(test for mutant in mutants for test in mutant.caught_by)
    with tempfile.TemporaryDirectory() as folder:
        options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib"]
        options += [
            "--capture=sys",
            "--tb=native",
            "--no-header",
            "-qq",
            "-p",
            "no:warnings",
            f"--basetemp={folder}/tests",
            "--hypothesis-seed=0",  # The same examples in each run, so the same verdicts.
        ]
        code = pytest.main([*options, *tests], plugins=[gate])
    if len(gate.verdicts) != len(mutants):
        raise RuntimeError(f"the tests that should catch mutants cannot be run (pytest ended with {code!r})")
    return gate.verdicts
