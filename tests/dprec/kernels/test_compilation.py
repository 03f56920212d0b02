import builtins
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dprec.arrays import Ints
from dprec.kernels import compilation
from dprec.kernels.compilation import Written, compiled, prepare


def mixed(words: Written[Ints], key: np.uint64) -> np.uint64:
    for place in range(words.size):
        key = key * np.uint64(6364136223846793005) + np.uint64(1)
        words[place] = np.int64(key >> np.uint64(33))
    return key


def test_without_numba_the_function_itself_runs_and_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    real, fast = builtins.__import__, compiled(mixed)

    def without_numba(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name.split(".", maxsplit=1)[0] == "numba":
            raise ImportError(name)
        return real(name, *rest, **named)

    results = []
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without_numba)
        slow = compiled(mixed)
    assert slow.__wrapped__ is mixed  # type: ignore[attr-defined]
    for kernel in (slow, fast):
        words = np.zeros(4, dtype=np.int64)
        results.append((int(kernel(words, np.uint64(2**64 - 1))), words.tolist()))
    assert results[0] == results[1]


def test_code_that_cannot_be_kept_is_compiled_all_the_same() -> None:
    # A function without a file has no directory for its machine code.
    space: dict[str, Any] = {"Ints": Ints, "compiled": compiled}
    exec("def total(values: Ints) -> int:\n    return values.sum()", space)
    assert space["compiled"](space["total"])(np.arange(4)) == 6


def test_all_kernels_are_prepared_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int]] = []
    prepare(lambda *step: told.append(step))
    names = sorted(Path(compilation.__file__).parent.glob("*.py"))
    assert [step[1] for step in told] == list(range(len(names)))
    assert {step[2] for step in told} == {len(names) - 1}


def test_kernels_are_not_imported_until_they_are_called() -> None:
    code = "import sys, simulation, dprec.wire, dprec.completion; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
