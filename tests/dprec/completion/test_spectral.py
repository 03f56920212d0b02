import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion.spectral import LowRank


def low_rank(matrix: NDArray[np.float64]) -> LowRank:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return LowRank(left, values, right.T)


@pytest.mark.parametrize("apart", [10.0, 1e-3, 1e-7, 0.0])
def test_nearness_is_decided_as_by_the_distance(apart: float) -> None:
    random = np.random.default_rng(4)
    matrix, moved = random.standard_normal((2, 9, 14))
    one, other = low_rank(matrix), low_rank(matrix + apart * moved)
    distance = one.distance(other)
    assert distance == pytest.approx(np.linalg.norm(apart * moved), rel=1e-6, abs=1e-12)
    # Around the smallest of these limits, all digits of the squared norms cancel.
    for limit in (distance, *distance * np.array([0.5, 1 - 1e-9, 1 + 1e-9, 2.0])):
        assert one.is_near(other, limit) == (distance <= limit)
