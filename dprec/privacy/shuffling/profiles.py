"""Messages that hold all of a user's reports, shuffled among those of other users."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import clones_delta, least_epsilon
from dprec.arrays import cut


def with_the_same_items(counts: NDArray[np.int64], items: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return how many users report on exactly the items of each user, itself included, shape (users,).

    Parameters
    ----------
    counts : ndarray of int64, shape (users,)
        Items of each user.
    items : ndarray of int, shape (sum of counts,)
        By user, ascending.
    """
    ordered = np.ascontiguousarray(items)
    sets = cut(ordered.tobytes(), counts * ordered.itemsize)
    alike = Counter(sets)
    return np.array([alike[own] for own in sets], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ShuffledProfiles:
    """Messages with all reports of a user, of which only those that show the same items hide each other."""

    losses: NDArray[np.float64]
    """What each message loses if it is not shuffled, without a delta; shape (users,)."""
    mixed: NDArray[np.int64]
    """Among how many messages each is hidden, itself included; 0 for users without an accepted report;
    shape (users,).
    """

    def per_user(self, delta: float) -> NDArray[np.float64]:
        """Return an epsilon for all that a user reports that holds with delta, shape (users,).

        Users with the same items send through the same channels, and their messages hide each other as those
        of any randomiser with their losses do. Infinite for users without an accepted report.
        """
        cases = np.column_stack([self.losses, self.mixed.astype(np.float64)])
        distinct, of_user = np.unique(cases, axis=0, return_inverse=True)
        bounds = [_hidden(loss, int(mixed), delta) for loss, mixed in distinct.tolist()]
        return np.array(bounds)[of_user.ravel()]


def _hidden(loss: float, mixed: int, delta: float) -> float:
    if mixed == 0:
        return math.inf
    # Where no clone is to be expected, nothing is gained.
    if loss == 0 or loss > math.log(mixed):
        return loss
    return least_epsilon(lambda epsilon: clones_delta(epsilon, mixed, loss), loss, delta)
