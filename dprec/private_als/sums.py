"""The sum of a partition's contributions in integers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.private_als.statistics import UNIT, Contributions, StatisticsLayout

_LARGEST_NORM = 1 / UNIT


def sum_of_contributions(contributions: Contributions, layout: StatisticsLayout) -> NDArray[np.int64]:
    """Return the sum over the users, in units of `UNIT`, shape (items, width)."""
    matrices, sides = contributions.scaled(layout)
    shape = (contributions.n_users, layout.n_items)
    items, indptr = contributions.items, contributions.indptr
    ones = sp.csr_array((np.ones(items.size, dtype=np.int64), items, indptr), shape=shape)
    targets = sp.csr_array((contributions.targets, items, indptr), shape=shape)
    total: NDArray[np.int64] = np.hstack([ones.T @ matrices, targets.T @ sides])
    return total * layout.weights[:, None]


def possible_sum(total: NDArray[np.int64], users: int) -> bool:
    """Return whether so many users can have a sum that somebody else added up."""
    return bool((np.abs(total) <= users * _LARGEST_NORM).all())
