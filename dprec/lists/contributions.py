"""What a device contributes to sums for lists: its item set as a vector of norm 1, or its pairs of items.

Every profile has the same length, whatever its size, so that none has to be clipped: clipped ones would say
less (the vectors of users with many items are short anyway in each number).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Pieces, offsets, places_of, rows_of, segments
from dprec.sums import UNIT, Contributions, Layout
from dprec.wire import decode_item_sets, encode_item_sets

DIAGONAL = 0.5
"""What an item with itself counts beside two items: less of a norm goes to popularity, more to pairs."""


@dataclass(frozen=True, eq=False)
class SetLayout(Layout):
    """One number for each cell of a vector that follows from a user's item set."""

    n_items: int
    """Items that count."""

    @property
    def width(self) -> int:
        """One."""
        return 1

    @property
    def scales(self) -> Floats:
        """One: vectors have norm 1 already."""
        return np.ones(1)

    @abstractmethod
    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the vectors of item sets: where each begins, its cells, ascending, and their numbers.

        Parameters
        ----------
        indptr : ndarray of int64, shape (users + 1,)
        items : ndarray of int, shape (entries,)
            From 0 to ``n_items`` - 1, ascending within a user.
        """

    def of(self, indptr: Ints, items: AnyInts) -> SetContributions:
        """Return what users with these item sets contribute; see `cells`."""
        starts, cells, numbers = self.cells(indptr, items)
        # Towards 0, which makes no vector longer.
        units = np.trunc(numbers / UNIT).astype(np.int64)
        return SetContributions(starts, cells.astype(np.int32), units, indptr, items.astype(np.int32))

    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Reject what is no item set, and add up the vectors of the rest; see `Layout.added_up`."""
        whole = Pieces.of(reports)
        empty = whole.sizes == 0
        valid, counts, items, ends = decode_item_sets(whole, self.n_items)
        valid &= ~empty & (ends == whole.bounds[1:])
        kept = items[np.repeat(valid, counts)]
        vectors = self.of(offsets(counts[valid]), kept)
        total = np.zeros(self.n_rows, dtype=np.int64)
        np.add.at(total, vectors.items, vectors.units)
        return valid | empty, total[:, None]

    def report_bits(self, ratings: int) -> int:
        """Return the bits of an item set, evenly spread; see `Layout.report_bits`."""
        size = min(ratings, self.n_items)
        items = np.linspace(0, self.n_items - 1, size).astype(np.int64)
        return 8 * len(encode_item_sets(np.array([0, size]), items, self.n_items).data)


@dataclass(frozen=True, eq=False)
class SetContributions(Contributions[SetLayout]):
    """Vectors of item sets; ``items`` holds their cells."""

    units: Ints
    """The number of each cell, in units of `UNIT`; shape (cells,)."""
    set_indptr: Ints
    set_items: Int32s
    """The item sets; shapes (users + 1,) and (entries,)."""

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        indptr, sets = (each[users.start : users.stop + 1] for each in (self.indptr, self.set_indptr))
        cells, entries = slice(indptr[0], indptr[-1]), slice(sets[0], sets[-1])
        return type(self)(
            indptr - indptr[0], self.items[cells], self.units[cells], sets - sets[0], self.set_items[entries]
        )

    def numbers(self, layout: SetLayout) -> Ints:
        """Return the number of every cell, shape (cells, 1); see `Contributions.numbers`."""
        return self.units[:, None]

    def encode(self, layout: SetLayout) -> list[bytes]:
        """Return every user's item set; a user without an item sends nothing."""
        return list(encode_item_sets(self.set_indptr, self.set_items, layout.n_items))


@dataclass(frozen=True, eq=False)
class PopularityLayout(SetLayout):
    """A number for each item: a user with n items adds 1 / sqrt(n) to each of them, or 1 without a budget."""

    normalised: bool = True

    @property
    def n_rows(self) -> int:
        """Number of items."""
        return self.n_items

    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the items, each with its number; see `SetLayout.cells`."""
        counts = np.diff(indptr)
        if not self.normalised:
            return indptr, items, np.ones(items.size)
        return indptr, items, np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)


@dataclass(frozen=True, eq=False)
class PairLayout(SetLayout):
    """A number for each pair of items, itself and itself included: the upper triangle of a matrix, by row.

    A user with n items adds w to each of its pairs, and half of w to each item with itself, where w is
    1 / sqrt(n / 4 + n (n - 1) / 2).
    """

    @property
    def n_rows(self) -> int:
        """Number of pairs."""
        return self.n_items * (self.n_items + 1) // 2

    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the pairs of every set; see `SetLayout.cells`."""
        counts = np.diff(indptr)
        own = places_of(counts)
        # Each item with itself and all after it.
        partners = counts[rows_of(counts)] - own
        first = np.repeat(items.astype(np.int64), partners)
        second = items[segments(np.arange(items.size), partners)].astype(np.int64)
        pairs = counts * (counts + 1) // 2
        before = first * self.n_items - first * (first - 1) // 2
        squares = DIAGONAL**2 * counts + counts * (counts - 1) / 2
        weights = np.repeat(1 / np.sqrt(np.maximum(squares, DIAGONAL**2)), pairs)
        numbers = np.where(first == second, DIAGONAL, 1.0) * weights
        return offsets(pairs), before + second - first, numbers
