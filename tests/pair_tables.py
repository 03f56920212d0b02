"""Tables of pairs of items to learn from."""

import numpy as np
from scipy import sparse

from dprec.arrays import Floats
from dprec.sums import UNIT
from tests.summing import contributed, pairs


def planted(users: int = 6_000, items: int = 40, taste: float = 1.5) -> sparse.csr_array:
    """Return sets of two tastes, popular items first, in which items 38 and 39 go together."""
    random = np.random.default_rng(1)
    popularity = 1 / (2 + np.arange(items))
    liked = random.random((users, items)) < popularity * (
        1 + taste * (np.arange(items) % 2 == random.integers(0, 2, (users, 1)))
    )
    liked[:, 39] = liked[:, 38]
    return sparse.csr_array(liked.astype(float))


def noisy_table(sets: sparse.csr_array, deviation: float) -> tuple[Floats, Floats]:
    """Return the sum of contributions with noise, and without it as pairs of a symmetric table."""
    items = sets.shape[1]
    vectors = contributed(sets.indptr, sets.indices, items).vectors(pairs(items))
    total = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, items * (items + 1) // 2)
    table = np.zeros((items, items))
    table[np.triu_indices(items)] = total
    table = table + table.T
    np.fill_diagonal(table, 0)
    return total + deviation * np.random.default_rng(2).standard_normal(total.size), table
