import builtins
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dprec.arrays import Floats, Ints
from dprec.kernels import compilation
from dprec.kernels.compilation import Table, Written, compiled, prepare


def scaled_sums(sums: Written[Floats], table: Table[Floats], rows: Ints, scale: float) -> int:
    for place in range(rows.size):
        total = 0.0
        for column in range(table.shape[1]):
            total += table[rows[place], column]
        sums[place] = total / scale
    return rows.size


def mixed(words: Written[Ints], key: np.uint64) -> np.uint64:
    for place in range(words.size):
        key = key * np.uint64(6364136223846793005) + np.uint64(1)
        words[place] = np.int64(key >> np.uint64(33))
    return key


def both(kernel: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [compiled(kernel), compilation._interpreted(kernel)]


class TestCompiled:
    def test_compiled_and_interpreted_give_the_same(self) -> None:
        table = np.arange(6.0).reshape(3, 2)
        table.flags.writeable = False
        for kernel in both(scaled_sums):
            sums = np.zeros(2)
            assert kernel(sums, table, np.array([2, 0]), 2.0) == 2
            assert sums.tolist() == [4.5, 0.5]

    def test_words_wrap_around_without_a_warning(self) -> None:
        results = []
        for kernel in both(mixed):
            words = np.zeros(4, dtype=np.int64)
            results.append((int(kernel(words, np.uint64(2**64 - 1))), words.tolist()))
        assert results[0] == results[1]

    def test_a_division_by_zero_is_infinite(self) -> None:
        for kernel in both(scaled_sums):
            sums = np.zeros(1)
            kernel(sums, np.ones((1, 1)), np.array([0]), 0.0)
            assert sums.tolist() == [np.inf]

    def test_other_types_are_refused(self) -> None:
        with pytest.raises(TypeError):
            compiled(scaled_sums)(np.zeros(1), np.ones((1, 1)), np.zeros(1), 1.0)

    def test_without_numba_the_function_itself_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def without_numba(name: str, *rest: Any, **named: Any) -> ModuleType:
            if name.split(".", maxsplit=1)[0] == "numba":
                raise ImportError(name)
            return real(name, *rest, **named)

        monkeypatch.setattr(builtins, "__import__", without_numba)
        kernel = compiled(mixed)
        assert kernel.__wrapped__ is mixed  # type: ignore[attr-defined]

    def test_code_that_cannot_be_kept_is_compiled_all_the_same(self) -> None:
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
