"""Kernels as they run where Numba is absent."""

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from dprec.kernels.compilation import Kernel


def interpreted(name: str) -> ModuleType:
    """Return a second copy of a module of kernels, which is not compiled."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest.importorskip("numba").config, "DISABLE_JIT", True)
        spec.loader.exec_module(module)
        for kernel in vars(module).values():
            # What it takes from other modules is what everybody uses.
            if isinstance(kernel, Kernel) and kernel.__module__ == name:
                kernel.ready  # noqa: B018  # which chooses
    return module


def twin(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is not compiled."""
    found: Callable[..., Any] = getattr(interpreted(kernel.__module__), kernel.__name__)
    return found
