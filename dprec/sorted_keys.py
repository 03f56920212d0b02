"""Look-ups in sorted arrays, such as identifiers, cells and items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def find(keys: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look up values in ascending keys.

    Returns
    -------
    places : ndarray of int64, shape (wanted,)
        Place of each value among the keys; any valid place if it is not among them (0 if there are no
        keys).
    present : ndarray of bool, shape (wanted,)
        Whether each value is among the keys.
    """
    places = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    present = keys[places] == wanted if keys.size else np.zeros(wanted.size, dtype=np.bool_)
    return places, present
