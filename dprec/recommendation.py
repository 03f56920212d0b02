"""The items that users are recommended: those with the highest predictions that they have not rated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dprec.ragged import places_of
from dprec.ratings import Ratings

_CELLS = 1 << 20
"""Cells that are predicted at once."""

_ITEMS = 4096
"""Items that are predicted at once; it bounds what a device holds of a large catalogue."""

NO_ITEM = -1
"""What ends the list of a user with fewer items to recommend."""


def recommended(
    predict: Callable[[NDArray[np.integer], NDArray[np.integer]], NDArray[np.float64]],
    rated: Ratings,
    users: NDArray[np.integer],
    n: int,
    candidates: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return each user's best unrated items, the best first.

    Memory does not grow with the number of users, and with the number of items only by a row per user.

    Parameters
    ----------
    predict : callable
        From arrays of users and items to predicted ratings.
    rated : Ratings
        Which items are left out.
    users : ndarray of int, shape (users,)
    n : int
        Length of the lists, at least 1.
    candidates : ndarray of bool, shape (items,), optional
        Which items may be recommended; by default all.

    Returns
    -------
    ndarray of int64, shape (users, min(n, items))
        Of equal predictions, the first items; `NO_ITEM` after the last item of a short list.
    """
    n_items, width = rated.n_items, min(n, rated.n_items)
    allowed = np.ones(n_items, dtype=np.bool_) if candidates is None else candidates
    lists = np.empty((users.size, width), dtype=np.int64)
    step = max(1, _CELLS // max(1, n_items))
    for start in range(0, users.size, step):
        asked = users[start : start + step].astype(np.int64)
        counts = rated.counts[asked]
        own = np.repeat(rated.indptr[asked], counts) + places_of(counts)
        wanted = np.repeat(allowed[None, :], asked.size, axis=0)
        wanted[np.repeat(np.arange(asked.size), counts), rated.items[own]] = False
        scores = np.full(wanted.shape, -np.inf)
        for first in range(0, n_items, _ITEMS):
            rows, places = np.nonzero(wanted[:, first : first + _ITEMS])
            scores[rows, places + first] = predict(asked[rows], places + first)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        listed = np.take_along_axis(wanted, best, axis=1)
        lists[start : start + step] = np.where(listed, best, NO_ITEM)
    return lists
