"""Steps of conjugate gradients, compiled and interpreted, against solutions."""

import numpy as np
import pytest

from dprec.kernels.conjugate_gradients import approach
from tests.interpreted import twin

RANDOM = np.random.default_rng(4)


@pytest.mark.parametrize("rank", [1, 3, 4, 9, 23])
def test_as_many_steps_as_dimensions_solve(rank: int) -> None:
    factors, everywhere = RANDOM.standard_normal((40, rank)), RANDOM.random(rank)
    counts = np.array([0, 1, 5, 17, 0, 40])
    ridges, indptr = RANDOM.random(counts.size) + 0.1, np.append(0, np.cumsum(counts))
    columns = np.concatenate([np.sort(RANDOM.permutation(40)[:count]) for count in counts]).astype(np.int32)
    start, made = RANDOM.standard_normal((counts.size, rank)), []
    for function in (approach, twin(approach)):
        solved = start.copy()
        function(solved, indptr, columns, factors, everywhere, ridges, rank + 5)
        made.append(solved.tobytes())
        for row, (ridge, found) in enumerate(zip(ridges, solved, strict=True)):
            own = factors[columns[indptr[row] : indptr[row + 1]]]
            system = np.diag(everywhere + ridge) + own.T @ own
            np.testing.assert_allclose(found, np.linalg.solve(system, own.sum(axis=0)), atol=1e-9)
    assert made[0] == made[1]
