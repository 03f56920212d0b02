"""Which statistics of the items are summed over the users, and how they lie in one vector of integers.

A user with factors x and clipped target t for item j contributes w x x^T to the Gram matrix of the item and
w t x to its right-hand side. The weight is w = a_j b_u, where a_j is public and b_u keeps the sum of a user's
squared weights at most 1. Both parts are scaled so that whatever a user has rated, the L2 norm of its whole
contribution is at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import Bools, Floats, Int32s, Ints, cut, offsets, rows_of, sizes_of
from dprec.completion import packed_outer
from dprec.wire import BitStream, ItemSets, longest_item_set, read_item_sets

UNIT = 2.0**-36
"""Contributions are integer multiples of this, so sums depend neither on partitions nor on their order."""

WEIGHT_BITS, TARGET_BITS, FACTOR_BITS = 8, 12, 16
"""Binary digits of an item's weight, of a target and of a factor, whose product is in whole units."""

_MATRIX_BITS = TARGET_BITS + FACTOR_BITS
UNIT_WEIGHT = 1 << WEIGHT_BITS
"""The largest weight of an item, in its own units."""


@dataclass(frozen=True, eq=False)
class StatisticsLayout:
    """The statistics of one release."""

    weights: Ints
    """Public weight a_j of every item, from 1 to `UNIT_WEIGHT`; shape (items,)."""
    rank: int
    """Size of x; 0 for item biases, where x is the number 1."""
    norm: float
    clip: float
    """Bounds of the norm of x and of a target, above 0."""
    matrix_share: float
    """Share of a contribution's squared norm that belongs to the Gram matrices, below 1; 0 if these are not
    summed.
    """
    limit: int | None = None
    """Most ratings of a user if each has the weight ``1 / sqrt(limit)``; None if the weights of every user
    are scaled so that their squares sum to 1.
    """

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.weights.size

    @property
    def columns(self) -> int:
        """Size of x as it is computed with."""
        return max(1, self.rank)

    @property
    def matrix_width(self) -> int:
        """Numbers of an item's Gram matrix, its upper triangle; 0 if these are not summed."""
        return self.columns * (self.columns + 1) // 2 if self.matrix_share > 0 else 0

    @property
    def width(self) -> int:
        """Numbers of an item: its Gram matrix, then its right-hand side."""
        return self.matrix_width + self.columns

    @property
    def size(self) -> int:
        """Numbers of all items."""
        return self.n_items * self.width

    @cached_property
    def scales(self) -> Floats:
        """What each number of an item is divided by before it is summed, shape (width,)."""
        matrix = self.norm**2 / np.sqrt(self.matrix_share or 1.0)
        side = self.norm * self.clip / np.sqrt(1 - self.matrix_share)
        return np.repeat([matrix, side], [self.matrix_width, self.columns])


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the users of a partition contribute to a release."""

    indptr: Ints
    """Shape (users + 1,)."""
    items: Int32s
    """Positions of the chosen items in the layout, ascending within a user; shape (cells,)."""
    targets: Ints
    """Clipped targets, in units of ``clip / 2**TARGET_BITS``; shape (cells,)."""
    factors: NDArray[np.float32]
    """The x of every user, of a norm of at most `StatisticsLayout.norm`; shape (users, columns)."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    def of_users(self, users: slice) -> Contributions:
        """Return the contributions of consecutive users."""
        indptr = self.indptr[users.start : users.stop + 1]
        cells = slice(indptr[0], indptr[-1])
        return Contributions(indptr - indptr[0], self.items[cells], self.targets[cells], self.factors[users])

    def user_weights(self, layout: StatisticsLayout) -> Floats:
        """Return b_u of every user, shape (users,); squares of integers, so the same everywhere."""
        if layout.limit is not None:
            return np.full(self.n_users, 1 / np.sqrt(layout.limit))
        squares = np.diff(offsets(layout.weights[self.items] ** 2)[self.indptr])
        return UNIT_WEIGHT / np.sqrt(np.maximum(squares, 1))

    def scaled(self, layout: StatisticsLayout) -> tuple[Ints, Ints]:
        """Return every user's part of its numbers, rounded towards 0, which makes no contribution longer."""
        factors = self.factors.astype(np.float64)
        weights = self.user_weights(layout)[:, None]
        scales = layout.scales
        side = weights * layout.clip / scales[layout.matrix_width :] * 2.0**FACTOR_BITS
        sides = np.trunc(factors * side).astype(np.int64)
        if not layout.matrix_width:
            return np.zeros((self.n_users, 0), dtype=np.int64), sides
        matrix = weights / scales[: layout.matrix_width] * 2.0**_MATRIX_BITS
        return np.trunc(packed_outer(factors) * matrix).astype(np.int64), sides

    def numbers(self, layout: StatisticsLayout) -> Ints:
        """Return the integers of every cell, in units of `UNIT`, shape (cells, width).

        Their L2 norm over the cells of a user is at most ``1 / UNIT``.
        """
        matrices, sides = self.scaled(layout)
        users = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        cells = np.hstack([matrices[users], sides[users] * self.targets[:, None]])
        numbers: Ints = cells * layout.weights[self.items][:, None]
        return numbers


_LARGEST_NORM = 1 / UNIT


def sum_of_contributions(contributions: Contributions, layout: StatisticsLayout) -> Ints:
    """Return the sum over the users, in units of `UNIT`, shape (items, width)."""
    matrices, sides = contributions.scaled(layout)
    shape = (contributions.n_users, layout.n_items)
    items, indptr = contributions.items, contributions.indptr
    ones = sp.csr_array((np.ones(items.size, dtype=np.int64), items, indptr), shape=shape)
    targets = sp.csr_array((contributions.targets, items, indptr), shape=shape)
    total: Ints = np.hstack([ones.T @ matrices, targets.T @ sides])
    return total * layout.weights[:, None]


def possible_sum(total: Ints, users: int) -> bool:
    """Return whether so many users can have a sum that was added up elsewhere."""
    return bool((np.abs(total) <= users * _LARGEST_NORM).all())


_FACTOR, _TARGET = np.dtype("<f4"), np.dtype("<i2")
_LARGEST_TARGET = 1 << TARGET_BITS


def encode_contributions(contributions: Contributions, layout: StatisticsLayout) -> list[bytes]:
    """Return one report per user: its item set padded to a byte, its factors, its targets.

    A user without a chosen item sends an empty report. Where item biases are estimated, x is 1 and is not
    sent.
    """
    counts = np.diff(contributions.indptr)
    sets = ItemSets.plan(contributions.indptr, contributions.items, layout.n_items)
    sizes = (sets.lengths + 7) // 8
    bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
    sets.write(bits, offsets(sizes)[:-1] * 8)
    item_sets = cut(np.packbits(bits).tobytes(), sizes)
    sent = contributions.factors.astype(_FACTOR)[:, : layout.rank]
    factors = cut(sent.tobytes(), np.full(counts.size, sent.shape[1] * _FACTOR.itemsize))
    targets = cut(contributions.targets.astype(_TARGET).tobytes(), counts * _TARGET.itemsize)
    parts = zip(item_sets, factors, targets, strict=True)
    return [own_set + own + target if own_set else b"" for own_set, own, target in parts]


def decode_contributions(reports: Sequence[bytes], layout: StatisticsLayout) -> tuple[Bools, Contributions]:
    """Return which reports are valid, and the contributions of those that are not empty.

    A report is rejected if it is cut short or too long, or holds a target or factors beyond their bounds, or
    more items than the limit.
    """
    lengths = sizes_of(reports)
    longest = -(-longest_item_set(layout.n_items) // 8)
    stream = BitStream([report[:longest] for report in reports])
    filled = np.flatnonzero(lengths)
    ok, counts, items, positions = read_item_sets(stream, filled, layout.n_items)
    set_bytes = (positions - stream.starts[filled] + 7) // 8
    padding = stream.peek(positions, (stream.starts[filled] - positions) % 8)
    factor_bytes = layout.rank * _FACTOR.itemsize
    whole = set_bytes + factor_bytes + counts * _TARGET.itemsize
    ok &= (lengths[filled] == whole) & (padding == 0)
    ok &= counts <= (layout.limit or layout.n_items)

    read = [
        (reports[user], size) for user, size in zip(filled[ok].tolist(), set_bytes[ok].tolist(), strict=True)
    ]
    factors = np.ones((filled.size, layout.columns), dtype=np.float32)
    if factor_bytes:
        sent = b"".join(report[size : size + factor_bytes] for report, size in read)
        factors[ok] = np.frombuffer(sent, dtype=_FACTOR).reshape(-1, layout.rank)
    targets = np.zeros(items.size, dtype=np.int64)
    sent = b"".join(report[size + factor_bytes :] for report, size in read)
    targets[np.repeat(ok, counts)] = np.frombuffer(sent, dtype=_TARGET)
    with np.errstate(invalid="ignore", over="ignore"):
        ok &= np.linalg.norm(factors.astype(np.float64), axis=1) <= layout.norm
    ok &= np.bincount(rows_of(counts)[np.abs(targets) > _LARGEST_TARGET], minlength=filled.size) == 0

    valid = lengths == 0
    valid[filled[ok]] = True
    kept = np.repeat(ok, counts)
    return valid, Contributions(offsets(counts[ok]), items[kept], targets[kept], factors[ok])


def report_bits(layout: StatisticsLayout, ratings: int) -> int:
    """Return the bits of the report of a user with that many chosen items, evenly spread."""
    items = np.linspace(0, layout.n_items - 1, ratings).astype(np.int64)
    bits = int(ItemSets.plan(np.array([0, ratings]), items, layout.n_items).lengths[0])
    numbers = layout.rank * _FACTOR.itemsize + ratings * _TARGET.itemsize
    return -(-bits // 8) * 8 + numbers * 8
