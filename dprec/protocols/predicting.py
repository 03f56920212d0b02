"""What devices predict from what they hold and their users' profiles, computed for many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprec.arrays import AnyInts, Floats, offsets, segments
from dprec.completion import Profiles, inner_products, solve_user_factors
from dprec.predictions import cells_from_rows
from dprec.ratings import Ratings

_USERS_AT_ONCE = 1 << 16
"""Users whose factors are solved together: bounds the memory for any number of users."""


@dataclass(frozen=True, eq=False)
class OwnFactors:
    """The predictions of devices that hold some item factors."""

    ratings: Ratings
    """What the devices hold."""
    item_factors: Floats
    """Shape (items, rank)."""
    ridge: float
    """As for `solve_user_factors`."""
    base: Floats | None = None
    """What is predicted without factors; 0 by default; shape (items,)."""
    solve: Callable[[Profiles, Floats, float], Floats] = solve_user_factors
    """How users' factors are solved for."""

    def __call__(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the predictions of some cells, in any order, shape (cells,)."""
        predictions = np.empty(users.size)
        order = np.argsort(users, kind="stable")
        distinct, firsts = np.unique(users[order], return_index=True)
        ends = np.append(firsts[1:], users.size)
        for start in range(0, distinct.size, _USERS_AT_ONCE):
            block = slice(start, start + _USERS_AT_ONCE)
            cells = order[firsts[block][0] : ends[block][-1]]
            rows = np.repeat(np.arange(distinct[block].size), ends[block] - firsts[block])
            profiles = held_profiles(self.ratings, distinct[block])
            if self.base is not None:
                profiles = replace(profiles, values=profiles.values - self.base[profiles.items])
            factors = self.solve(profiles, self.item_factors, self.ridge)
            predictions[cells] = inner_products(factors, self.item_factors, rows, items[cells])
        return predictions if self.base is None else predictions + self.base[items]


def predictions_on_devices(ratings: Ratings, predictions: Callable[[Profiles], Floats]) -> dict[str, Any]:
    """Return what devices predict of all items from what they hold: `predict` and `predict_rows`."""

    def predict_rows(users: AnyInts, n_items: int) -> Floats:
        return predictions(held_profiles(ratings, users))

    return {"predict": cells_from_rows(predict_rows, ratings.n_items), "predict_rows": predict_rows}


def held_profiles(ratings: Ratings, users: AnyInts) -> Profiles:
    """Return what the devices of some users hold, in their order; values are NaN of implicit data."""
    starts = ratings.indptr[users]
    counts = ratings.indptr[users + 1] - starts
    cells = segments(starts, counts)
    values = np.full(cells.size, np.nan) if ratings.scale.implicit else ratings.values_at(cells)
    return Profiles(offsets(counts), ratings.items[cells], values, ratings.n_items)
