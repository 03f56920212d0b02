import builtins
import importlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dprec.arrays import Ints
from dprec.errors import InputError
from dprec.kernels import compilation
from dprec.kernels.compilation import Kernel, Written, compiled, prepare


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
        assert slow.ready.__wrapped__ is mixed  # type: ignore[attr-defined]
    for kernel in (slow, fast):
        words = np.zeros(4, dtype=np.int64)
        results.append((int(kernel(words, np.uint64(2**64 - 1))), words.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("limit", [600_000_000, resource.RLIM_INFINITY])
def test_a_limit_on_memory_that_keeps_numba_out_is_named(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def not_found(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name.split(".", maxsplit=1)[0] == "numba":
            raise OSError("Could not find/load shared object file")
        return real(name, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", not_found)
        patch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
        limited = limit != resource.RLIM_INFINITY
        found = "memory: a limit of 0.6 GB, within which Numba" if limited else "Could not find"
        with pytest.raises(InputError if limited else OSError, match=found):
            compiled(mixed).ready  # type: ignore[attr-defined]  # noqa: B018


def test_code_that_cannot_be_kept_is_compiled_all_the_same() -> None:
    # A function without a file has no directory for its machine code.
    space: dict[str, Any] = {"Ints": Ints, "compiled": compiled}
    exec("def total(values: Ints) -> int:\n    return values.sum()", space)
    assert space["compiled"](space["total"])(np.arange(4)) == 6


def test_all_kernels_are_prepared() -> None:
    prepare()
    for path in Path(compilation.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"dprec.kernels.{path.stem}")
        kernels = [each for each in vars(module).values() if isinstance(each, Kernel)]
        assert path.read_text().count("\n@compiled\n") <= len(kernels)
        assert all("ready" in vars(kernel) for kernel in kernels)


KERNELS = """
from dprec.arrays import Ints
from dprec.kernels.compilation import compiled, compiling_told

@compiled
def doubled(value: int) -> int:
    return 2 * value

@compiled
def total(values: Ints) -> int:
    whole = 0
    for value in values:
        whole += doubled(value)
    return whole

if __name__ == "__main__":
    import numpy as np
    told = []
    with compiling_told(lambda *step: told.append(step), 1, 7):
        assert total(np.arange(4)) == 12
        assert total(np.arange(3)) == 6
    print(len(told), set(told) <= {("compiling", 1, 7)}, "ready" in vars(doubled))
"""


@pytest.mark.thorough
def test_compiling_is_told_once_and_what_is_on_disk_is_loaded_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(KERNELS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(file)]
    first, again = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    )
    assert first == "2 True True\n"
    assert again == "0 True False\n"


def test_kernels_are_not_compiled_until_they_are_called() -> None:
    code = (
        "import sys, simulation, dprec.wire, dprec.completion, dprec.kernels.draws, dprec.kernels.codec;"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
