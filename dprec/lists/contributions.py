"""What a device contributes to sums for lists: its item set as a vector of norm 1, or its pairs of items.

Every profile has the same length, whatever its size, so that none has to be clipped: clipped ones would say
less (the vectors of users with many items are short anyway in each number). That gives one who has a single
item, or says so, the weight of hundreds in that item's number; where sets count as having some items at
least, it has the weight of a few.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    Pieces,
    blocks,
    find,
    offsets,
    places_of,
    rows_of,
    segments,
)
from dprec.sums import UNIT, Contributions, Layout, Vectors
from dprec.wire import decode_item_sets, encode_item_sets

DIAGONAL = 0.25
"""What an item with itself counts beside two items: less of a norm goes to popularity, more to pairs."""


_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of vectors that are added up."""


@dataclass(frozen=True, eq=False)
class SetLayout(Layout):
    """One number for each cell of a vector that follows from a user's item set."""

    n_items: int
    """Items that count."""

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def signed(self) -> bool:
        """False: no number is negative."""
        return False

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

    @abstractmethod
    def sizes(self, counts: Ints) -> Ints:
        """Return how many cells the vectors of sets of so many items have, shape (users,)."""

    @abstractmethod
    def about(self, items: AnyInts) -> Bools:
        """Return which rows say something about some items, from 0 to ``n_items`` - 1; shape (rows,)."""

    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Reject what is no item set, and add up the vectors of the rest; see `Layout.added_up`."""
        whole = Pieces.of(reports)
        empty = whole.sizes == 0
        valid, counts, items, ends = decode_item_sets(whole, self.n_items)
        valid &= ~empty & (ends == whole.bounds[1:])
        sets = SetContributions(offsets(counts[valid]), items[np.repeat(valid, counts)])
        total = np.zeros(self.n_rows, dtype=np.int64)
        for users in blocks(self.sizes(counts[valid]), _CELLS_AT_ONCE):
            vectors = sets.of_users(users).vectors(self)
            np.add.at(total, vectors.rows, vectors.numbers[:, 0])
        return valid | empty, total[:, None]

    def report_bits(self, ratings: int) -> int:
        """Return the bits of an item set, evenly spread; see `Layout.report_bits`."""
        size = min(ratings, self.n_items)
        items = np.linspace(0, self.n_items - 1, size).astype(np.int64)
        return 8 * len(encode_item_sets(np.array([0, size]), items, self.n_items).data)


@dataclass(frozen=True, eq=False)
class SetContributions(Contributions[SetLayout]):
    """Item sets, and the vectors that follow from them."""

    indptr: Ints
    """Shape (users + 1,)."""
    items: Int32s
    """From 0 to the layout's ``n_items`` - 1, ascending within a user; shape (entries,)."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        indptr = self.indptr[users.start : users.stop + 1]
        return type(self)(indptr - indptr[0], self.items[indptr[0] : indptr[-1]])

    def vectors(self, layout: SetLayout) -> Vectors:
        """Return the vectors of the sets; see `SetLayout.cells`."""
        indptr, rows, numbers = layout.cells(self.indptr, self.items)
        # Towards 0, which makes no vector longer.
        units = np.trunc(numbers / UNIT).astype(np.int64)
        return Vectors(indptr, rows.astype(np.int32), units[:, None])

    def encode(self, layout: SetLayout) -> list[bytes]:
        """Return every user's item set; a user without an item sends nothing."""
        return list(encode_item_sets(self.indptr, self.items, layout.n_items))


@dataclass(frozen=True, eq=False)
class PopularityLayout(SetLayout):
    """A number for each item: a user with n items adds 1 / sqrt(n) to each of them, or 1 without a budget."""

    normalised: bool = True
    fewest: int = 1
    """Smaller sets count as if they had so many items."""

    @property
    def n_rows(self) -> int:
        """Number of items."""
        return self.n_items

    @property
    def largest(self) -> float:
        """That of a set of as few items as count; see `Layout.largest`."""
        return 1 / math.sqrt(self.fewest) if self.normalised else 1.0

    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the items, each with its number; see `SetLayout.cells`."""
        counts = np.diff(indptr)
        if not self.normalised:
            return indptr, items, np.ones(items.size)
        return indptr, items, np.repeat(1 / np.sqrt(np.maximum(counts, self.fewest)), counts)

    def honest(self, counts: Ints) -> Floats:
        """Return what each item is given; see `Layout.honest`."""
        lengths: Floats = 1 / np.sqrt(np.maximum(counts, self.fewest))
        return lengths if self.normalised else np.ones(counts.size)

    def about(self, items: AnyInts) -> Bools:
        """Return the items; see `SetLayout.about`."""
        return np.isin(np.arange(self.n_items), items)

    def sizes(self, counts: Ints) -> Ints:
        """Return the items; see `SetLayout.sizes`."""
        return counts


@dataclass(frozen=True, eq=False)
class PairLayout(SetLayout):
    """A number for each pair of items, itself and itself included: the upper triangle of a matrix, by row.

    A user with n items adds w to each of its pairs, and a quarter of w to each item with itself, where w is
    1 / sqrt(n / 16 + n (n - 1) / 2).
    """

    fewest: int = 1
    """Smaller sets count as if they had so many items."""

    @property
    def n_rows(self) -> int:
        """Number of pairs."""
        return self.n_items * (self.n_items + 1) // 2

    @property
    def largest(self) -> float:
        """That of a set of as few items as count; see `Layout.largest`."""
        return 1.0 if self.fewest == 1 else float(self._weights(np.array([self.fewest]))[0])

    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the pairs of every set; see `SetLayout.cells`."""
        counts = np.diff(indptr)
        own = places_of(counts)
        # Each item with itself and all after it.
        partners = counts[rows_of(counts)] - own
        first = np.repeat(items.astype(np.int64), partners)
        second = items[segments(np.arange(items.size), partners)].astype(np.int64)
        pairs = self.sizes(counts)
        before = first * self.n_items - first * (first - 1) // 2
        weights = np.repeat(self._weights(counts), pairs)
        numbers = np.where(first == second, DIAGONAL, 1.0) * weights
        return offsets(pairs), before + second - first, numbers

    def _weights(self, counts: Ints) -> Floats:
        """Return what sets of so many items add to each of their pairs."""
        counted = np.maximum(counts, self.fewest)
        return 1 / np.sqrt(DIAGONAL**2 * counted + counted * (counted - 1) / 2)

    def honest(self, counts: Ints) -> Floats:
        """Return what each pair is given, or a single item with itself; see `Layout.honest`."""
        return self._weights(counts) * np.where(counts > 1, 1.0, DIAGONAL)

    def about(self, items: AnyInts) -> Bools:
        """Return the pairs that one of them is in; see `SetLayout.about`."""
        first, second = np.triu_indices(self.n_items)
        asked = np.isin(np.arange(self.n_items), items)
        return asked[first] | asked[second]

    def sizes(self, counts: Ints) -> Ints:
        """Return the pairs; see `SetLayout.sizes`."""
        return counts * (counts + 1) // 2


_BELOW_ONE = 1 - 2.0**-40
"""So that rounding makes no contribution longer than 1."""


@dataclass(frozen=True, eq=False)
class ProductLayout(SetLayout):
    """A number for each item that takes part and each public feature, by item.

    Of its n items that take part, a user adds to each the features of all its other items, divided by their
    norm and by the root of n.
    """

    taking_part: Int32s
    """Items of the table, ascending; shape (table's items,)."""
    features: Floats
    """Public features, none negative; shape (n_items, features)."""
    fewest: int = 1
    """Sets with fewer items that take part count as if they had so many."""

    @property
    def largest(self) -> float:
        """That of a set of as few items as count; see `Layout.largest`."""
        return 1 / math.sqrt(self.fewest)

    @property
    def n_rows(self) -> int:
        """Number of items of the table times that of features."""
        return int(self.taking_part.size * self.features.shape[1])

    def cells(self, indptr: Ints, items: AnyInts) -> tuple[Ints, AnyInts, Floats]:
        """Return the features of every set's other items; see `SetLayout.cells`."""
        n_users, columns = indptr.size - 1, self.features.shape[1]
        owners = rows_of(np.diff(indptr))
        places, present = find(self.taking_part, items)
        owners, places, own = owners[present], places[present], self.features[items[present]]
        counts = np.bincount(owners, minlength=n_users)
        counted = np.maximum(counts, self.fewest)
        sets = sp.csr_array((np.ones(items.size), items, indptr), shape=(n_users, self.n_items))
        others = (sets @ self.features)[owners] - own
        squares = (others**2).sum(axis=1)
        # What is smaller is rounding alone.
        lengths = np.where(squares > 1e-12, np.sqrt(squares * counted[owners]), np.inf)
        numbers = np.maximum(others, 0.0) * (_BELOW_ONE / lengths)[:, None]
        rows = places[:, None] * columns + np.arange(columns)
        return offsets(counts * columns), rows.ravel(), numbers.ravel()

    def honest(self, counts: Ints) -> Floats:
        """Return how long the features of an item are, beside others that have any; see `Layout.honest`."""
        return (counts > 1) / np.sqrt(np.maximum(counts, self.fewest))

    def about(self, items: AnyInts) -> Bools:
        """Return the features of those that take part; see `SetLayout.about`."""
        return np.repeat(np.isin(self.taking_part, items), self.features.shape[1])

    def sizes(self, counts: Ints) -> Ints:
        """Return the numbers, if all items take part; see `SetLayout.sizes`."""
        return counts * self.features.shape[1]
