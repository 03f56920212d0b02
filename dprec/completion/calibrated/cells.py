"""Sums over the rated cells of each user and of each item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import offsets


@dataclass(frozen=True, eq=False)
class Cells:
    """Rated cells, by user."""

    users: NDArray[np.integer]
    items: NDArray[np.integer]
    """Users ascending; shape (cells,)."""
    shape: tuple[int, int]
    """Users and items of the whole catalogue."""

    def by_user(self, weights: NDArray[np.float64], of_items: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each user the sum of weight times what belongs to the item, over the user's cells.

        Parameters
        ----------
        weights : ndarray, shape (cells,)
        of_items : ndarray, shape (items, ...)

        Returns
        -------
        ndarray, shape (users, ...)
        """
        return _times(self._matrix(weights), of_items)

    def by_item(self, weights: NDArray[np.float64], of_users: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each item the same sum over its cells, shape (items, ...)."""
        return _times(self._matrix(weights).T, of_users)

    @cached_property
    def _indptr(self) -> NDArray[np.int64]:
        return offsets(np.bincount(self.users, minlength=self.shape[0]))

    def _matrix(self, weights: NDArray[np.float64]) -> sp.csr_array:
        return sp.csr_array((weights, self.items, self._indptr), shape=self.shape)


def _times(matrix: sp.csr_array, values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = matrix @ values.reshape(len(values), -1)
    return sums.reshape(matrix.shape[0], *values.shape[1:])
