"""Plain factors of the ratings, r_ui = u_u . v_i, without effects, and their weighted least squares.

The model of Neera et al. [neera2023], Eq. (1), whose factors carry the level of the ratings as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion.base import Completed
from dprec.completion.factors import BLOCK, inner_products, map_blocks, packed_outer, unpack
from dprec.observations import Observations
from dprec.randomness import generator

_SINGULAR = 1e-10
"""Relative size below which an eigenvalue of a normal matrix counts as 0."""


@dataclass(frozen=True, eq=False)
class PlainFactors(Completed):
    """The model user factors . item factors."""

    mean: float
    """Predicted for the cells of a user or an item without ratings, about which the model says nothing."""
    user_factors: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    """Shapes (users, rank) and (items, rank)."""
    rated_by: NDArray[np.bool_]
    rated: NDArray[np.bool_]
    """Who has ratings, and what has; shapes (users,) and (items,)."""

    @classmethod
    def of(
        cls,
        observations: Observations,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        *,
        diagnostics: dict[str, Any],
        notes: tuple[str, ...] = (),
    ) -> PlainFactors:
        """Return the model of what was observed."""
        return cls(
            observations.mean,
            user_factors,
            item_factors,
            np.bincount(observations.users, minlength=observations.shape[0]) > 0,
            np.bincount(observations.items, minlength=observations.shape[1]) > 0,
            diagnostics=diagnostics,
            notes=notes,
        )

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict the ratings of the given cells, shape (cells,)."""
        products = inner_products(self.user_factors, self.item_factors, users, items)
        return np.where(self.rated_by[users] & self.rated[items], products, self.mean)

    def predict_rows(self, users: NDArray[np.integer], n_items: int) -> NDArray[np.float64]:
        """Predict the ratings of all items by some users, shape (users, items)."""
        products = self.user_factors[users] @ self.item_factors.T
        return np.where(self.rated_by[users][:, None] & self.rated, products, self.mean)


def initial_factors(
    observations: Observations, rank: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw the factors of both sides at random, shapes (users, rank) and (items, rank).

    Their scale lets the predictions be as large as the ratings, so that the same start, in units of the
    ratings, serves every scale.
    """
    size = float(np.sqrt(np.mean(observations.values**2))) if observations.values.size else 1.0
    random = generator(seed, "initial plain factors")
    users, items = (random.standard_normal((entities, rank)) for entities in observations.shape)
    scale = np.sqrt(size / np.sqrt(rank))
    return scale * users, scale * items


def solve_weighted(
    weights: sp.csr_array, targets: sp.csr_array, other: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Return the minimum of sum w (r - x . y)^2 + ridge |x|^2 for every entity, shape (entities, rank).

    Parameters
    ----------
    weights, targets : csr_array, shape (entities, entities of the other side)
        ``w`` and ``w r`` of each cell.
    other : ndarray of float64, shape (entities of the other side, rank)
        The factors y.
    ridge : float
        0 or more; without a ridge, the smallest of several minima is returned.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a solution is not finite.
    """
    rank = other.shape[1]
    products = packed_outer(other)
    solved = np.empty((weights.shape[0], rank))

    def solve(rows: slice) -> None:
        normal = unpack(weights[rows] @ products) + ridge * np.eye(rank)
        sides = (targets[rows] @ other)[:, :, None]
        if ridge > 0:
            solved[rows] = np.linalg.solve(normal, sides)[:, :, 0]
        else:
            solved[rows] = (np.linalg.pinv(normal, rcond=_SINGULAR, hermitian=True) @ sides)[:, :, 0]

    map_blocks(solve, len(solved), BLOCK)
    if not np.all(np.isfinite(solved)):
        raise np.linalg.LinAlgError("factors that are not finite")
    return solved
