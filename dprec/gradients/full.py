"""The whole gradient at the rated items, unprotected: the best that rounds can do without privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import cut, offsets, rows_of, sizes_of
from dprec.completion import Profiles
from dprec.gradients.base import Aggregate, GradientReport, RoundDraws
from dprec.wire import BitStream, ItemSets, longest_item_set, read_item_sets

_FLOAT = np.dtype("<f4")

_UNIT = 2.0**-24
"""Gradients are added up as integer multiples of this, so the sum does not depend on their order."""

_LARGEST = 2.0**15
"""No gradient of ratings is this large; such a number would drown out everybody else's."""


@dataclass(frozen=True, kw_only=True)
class FullGradient(GradientReport):
    """The whole gradient at the rated items, as float32; nothing is protected."""

    kind: Literal["full"] = "full"
    private: ClassVar[bool] = False
    hides_rated_items: ClassVar[bool] = False

    def encode(
        self,
        profiles: Profiles,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Send the set of rated items, padded to a byte, and one row of numbers for each of them."""
        errors = profiles.residuals(user_factors, item_factors)
        rows = (-2.0 * user_factors[profiles.users] * errors[:, None]).astype(_FLOAT)
        sets = ItemSets.plan(profiles.indptr, profiles.items, profiles.n_items)
        sizes = (sets.lengths + 7) // 8
        bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
        sets.write(bits, offsets(sizes)[:-1] * 8)
        row_bytes = item_factors.shape[1] * _FLOAT.itemsize
        item_sets = cut(np.packbits(bits).tobytes(), sizes)
        numbers = cut(rows.tobytes(), np.diff(profiles.indptr) * row_bytes)
        return [own_set + own_numbers for own_set, own_numbers in zip(item_sets, numbers, strict=True)]

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[NDArray[np.bool_], Aggregate]:
        """Reject reports that are cut short, too long, out of range or implausible; add up the rest."""
        n_items, rank = shape
        row_bytes = rank * _FLOAT.itemsize
        lengths = sizes_of(reports)
        # Only the sets are read bit by bit; the numbers after them are left out to save time.
        longest = -(-longest_item_set(n_items) // 8)
        stream = BitStream([report[:longest] for report in reports])
        filled = np.flatnonzero(lengths)
        ok, counts, items, positions = read_item_sets(stream, filled, n_items)
        set_bytes = (positions - stream.starts[filled] + 7) // 8
        padding = stream.peek(positions, (stream.starts[filled] - positions) % 8)
        ok &= (lengths[filled] == set_bytes + counts * row_bytes) & (padding == 0)

        rows = np.full((items.size, rank), np.nan)
        read = zip(filled[ok].tolist(), set_bytes[ok].tolist(), strict=True)
        numbers = b"".join(reports[user][size:] for user, size in read)
        rows[np.repeat(ok, counts)] = np.frombuffer(numbers, dtype=_FLOAT).reshape(-1, rank)
        with np.errstate(invalid="ignore"):
            plausible = (np.abs(rows) < _LARGEST).all(axis=1)
        ok &= np.bincount(rows_of(counts)[~plausible], minlength=filled.size) == 0

        accepted = np.repeat(ok, counts)
        total = np.zeros((n_items, rank), dtype=np.int64)
        np.add.at(total, items[accepted], np.rint(rows[accepted] / _UNIT).astype(np.int64))
        valid = lengths == 0
        valid[filled[ok]] = True
        raters = np.bincount(items[accepted], minlength=n_items)
        return valid, Aggregate(total, raters, int(valid.sum()))

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the shape of the gradient."""
        return shape

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether no item has more raters than users, and no number more than its raters can add."""
        raters = aggregate.raters
        if raters is None or not ((raters >= 0) & (raters <= aggregate.users)).all():
            return False
        most = raters[:, None] * (_LARGEST / _UNIT)
        return bool(((aggregate.total >= -most) & (aggregate.total <= most)).all())

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> NDArray[np.float64]:
        """Return the mean gradient per user."""
        return aggregate.total.astype(np.float64) * (_UNIT / aggregate.users)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the item set and of a row of numbers for each item in it."""
        items = np.linspace(0, shape[0] - 1, ratings).astype(np.int64)
        lengths = ItemSets.plan(np.array([0, ratings]), items, shape[0]).lengths
        return int(-(-lengths[0] // 8) * 8) + ratings * shape[1] * _FLOAT.itemsize * 8

    def exact_epsilon(self, epsilon: float) -> float:
        """Return infinity: nothing is protected."""
        return float("inf")
