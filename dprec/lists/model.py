"""What devices are sent for lists: popularity, what is public of the items, and how items go together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats, Int32s, Uint8s
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.errors import InputError
from dprec.lists.gram import DenoisedTable, regularised_inverse, scores
from dprec.lists.public_kernels import BINS, PublicKernels, popularity_bins

if TYPE_CHECKING:
    import scipy.sparse as sp

_NUMBER, _SMALL, _COUNT = np.dtype("<f4"), np.dtype("<f2"), np.dtype("<u4")

LARGEST = 200.0
"""Bounds logarithms of what is received, so that no score of a device overflows."""

_MOST_CATEGORIES = 1 << 24
"""Categories of all items at most, which bounds the memory of a device to eight bytes for each."""


@dataclass(frozen=True, eq=False)
class ItemTable:
    """How the items that take part go together."""

    items: Int32s
    """Ascending; shape (table's items,)."""
    inverse: Floats
    """Of the regularised co-occurrence, divided by the roots of its diagonal on both sides: symmetric, with
    ones on the diagonal; shape (table's items, table's items).
    """
    roots: Floats
    """The roots of that diagonal, above 0; shape (table's items,)."""
    share: float
    """What a standard deviation of the scores by the table counts for."""

    @classmethod
    def nothing(cls) -> Self:
        """Return a table of no items."""
        return cls(np.zeros(0, dtype=np.int32), np.zeros((0, 0)), np.zeros(0), 0.0)

    @classmethod
    def of(cls, items: Int32s, table: DenoisedTable, ridge: float, share: float) -> Self:
        """Return what devices are sent of a table of these items."""
        inverse = regularised_inverse(table, ridge)
        roots = np.sqrt(np.diag(inverse))
        return cls(items, inverse / np.outer(roots, roots), roots, share)

    @cached_property
    def weights(self) -> Floats:
        """The weights between items, 0 from an item to itself; shape (from items, to items).

        They are the regression of each item on all others (EASE: Steck [steck2019]).
        """
        weights: Floats = -self.inverse * self.roots[:, None] / self.roots
        np.fill_diagonal(weights, 0.0)
        return weights


@dataclass(frozen=True, eq=False)
class ListModel:
    """What devices rank by."""

    popularity: Floats
    """Logarithm of each item's popularity; shape (items,)."""
    categories: Bools
    """Public categories; shape (items, categories)."""
    bins: Uint8s
    """Which part of all popularity each public number of an item falls into; shape (numbers, items)."""
    table: ItemTable

    @classmethod
    def of(
        cls,
        popularity: Floats,
        catalogue: Catalogue | None,
        table: ItemTable,
        parted_by: Floats | None = None,
    ) -> Self:
        """Return what devices are sent, given popularity in any unit, above 0, shape (items,).

        ``parted_by``: the popularity of which numbers have equal parts; by default the same.
        """
        if catalogue is None:
            categories = np.zeros((popularity.size, 0), dtype=np.bool_)
            bins = np.zeros((0, popularity.size), dtype=np.uint8)
        else:
            categories = catalogue.categories
            bins = popularity_bins(catalogue.numbers, popularity if parted_by is None else parted_by)
        return cls(np.log(popularity), categories, bins, table)

    @cached_property
    def _kernels(self) -> PublicKernels:
        """How alike items are by what is public of them."""
        return PublicKernels.among(self.categories, self.bins, np.exp(self.popularity))

    def scores(self, sets: sp.csr_array) -> Floats:
        """Return by what devices rank all items, from their users' sets, shape (users, items)."""
        expected = np.tile(self.popularity, (sets.shape[0], 1))
        if self.categories.size or self.bins.size:
            expected += self._kernels.scores(sets)
        table = self.table
        if not table.items.size:
            return expected
        return scores(sets, table.items, table.weights, expected, table.share)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return by what devices rank all items, shape (users, items)."""
        return self.scores(profiles.to_sets())

    def encode(self) -> bytes:
        """Return the bytes that devices are sent; raises InputError for more categories than they take.

        The table is its upper triangle in half precision, without the diagonal.
        """
        table = self.table
        if self.categories.size > _MOST_CATEGORIES:
            found = "{1:,} categories of {0:,} items, in a model for devices".format(*self.categories.shape)
            raise InputError("the catalogue", found, f"at most {_MOST_CATEGORIES:,} of all items")
        sizes = np.array([self.categories.shape[1], len(self.bins), table.items.size], dtype=_COUNT)
        upper = table.inverse[np.triu_indices(table.items.size, 1)]
        return b"".join(
            [
                sizes.tobytes(),
                np.append(self.popularity, table.share).astype(_NUMBER).tobytes(),
                np.packbits(self.categories, axis=1).tobytes(),
                self.bins.tobytes(),
                table.items.astype(_COUNT).tobytes(),
                table.roots.astype(_NUMBER).tobytes(),
                upper.astype(_SMALL).tobytes(),
            ]
        )

    @classmethod
    def decode(cls, data: bytes, n_items: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        read = Reader(data)
        n_categories, n_numbers, size = read.numbers(_COUNT, 3).tolist()
        if size > n_items:
            raise ValueError(f"a table of {size} of {n_items} items")
        if n_categories * n_items > _MOST_CATEGORIES:
            raise ValueError(f"{n_categories} categories of {n_items} items")
        *popularity, share = read.numbers(_NUMBER, n_items + 1).tolist()
        packed = read.numbers(np.dtype(np.uint8), n_items * -(-n_categories // 8)).reshape(n_items, -1)
        categories = np.unpackbits(packed, axis=1, count=n_categories).astype(np.bool_)
        bins = read.numbers(np.dtype(np.uint8), n_numbers * n_items).reshape(n_numbers, n_items)
        items = read.numbers(_COUNT, size).astype(np.int64)
        roots = read.numbers(_NUMBER, size).astype(np.float64)
        upper = read.numbers(_SMALL, size * (size - 1) // 2).astype(np.float64)
        read.end()
        # Not a number is in no range.
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.array([*popularity, share, *np.log(roots)])
        possible = (np.abs(logarithms) <= LARGEST).all() and (np.abs(upper) <= 1).all()
        if not (possible and (bins < BINS).all()):
            raise ValueError("a list model with numbers out of range")
        if not ((items < n_items).all() and (np.diff(items) > 0).all()):
            raise ValueError("a table of items that are not in order")
        inverse = np.zeros((size, size))
        inverse[np.triu_indices(size, 1)] = upper
        inverse += inverse.T + np.eye(size)
        table = ItemTable(items.astype(np.int32), inverse, roots, share)
        return cls(np.array(popularity), categories, bins, table)


class Reader:
    """Numbers one after another in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def numbers(self, kind: np.dtype[Any], count: int) -> AnyArray:
        """Return so many numbers; raises ValueError where there are fewer."""
        end = self._place + count * kind.itemsize
        if end > len(self._data):
            raise ValueError(f"{len(self._data)} bytes of a list model, of which {end} are needed")
        numbers = np.frombuffer(self._data[self._place : end], dtype=kind)
        self._place = end
        return numbers

    def rest(self) -> bytes:
        """Return what was not read yet."""
        return self._data[self._place :]

    def end(self) -> None:
        """Raise ValueError where there is more."""
        if self._place != len(self._data):
            raise ValueError(f"{len(self._data)} bytes of a list model, of which {self._place} are read")
