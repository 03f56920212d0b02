"""The contract of gradient reports, on every registered kind."""

import numpy as np
import pytest

from dprec.gradients import GRADIENTS, FullGradient, GradientReport, ReducedOneBitGradient
from dprec.testing import GradientContract

EXAMPLES: dict[str, GradientReport] = {"one-bit-reduced": ReducedOneBitGradient(dimensions=8)}
"""Of the kinds whose defaults do not suit a small catalogue."""


class TestEveryGradient(GradientContract):
    @pytest.fixture(params=GRADIENTS.kinds)
    def gradient(self, request: pytest.FixtureRequest) -> GradientReport:
        return EXAMPLES.get(request.param) or GRADIENTS[request.param]()

    def hostile(self, gradient: GradientReport, good: bytes) -> list[bytes]:
        changed = super().hostile(gradient, good)
        if not isinstance(gradient, FullGradient):
            return changed
        numbers = len(good) - self.rank * 4
        for value in (np.nan, np.inf, -np.inf, 3e38, 2.0**15):
            changed.append(good[:numbers] + np.full(self.rank, value, dtype="<f4").tobytes())
        # A bitmap of one item, with a bit set in the padding, or of an item past the catalogue.
        row = np.zeros(self.rank, dtype="<f4").tobytes()
        for item in range(self.items, 27):
            bits = np.zeros(32, dtype=np.uint8)
            bits[:5], bits[5], bits[5 + item] = 1, 1, 1
            changed += [np.packbits(bits).tobytes() + row, np.packbits(bits).tobytes() + 2 * row]
        return changed
