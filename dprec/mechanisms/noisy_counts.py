"""What a server holds of noisy counts: how many of some cells' ratings reach a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts over disjoint sets of cells, each of one user."""

    cells: NDArray[np.int64]
    row_of: NDArray[np.int64]
    """Places among the observed cells of those that are counted, and the row of each; shape (cells,)."""
    users: NDArray[np.int64]
    values: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """The user of each row, its noisy count, and the number of its cells, at least 1; shape (rows,)."""
    epsilons: NDArray[np.float64]
    """Of the two-sided geometric noise; a value is clamped to 0 and the size of its row; shape (rows,)."""
    least_level: int
    """The lowest level that is counted, from 2."""
