"""What a device contributes to a sum: its set as a sparse vector of norm 1, without a negative number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dprec.arrays import Floats, Ints, offsets, rows_of

DIAGONAL = 0.25
"""What a contribution's diagonal is multiplied by: less of its norm goes to popularity, more to pairs."""


@dataclass(frozen=True, eq=False)
class UnitRows:
    """A sparse vector of each device, of norm 1, or empty where a device has nothing to contribute."""

    indptr: Ints
    """Shape (devices + 1,)."""
    cells: Ints
    """Ascending within a row; shape (numbers,)."""
    values: Floats
    """Above 0; shape (numbers,)."""

    def total(self, cells: int) -> Floats:
        """Return the sum of all rows, shape (cells,)."""
        total = np.bincount(self.cells, weights=self.values, minlength=cells)
        return total.astype(np.float64, copy=False)


def popularity_contributions(sets: sparse.csr_array) -> UnitRows:
    """Return each set divided by the root of its size, whose sum tells the popular items.

    ``sets``, shape (users, items): ones.
    """
    sizes = np.diff(sets.indptr).astype(np.int64)
    values = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes)
    return UnitRows(sets.indptr.astype(np.int64), sets.indices.astype(np.int64), values)


def triangle_size(items: int) -> int:
    """Return the cells of an upper triangle with its diagonal."""
    return items * (items + 1) // 2


def triangle_cells(first: Ints, second: Ints, items: int) -> Ints:
    """Return the cells of pairs in the upper triangle, by rows; no first is larger than its second."""
    cells: Ints = first * (2 * items - first - 1) // 2 + second
    return cells


def gram_contributions(sets: sparse.csr_array) -> UnitRows:
    """Return the upper triangle of each set's outer product, its diagonal times `DIAGONAL`, with norm 1.

    Every profile is normalised and none is clipped: a pair of a set of n items weighs
    1 / sqrt(n / 16 + n (n - 1) / 2).

    Parameters
    ----------
    sets : csr_array, shape (users, items)
        Ones, sorted within a row, in the columns of the items that take part.

    Returns
    -------
    UnitRows
        Cells as `triangle_cells` numbers them.
    """
    indptr, items = sets.indptr.astype(np.int64), sets.indices.astype(np.int64)
    sizes = np.diff(indptr)
    places = np.arange(items.size) - np.repeat(indptr[:-1], sizes)
    partners = np.repeat(sizes, sizes) - places
    first = np.repeat(items, partners)
    starts = np.repeat(np.arange(items.size) - offsets(partners)[:-1], partners)
    second = items[starts + np.arange(first.size)]
    rows = sizes * (sizes + 1) // 2
    weight = 1 / np.sqrt(np.maximum(DIAGONAL**2 * sizes + sizes * (sizes - 1) / 2, DIAGONAL**2))
    values = weight[rows_of(rows)] * np.where(first == second, DIAGONAL, 1.0)
    return UnitRows(offsets(rows), triangle_cells(first, second, sets.shape[1]), values)
