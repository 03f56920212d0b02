"""Small rating matrices, as dense arrays with NaN where there is no rating."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.randomness import generator

Dense = NDArray[np.float64]


def sparse(dense: Dense) -> sp.csr_array:
    users, items = np.nonzero(~np.isnan(dense))
    return sp.csr_array((dense[users, items], (users, items)), shape=dense.shape)


@pytest.fixture(name="sparse")
def sparse_fixture() -> Callable[[Dense], sp.csr_array]:
    return sparse


@pytest.fixture
def random_ratings() -> Callable[..., Dense]:
    def make(seed: int, users: int, items: int, density: float) -> Dense:
        random = generator(seed, "small ratings")
        ratings = random.integers(1, 6, (users, items)).astype(float)
        return np.where(random.random((users, items)) < density, ratings, np.nan)

    return make
