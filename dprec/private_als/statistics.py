"""Sums of statistics of the items: what a device adds for the ratings that it chooses.

A device fits its user's level and factors to all its ratings, for itself and for the sums. All that others
see are sums with noise; what a device predicts from its own ratings, it alone sees, so the privacy is joint:
of each user against all the others (Chien et al. [chien2021], section 2).

Statistics of the items are summed over the users, and lie in one vector of integers. A user with factors x
and clipped target t for item j contributes w x x^T to the Gram matrix of the item and w t x to its right-hand
side. The weight is w = a_j b_u, where a_j is public and b_u keeps the sum of a user's squared weights at most
1. Both parts are scaled so that whatever a user has rated, the L2 norm of its whole contribution is at most
1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import (
    Bools,
    Floats,
    Int32s,
    Ints,
    Pieces,
    Uint64s,
    blocks,
    numbered,
    offsets,
    places_of,
    rows_of,
)
from dprec.completion import Profiles, packed_outer
from dprec.gradients import Places
from dprec.randomness import uniforms
from dprec.sums import Contributions, Layout, Vectors
from dprec.wire import decode_item_sets, encode_item_sets

WEIGHT_BITS, TARGET_BITS, FACTOR_BITS = 8, 12, 16
"""Binary digits of an item's weight, of a target and of a factor, whose product is in whole units."""

UNIT_WEIGHT = 1 << WEIGHT_BITS
"""The largest weight of an item, in its own units."""

_NUMBERS_AT_ONCE = 1 << 20
"""Numbers of users that are computed together: bounds the memory of a sum, and leaves it as it is."""


@dataclass(frozen=True, eq=False)
class StatisticsLayout(Layout):
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
    sends_targets: bool = True
    """Whether reports hold targets; else every target is the clip."""
    fewest: int = 1
    """Ratings, of equal weights, than one of which none of a user's counts more, however few it has."""
    round_index: int = 1

    @property
    def n_rows(self) -> int:
        """Number of items."""
        return self.n_items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.weights.size

    @property
    def largest(self) -> float:
        """That of a rating that weighs as much as each of the fewest, alike, would; see `Layout.largest`."""
        return 1 / math.sqrt(self.fewest if self.limit is None else self.limit)

    def honest(self, counts: Ints) -> Floats:
        """Return how long the part of an item is, of equal weights; see `Layout.honest`."""
        counted = np.maximum(counts, self.fewest)
        counted = counted if self.limit is None else np.full(counts.size, self.limit)
        return np.sqrt(self.item_share / counted)

    @property
    def item_share(self) -> float:
        """Share of a contribution's squared norm that belongs to the items."""
        return 1.0

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
        return self.n_rows * self.width

    @cached_property
    def scales(self) -> Floats:
        """What each number of an item is divided by before it is summed, shape (width,)."""
        matrix = self.norm**2 / np.sqrt(self.matrix_share or 1.0)
        side = self.norm * self.clip / np.sqrt(1 - self.matrix_share)
        return np.repeat([matrix, side], [self.matrix_width, self.columns])

    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Reject what is malformed or out of bounds, and add up the rest; see `Layout.added_up`."""
        valid, numbers, places = self.sparsely_added_up(reports)
        return valid, places.filled(numbers)

    def sparsely_added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints, Places]:
        """Return the numbers of the rows in which anybody has a part; see `Layout.sparsely_added_up`."""
        valid, contributions = decode_contributions(reports, self)
        rows, numbers = self.rows_of_sum(contributions)
        flat = (rows[:, None] * self.width + np.arange(self.width)).ravel()
        return valid, numbers.ravel(), Places(flat, (self.n_rows, self.width))

    def rows_of_sum(self, contributions: "StatisticsContributions") -> tuple[Ints, Ints]:
        """Return the rows outside which the sum over the users is 0, ascending, and the sum in these.

        The sum is in units of `UNIT`, shape (rows, width).
        """
        import scipy.sparse as sp

        # Of a large catalogue, a few users hold little.
        distinct, places = numbered(contributions.items)
        numbers = np.zeros((distinct.size, self.width), dtype=np.int64)
        matrix, side = np.hsplit(numbers, [self.matrix_width])
        for users in self.blocks(contributions.n_users):
            part, items = contributions.of_users(users), places[contributions.cells(users)]
            matrices, sides = part.scaled(self)
            shape = part.n_users, distinct.size
            ones = sp.csr_array((np.ones(items.size, dtype=np.int64), items, part.indptr), shape=shape)
            targets = sp.csr_array((part.targets, items, part.indptr), shape=shape)
            matrix += ones.T @ matrices
            side += targets.T @ sides
        numbers *= self.weights[distinct][:, None]
        return distinct.astype(np.int64), numbers

    def blocks(self, users: int) -> Iterator[slice]:
        """Return which of so many users are added up together."""
        return blocks(np.full(users, self.width), _NUMBERS_AT_ONCE)

    def report_bits(self, ratings: int) -> int:
        """Return the bits of the item set, the factors and the targets; see `Layout.report_bits`."""
        size = min(ratings, self.n_items)
        items = np.linspace(0, self.n_items - 1, size).astype(np.int64)
        item_set = encode_item_sets(np.array([0, size]), items, self.n_items)
        return 8 * (len(item_set.data) + self.rank * _FACTOR.itemsize + size * self.target_bytes)

    @property
    def target_bytes(self) -> int:
        """Bytes of a target in a report."""
        return _TARGET.itemsize if self.sends_targets else 0


@dataclass(frozen=True, eq=False)
class StatisticsContributions(Contributions[StatisticsLayout]):
    """What the users of a partition contribute to the statistics of the items."""

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

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        indptr, cells = self.indptr[users.start : users.stop + 1], self.cells(users)
        return type(self)(indptr - indptr[0], self.items[cells], self.targets[cells], self.factors[users])

    def cells(self, users: slice) -> slice:
        """Return the cells of consecutive users."""
        return slice(self.indptr[users.start], self.indptr[users.stop])

    def user_weights(self, layout: StatisticsLayout) -> Floats:
        """Return b_u of every user, shape (users,); squares of integers, so the same everywhere."""
        if layout.limit is not None:
            return np.full(self.n_users, 1 / np.sqrt(layout.limit))
        squares = np.diff(offsets(layout.weights[self.items] ** 2)[self.indptr])
        if layout.fewest > 1:
            # Of equal weights, 1 / sqrt(n) becomes 1 / sqrt(fewest); of others, that of the heaviest does.
            heaviest = np.zeros(self.n_users, dtype=np.int64)
            np.maximum.at(heaviest, rows_of(np.diff(self.indptr)), layout.weights[self.items])
            squares = np.maximum(squares, layout.fewest * heaviest**2)
        return UNIT_WEIGHT * np.sqrt(layout.item_share) / np.sqrt(np.maximum(squares, 1))

    def scaled(self, layout: StatisticsLayout) -> tuple[Ints, Ints]:
        """Return every user's part of its numbers, rounded towards 0, which makes no contribution longer."""
        factors = self.factors.astype(np.float64)
        weights = self.user_weights(layout)[:, None]
        scales = layout.scales
        side = weights * layout.clip / scales[layout.matrix_width :] * 2.0**FACTOR_BITS
        sides = np.trunc(factors * side).astype(np.int64)
        if not layout.matrix_width:
            return np.zeros((self.n_users, 0), dtype=np.int64), sides
        matrix = weights / scales[: layout.matrix_width] * 2.0 ** (TARGET_BITS + FACTOR_BITS)
        return np.trunc(packed_outer(factors) * matrix).astype(np.int64), sides

    def numbers(self, layout: StatisticsLayout) -> Ints:
        """Return the integers of every cell, in units of `UNIT`, shape (cells, width)."""
        matrices, sides = self.scaled(layout)
        users = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        cells = np.hstack([matrices[users], sides[users] * self.targets[:, None]])
        return cells * layout.weights[self.items][:, None]

    def work(self, layout: StatisticsLayout) -> Ints:
        """Return how many items are chosen; see `Contributions.work`."""
        return np.diff(self.indptr)

    def vectors(self, layout: StatisticsLayout) -> Vectors:
        """Return the numbers of every chosen item; see `Contributions.vectors`."""
        return Vectors(self.indptr, self.items, self.numbers(layout))

    def encode(self, layout: StatisticsLayout) -> list[bytes]:
        """Return every user's item set, factors and targets; see `Contributions.encode`."""
        return encode_contributions(self, layout)


_FACTOR, _TARGET = np.dtype("<f4"), np.dtype("<i2")
_LARGEST_TARGET = 1 << TARGET_BITS


def encode_contributions(contributions: StatisticsContributions, layout: StatisticsLayout) -> list[bytes]:
    """Return one report per user: its item set padded to a byte, its factors, its targets.

    A user without a chosen item sends an empty report. Where item biases are estimated, x is 1 and is not
    sent.
    """
    indptr = contributions.indptr
    sets = encode_item_sets(indptr, contributions.items, layout.n_items)
    sent = contributions.factors.astype(_FACTOR)[:, : layout.rank]
    factors = Pieces(sent.tobytes(), np.arange(indptr.size) * sent.shape[1] * _FACTOR.itemsize)
    numbers = contributions.targets.astype(_TARGET).tobytes() if layout.sends_targets else b""
    targets = Pieces(numbers, indptr * layout.target_bytes)
    parts = zip(sets, factors, targets, strict=True)
    return [item_set + factor + target if item_set else b"" for item_set, factor, target in parts]


def decode_contributions(
    reports: Sequence[bytes], layout: StatisticsLayout
) -> tuple[Bools, StatisticsContributions]:
    """Return which reports are valid, and the contributions of those that are not empty.

    A report is rejected if it is cut short or too long, or holds a target or factors beyond their bounds, or
    more items than the limit.
    """
    pieces = Pieces.of(reports)
    empty = pieces.sizes == 0
    ok, counts, items, ends = decode_item_sets(pieces, layout.n_items)
    factor_bytes = layout.rank * _FACTOR.itemsize
    ok &= ~empty & (pieces.bounds[1:] - ends == factor_bytes + counts * layout.target_bytes)
    ok &= counts <= (layout.limit or layout.n_items)

    read = list(zip(ends[ok].tolist(), pieces.bounds[1:][ok].tolist(), strict=True))
    factors = np.ones((ok.size, layout.columns), dtype=np.float32)
    if factor_bytes:
        sent = b"".join(pieces.data[start : start + factor_bytes] for start, _ in read)
        factors[ok] = np.frombuffer(sent, dtype=_FACTOR).reshape(-1, layout.rank)
    targets = np.full(items.size, _LARGEST_TARGET)
    if layout.sends_targets:
        sent = b"".join(pieces.data[start + factor_bytes : end] for start, end in read)
        targets[np.repeat(ok, counts)] = np.frombuffer(sent, dtype=_TARGET)
    with np.errstate(invalid="ignore", over="ignore"):
        ok &= np.linalg.norm(factors.astype(np.float64), axis=1) <= layout.norm
    ok &= np.bincount(rows_of(counts)[np.abs(targets) > _LARGEST_TARGET], minlength=ok.size) == 0

    in_valid = np.repeat(ok, counts)
    return ok | empty, StatisticsContributions(
        offsets(counts[ok]), items[in_valid], targets[in_valid], factors[ok]
    )


_BELOW_ONE = 1 - 1e-6
"""What factors are clipped to, so that their norm is below 1 in single precision too."""


def chosen_ratings(
    profiles: Profiles, candidates: Bools, weights: Ints, limit: int, random_words: Uint64s
) -> Ints:
    """Return the positions of at most ``limit`` ratings of each user, ascending.

    They are drawn one after the other in proportion to their weights, which gives the ``limit`` smallest of
    exponential variables of these rates (Efraimidis and Spirakis [efraimidis2006]).
    """
    users, cells = profiles.users, np.flatnonzero(candidates)
    counts = np.bincount(users[cells], minlength=profiles.n_users)
    if (counts <= limit).all():
        return cells
    times = -np.log1p(-uniforms(random_words[cells])) / np.maximum(weights[cells], 1)
    order = cells[np.lexsort((times, users[cells]))]
    return np.sort(order[places_of(counts) < limit])


def clipped(factors: Floats) -> NDArray[np.float32]:
    """Return factors whose norm is at most 1, shape (users, rank)."""
    norms = np.linalg.norm(factors, axis=1, keepdims=True)
    scale: Floats = np.minimum(1.0, _BELOW_ONE / np.maximum(norms, np.finfo(float).tiny))
    bounded = np.where(np.isfinite(norms), factors * scale, 0.0)
    return bounded.astype(np.float32)
