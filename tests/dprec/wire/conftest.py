"""The loops of the codec, as they are compiled and as they run where Numba is absent."""

import importlib.util
import sys
from collections.abc import Iterator

import numba
import pytest

from dprec import kernels
from dprec.kernels import codec


@pytest.fixture(params=["compiled", "interpreted"], scope="module")
def compiled_or_not(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "interpreted":
            assert codec.__spec__ is not None
            interpreted = importlib.util.module_from_spec(codec.__spec__)
            patch.setattr(numba.config, "DISABLE_JIT", True)
            assert codec.__spec__.loader is not None
            codec.__spec__.loader.exec_module(interpreted)
            patch.setattr(kernels, "codec", interpreted)
            patch.setitem(sys.modules, codec.__name__, interpreted)
        yield request.param
