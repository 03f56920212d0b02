"""Which statistics of the items are summed over the users, and how they lie in one vector of integers.

A user with factors x and clipped target t for item j contributes w x x^T to the Gram matrix of the item and
w t x to its right-hand side. The weight is w = a_j b_u, where a_j is public and b_u keeps the sum of a user's
squared weights at most 1. Both parts are scaled so that whatever a user has rated, the L2 norm of its whole
contribution is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import offsets
from dprec.completion import packed_outer

UNIT = 2.0**-36
"""Contributions are whole multiples of this, so sums depend neither on partitions nor on their order."""

WEIGHT_BITS, TARGET_BITS, FACTOR_BITS = 8, 12, 16
"""Binary places of an item's weight, of a target and of a factor, whose product is in whole units."""

_MATRIX_BITS = TARGET_BITS + FACTOR_BITS
UNIT_WEIGHT = 1 << WEIGHT_BITS
"""The largest weight of an item, in its own units."""


@dataclass(frozen=True, eq=False)
class StatisticsLayout:
    """The statistics of one release."""

    weights: NDArray[np.int64]
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
    def scales(self) -> NDArray[np.float64]:
        """What each number of an item is divided by before it is summed, shape (width,)."""
        matrix = self.norm**2 / np.sqrt(self.matrix_share or 1.0)
        side = self.norm * self.clip / np.sqrt(1 - self.matrix_share)
        return np.repeat([matrix, side], [self.matrix_width, self.columns])


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the users of a partition contribute to a release."""

    indptr: NDArray[np.int64]
    """Shape (users + 1,)."""
    items: NDArray[np.int32]
    """Places of the chosen items in the layout, ascending within a user; shape (cells,)."""
    targets: NDArray[np.int64]
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

    def user_weights(self, layout: StatisticsLayout) -> NDArray[np.float64]:
        """Return b_u of every user, shape (users,); squares of integers, so the same everywhere."""
        if layout.limit is not None:
            return np.full(self.n_users, 1 / np.sqrt(layout.limit))
        squares = np.diff(offsets(layout.weights[self.items] ** 2)[self.indptr])
        return UNIT_WEIGHT / np.sqrt(np.maximum(squares, 1))

    def scaled(self, layout: StatisticsLayout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return every user's part of its numbers, which all its items share.

        Returns
        -------
        matrices : ndarray of int64, shape (users, matrix_width)
        sides : ndarray of int64, shape (users, columns)
            Rounded towards 0, which makes no contribution longer.
        """
        factors = self.factors.astype(np.float64)
        weights = self.user_weights(layout)[:, None]
        scales = layout.scales
        side = weights * layout.clip / scales[layout.matrix_width :] * 2.0**FACTOR_BITS
        sides = np.trunc(factors * side).astype(np.int64)
        if not layout.matrix_width:
            return np.zeros((self.n_users, 0), dtype=np.int64), sides
        matrix = weights / scales[: layout.matrix_width] * 2.0**_MATRIX_BITS
        return np.trunc(packed_outer(factors) * matrix).astype(np.int64), sides

    def numbers(self, layout: StatisticsLayout) -> NDArray[np.int64]:
        """Return the integers of every cell, in units of `UNIT`, shape (cells, width).

        Their L2 norm over the cells of a user is at most ``1 / UNIT``.
        """
        matrices, sides = self.scaled(layout)
        users = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        cells = np.hstack([matrices[users], sides[users] * self.targets[:, None]])
        numbers: NDArray[np.int64] = cells * layout.weights[self.items][:, None]
        return numbers
