"""Look-ups in arrays that are sorted: the identifiers, cells and items that tables are kept by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def find(keys: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look values up in ascending keys.

    Returns
    -------
    places : ndarray of int64, shape (wanted,)
        Where each value stands among the keys; where it is not one of them, any valid place (0 when
        there are no keys).
    present : ndarray of bool, shape (wanted,)
    """
    places = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    present = keys[places] == wanted if keys.size else np.zeros(wanted.size, dtype=np.bool_)
    return places, present
