"""Groups of items by how often they are rated, which anybody sees who sees which items are rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def popularity_groups(ratings: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return the group of every item, such that each group has about the same number of ratings.

    Parameters
    ----------
    ratings : ndarray of int64, shape (items,)
        How often each item is rated.
    groups : int
        At least 1.

    Returns
    -------
    ndarray of int64, shape (items,)
        From 0, the items that are rated most often; of equally popular items, the first come first.
    """
    order = np.argsort(-ratings, kind="stable")
    before = np.cumsum(ratings[order]) - ratings[order]
    result = np.empty(ratings.size, dtype=np.int64)
    result[order] = np.minimum(before * groups // max(int(ratings.sum()), 1), groups - 1)
    return result
