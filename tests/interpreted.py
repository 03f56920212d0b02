"""Kernels as they run where Numba is absent."""

import importlib.util
from types import ModuleType

import pytest


def interpreted(name: str) -> ModuleType:
    """Return a second copy of a module of kernels, which is not compiled."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest.importorskip("numba").config, "DISABLE_JIT", True)
        spec.loader.exec_module(module)
    return module
