"""Predictions that devices make: each fits factors to its own user's ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import offsets, segments
from dprec.completion import Profiles, inner_products, solve_user_factors
from dprec.ratings import Ratings

_USERS_AT_ONCE = 1 << 16
"""Users whose factors are solved together: bounds the memory for any number of users."""


@dataclass(frozen=True, eq=False)
class OwnFactors:
    """The predictions of devices that hold some item factors.

    Only the factors of users who are asked for are solved, and none of them is kept.
    """

    ratings: Ratings
    """What the devices hold."""
    item_factors: NDArray[np.float64]
    """Shape (items, rank)."""
    ridge: float
    """As for `solve_user_factors`."""
    base: NDArray[np.float64] | None = None
    """What is predicted without factors; 0 by default; shape (items,)."""

    def __call__(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the predictions of some cells, in any order, shape (cells,)."""
        predictions = np.empty(users.size)
        order = np.argsort(users, kind="stable")
        distinct, firsts = np.unique(users[order], return_index=True)
        ends = np.append(firsts[1:], users.size)
        for start in range(0, distinct.size, _USERS_AT_ONCE):
            block = slice(start, start + _USERS_AT_ONCE)
            cells = order[firsts[block][0] : ends[block][-1]]
            rows = np.repeat(np.arange(distinct[block].size), ends[block] - firsts[block])
            factors = solve_user_factors(self._profiles(distinct[block]), self.item_factors, self.ridge)
            predictions[cells] = inner_products(factors, self.item_factors, rows, items[cells])
        return predictions if self.base is None else predictions + self.base[items]

    def _profiles(self, users: NDArray[np.integer]) -> Profiles:
        """Return the ratings of some users."""
        starts = self.ratings.indptr[users]
        counts = self.ratings.indptr[users + 1] - starts
        cells = segments(starts, counts)
        items, values = self.ratings.items[cells], self.ratings.values_at(cells)
        residuals = values if self.base is None else values - self.base[items]
        return Profiles(offsets(counts), items, residuals, self.ratings.n_items)
