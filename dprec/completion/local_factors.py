"""The device's part of a factorisation: its user's factors, solved from the user's ratings.

Shin et al. [shin2018] keep every user's factors on the device. Given the item factors that the server
broadcasts, a user's factors solve a small ridge regression; whole partitions are solved at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import rows_of
from dprec.completion.factors import BLOCK, inner_products, map_blocks, packed_outer, unpack


@dataclass(frozen=True, eq=False)
class Profiles:
    """The ratings that the devices of a partition hold."""

    indptr: NDArray[np.int64]
    """Shape (users + 1,)."""
    items: NDArray[np.int32]
    """Ascending within a user; shape (ratings,)."""
    values: NDArray[np.float64]
    """Shape (ratings,)."""
    n_items: int

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    @property
    def users(self) -> NDArray[np.int64]:
        """The user of each rating, shape (ratings,)."""
        return rows_of(np.diff(self.indptr))

    def residuals(
        self, user_factors: NDArray[np.float64], item_factors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return rating - prediction for every rating, shape (ratings,)."""
        return self.values - inner_products(user_factors, item_factors, self.users, self.items)


def solve_user_factors(
    profiles: Profiles, item_factors: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Return the factors that fit each user's ratings best, shape (users, rank).

    Minimises sum (r_ui - u_u . v_i)^2 + ridge |u_u|^2 for every user (Shin et al. [shin2018], section 3). A
    user without ratings gets zeros. Each user's result depends only on its own ratings, not on the partition
    in which it is solved. If the item factors are so large that the ridge is lost in rounding, a user may
    have no solution; that user gets zeros too, since a failure would reveal what it has rated.

    Parameters
    ----------
    item_factors : ndarray of float64, shape (items, rank)
    ridge : float
        Above 0.
    """
    rank = item_factors.shape[1]
    shape = (profiles.n_users, profiles.n_items)
    pattern = sp.csr_array((np.ones(profiles.items.size), profiles.items, profiles.indptr), shape=shape)
    ratings = sp.csr_array((profiles.values, profiles.items, profiles.indptr), shape=shape)
    products = packed_outer(item_factors)
    factors = np.empty((profiles.n_users, rank))

    def solve(rows: slice) -> None:
        normal = unpack(pattern[rows] @ products) + ridge * np.eye(rank)
        factors[rows] = _solutions(normal, ratings[rows] @ item_factors)

    map_blocks(solve, profiles.n_users, BLOCK)
    return factors


def _solutions(matrices: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve every system; the solution is zero if the matrix is singular."""
    try:
        return np.linalg.solve(matrices, sides[:, :, None])[:, :, 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros_like(sides)
    # One user's singular matrix must not affect the others.
    alone = [_solutions(matrices[row : row + 1], sides[row : row + 1]) for row in range(len(matrices))]
    return np.concatenate(alone)
