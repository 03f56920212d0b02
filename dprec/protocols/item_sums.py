"""What devices add to sums of items that go together: pairs of a table's items, and items with groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np

from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    Uint8s,
    find,
    offsets,
    places_of,
    rows_of,
    segments,
)
from dprec.completion import Profiles
from dprec.lists.gram import DIAGONAL
from dprec.lists.groups import NO_GROUP, others_in_groups
from dprec.protocols.sums import SummedDevice
from dprec.sums import Release
from dprec.wire import Reader, encode_items


@dataclass(frozen=True, eq=False)
class PairSum:
    """A number for each pair of items, itself and itself included: an upper triangle, by row."""

    items: Int32s
    """Ascending; shape (items,)."""
    fewest: int
    """Items that every set counts as having at least."""

    @property
    def most(self) -> float:
        """What a user adds to a number at most."""
        return 1.0 if self.fewest == 1 else float(pair_weights(np.array([self.fewest]))[0])

    def release(self, device: SummedDevice, round_index: int) -> Release:
        """Return the sum of a round."""
        size = self.items.size
        return Release(
            device,
            round_index,
            pairs_of(size),
            size,
            most=self.most,
            fewest=self.fewest,
            honestly=self._honest,
        )

    def _honest(self, counts: Ints) -> Floats:
        return pair_weights(np.maximum(counts, self.fewest)) * np.where(counts > 1, 1.0, DIAGONAL)

    def taking_part(self, profiles: Profiles) -> Profiles:
        """Return the sets as places among the items."""
        return _among(self.items, profiles)

    def cells(self, profiles: Profiles) -> tuple[Ints, AnyInts, Floats]:
        """Return w at each pair and a quarter of w at each item with itself.

        Of n items that take part, w is 1 / sqrt(n / 16 + n (n - 1) / 2).
        """
        items, counts, size = profiles.items, np.diff(profiles.indptr), self.items.size
        # Each item with itself and all after it.
        partners = counts[rows_of(counts)] - places_of(counts)
        first = np.repeat(items.astype(np.int64), partners)
        second = items[segments(np.arange(items.size), partners)].astype(np.int64)
        pairs = pairs_of(counts)
        row_starts = first * size - first * (first - 1) // 2
        weights = np.repeat(pair_weights(np.maximum(counts, self.fewest)), pairs)
        return offsets(pairs), row_starts + second - first, np.where(first == second, DIAGONAL, 1.0) * weights

    def work(self, counts: Ints) -> Ints:
        """Return the pairs of sets of so many items."""
        return pairs_of(counts)

    def about(self, items: AnyInts) -> Bools:
        """Return the pairs that one of some items is in."""
        first, second = np.triu_indices(self.items.size)
        matches = np.isin(self.items, items)
        return matches[first] | matches[second]


@overload
def pairs_of(items: int) -> int: ...
@overload
def pairs_of(items: Ints) -> Ints: ...
def pairs_of(items: int | Ints) -> int | Ints:
    """Return how many pairs so many items have, each with itself included."""
    return items * (items + 1) // 2


def pair_weights(counts: Ints) -> Floats:
    """Return what sets of so many items add to each of their pairs."""
    weights: Floats = 1 / np.sqrt(DIAGONAL**2 * counts + counts * (counts - 1) / 2)
    return weights


@dataclass(frozen=True, eq=False)
class GroupSum:
    """A number for each item and each group of items."""

    items: Int32s
    """Ascending, those of the table among them; shape (items,)."""
    groups: Uint8s
    """Of the items in the table; `NO_GROUP` of others; shape (items,)."""
    count: int
    """Groups."""
    fewest: int

    def release(self, device: SummedDevice, round_index: int) -> Release:
        """Return the sum of a round."""
        # Who has a single item adds nothing.
        size, most = self.items.size, 1 / math.sqrt(max(self.fewest, 2))
        rows, fewest = size * self.count, self.fewest
        return Release(device, round_index, rows, size, most=most, fewest=fewest, honestly=self._honest)

    def _honest(self, counts: Ints) -> Floats:
        lengths: Floats = (counts > 1) / np.sqrt(np.maximum(counts, self.fewest))
        return lengths

    def taking_part(self, profiles: Profiles) -> Profiles:
        """Return the sets as places among the items."""
        return _among(self.items, profiles)

    def cells(self, profiles: Profiles) -> tuple[Ints, AnyInts, Floats]:
        """Return, for each of n items, the direction of the groups of the others, over the root of n."""
        users, counts = profiles.users, np.diff(profiles.indptr)
        directions = others_in_groups(users, profiles.items, self.groups, self.count, profiles.n_users)
        entries, groups = np.nonzero(directions)
        weights = 1 / np.sqrt(np.maximum(counts, self.fewest))[users]
        rows = profiles.items[entries].astype(np.int64) * self.count + groups
        n_added = np.bincount(users[entries], minlength=profiles.n_users)
        return offsets(n_added), rows, directions[entries, groups] * weights[entries]

    def work(self, counts: Ints) -> Ints:
        """Return the numbers of sets of so many items."""
        return counts * self.count

    def about(self, items: AnyInts) -> Bools:
        """Return the numbers of some items, and of the groups that they are in."""
        matches = np.isin(self.items, items)
        group_matches = np.isin(np.arange(self.count), self.groups[matches])
        about: Bools = (matches[:, None] | group_matches).ravel()
        return about

    def encode(self, n_items: int) -> bytes:
        """Return the bytes that devices are sent: the items, which are in the table, and their groups."""
        grouped = np.flatnonzero(self.groups != NO_GROUP)
        numbers = self.groups[grouped].tobytes()
        return encode_items(self.items, n_items) + encode_items(grouped, self.items.size) + numbers

    @classmethod
    def decode(cls, data: bytes, sizes: tuple[int, int, int], n_items: int, fewest: int) -> GroupSum:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server.

        ``sizes``: the items, how many of them are in the table, and the groups.
        """
        (size, in_table, count), reader = sizes, Reader(data)
        items, grouped = reader.item_set(n_items, size), reader.item_set(size, in_table)
        numbers = reader.numbers(np.dtype(np.uint8), in_table)
        reader.end()
        if (numbers >= count).any():
            raise ValueError(f"{len(data)} bytes that are not the groups of {in_table} items")
        groups = np.full(size, NO_GROUP, dtype=np.uint8)
        groups[grouped] = numbers
        return cls(items, groups, count, fewest)


def _among(items: Int32s, profiles: Profiles) -> Profiles:
    places, present = find(items, profiles.items)
    counts = np.bincount(profiles.users[present], minlength=profiles.n_users)
    chosen = places[present].astype(np.int32)
    return Profiles(offsets(counts), chosen, profiles.values[present], items.size)
