"""The loops of the codec, as they are compiled and as they run where Numba is absent."""

import sys
from collections.abc import Iterator

import pytest

from dprec import kernels
from dprec.kernels import codec
from tests.interpreted import interpreted


@pytest.fixture(params=["compiled", "interpreted"], scope="module")
def compiled_or_not(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "interpreted":
            loops = interpreted(codec.__name__)
            patch.setattr(kernels, "codec", loops)
            patch.setitem(sys.modules, codec.__name__, loops)
        yield request.param
