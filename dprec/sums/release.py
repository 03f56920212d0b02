"""Sums of numbers that follow from profiles: what one release holds, and what each user adds to it.

A device adds numbers of an L2 norm of 1 at most. That is kept here and not left to whoever computes them:
longer contributions are scaled down, numbers are no larger than the largest that the release names, and
negative ones are 0 where it has none, so that the loss of a sum follows whatever a protocol computes of each
user. Code from outside is held to what that takes for granted: that each user adds one finite number to a
row, and, of some users in every part of a population, that what they add is computed of each alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, Pieces, Uint64s, all_between, blocks, offsets, rows_of
from dprec.completion import Profiles
from dprec.components import is_ours
from dprec.federated import FROM_ONE_USER, ContractError
from dprec.randomness import generator
from dprec.ratings import POSITIVE, RatingScale
from dprec.sums.contributions import TYPICAL_ITEMS, UNIT, Contributions, Layout, Vectors
from dprec.wire import decode_item_sets, encode_item_sets

_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of vectors that are added up."""

_LONGEST = 1 + 1e-9
"""Rounding in floating point may make a norm of 1 longer; accounting has room for as much."""


_APART = 1.5e-8
"""By which rounding may change what a user adds, beside others and alone: half the digits."""

_FEW, _DRAWN = 32, 3
"""Users of a part up to which all are computed alone, and how many are drawn of more, besides the largest."""

_VECTORS = "rows of the release, ascending within a user and each of them once, and finite numbers"


class Adding(ABC):
    """What computes the numbers that users add to a release."""

    @abstractmethod
    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Ints, AnyInts, Floats]:
        """Return what users add: where each begins, its rows, ascending, each once, and their numbers.

        What a user adds depends on no other user, to the last bit: sums by row, no dense products.

        Parameters
        ----------
        profiles : Profiles
            What `taking_part` made of what the users hold.
        words : ndarray of uint64, shape (ratings,)
            Random, one for each rating of the users.

        Returns
        -------
        indptr : ndarray of int64, shape (users + 1,)
        rows : ndarray of int, shape (cells,)
        numbers : ndarray of float64, shape (cells,)
            With an L2 norm of 1 at most over the cells of a user.
        """

    def taking_part(self, profiles: Profiles, release: Release) -> Profiles:
        """Return what a trusted server is sent, from which cells follow: whole profiles by default."""
        return profiles

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return how many cells users with so many ratings have, which bounds memory; shape (users,)."""
        return counts


@dataclass(frozen=True, eq=False)
class Release(Layout):
    """The numbers of one sum."""

    device: Adding
    round_index: int
    rows: int
    n_items: int
    """Items of the profiles from which numbers follow."""
    scale: RatingScale = POSITIVE
    """Of their ratings; `POSITIVE` where sets alone are read."""
    most: float = 1.0
    """Largest absolute value of a number."""
    fewest: int = 1
    """Smaller profiles count as if they had so many ratings."""
    negative: bool = False
    """Whether numbers can be negative."""
    bounded: bool = True
    """Whether contributions have a norm of 1 at most; only in sums without noise they need not, and those of
    devices from outside always have.
    """
    honestly: Callable[[Ints], Floats] | None = None
    """From numbers of ratings to how long the part of an item is; 1 / sqrt(n) by default."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def scales(self) -> Floats:
        """One: vectors have norm 1 already."""
        return np.ones(1)

    @property
    def largest(self) -> float:
        """Largest absolute value of a number; see `Layout.largest`."""
        return self.most

    @property
    def signed(self) -> bool:
        """Whether any number can be negative."""
        return self.negative

    @property
    def typical_numbers(self) -> int:
        """How many numbers are not 0 for many items; see `Layout.typical_numbers`."""
        return min(self.rows, int(self.device.work(np.array([TYPICAL_ITEMS]), self)[0]))

    def honest(self, counts: Ints) -> Floats:
        """Return how long the part of an item is; see `Layout.honest`."""
        if self.honestly is not None:
            return self.honestly(counts)
        return 1 / np.sqrt(np.maximum(counts, self.fewest))

    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Reject what is no profile, and add up the vectors of the rest; see `Layout.added_up`."""
        valid, profiles = profiles_in(reports, self.n_items, self.scale)
        contributions = ProfileContributions(profiles, np.zeros(profiles.items.size, dtype=np.uint64))
        total = np.zeros(self.rows, dtype=np.int64)
        for users in blocks(contributions.work(self), _CELLS_AT_ONCE):
            vectors = contributions.of_users(users).vectors(self)
            np.add.at(total, vectors.rows, vectors.numbers[:, 0])
        return valid, total[:, None]

    def report_bits(self, ratings: int) -> int:
        """Return the bits of an item set, evenly spread, and of its levels; see `Layout.report_bits`."""
        size = min(ratings, self.n_items)
        items = np.linspace(0, self.n_items - 1, size).astype(np.int64)
        sets = len(encode_item_sets(np.array([0, size]), items, self.n_items).data)
        return 8 * (sets + (0 if self.scale.implicit else size))


@dataclass(frozen=True, eq=False)
class ProfileContributions(Contributions[Release]):
    """Profiles, from which what their users add follows."""

    profiles: Profiles
    words: Uint64s
    """One for each rating; shape (ratings,)."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.profiles.n_users

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        profiles, bounds = self.profiles, self.profiles.indptr[users.start : users.stop + 1]
        ratings = slice(bounds[0], bounds[-1])
        part = Profiles(
            bounds - bounds[0], profiles.items[ratings], profiles.values[ratings], profiles.n_items
        )
        return type(self)(part, self.words[ratings])

    def work(self, layout: Release) -> Ints:
        """Return how many cells users have; see `Contributions.work`."""
        return layout.device.work(np.diff(self.profiles.indptr), layout)

    def vectors(self, layout: Release) -> Vectors:
        """Return what every user adds, within what the release allows; see `Contributions.vectors`."""
        indptr, rows, numbers = self._cells(layout)
        if not is_ours(type(layout.device)):
            for user in self._checked(layout.round_index):
                cells = slice(indptr[user], indptr[user + 1])
                self._check_alone(user, layout, rows[cells], numbers[cells])
        # Towards 0, which makes no vector longer.
        units = np.trunc(numbers / UNIT).astype(np.int64)
        return Vectors(indptr, rows.astype(np.int32), units[:, None])

    def _checked(self, round_index: int) -> list[int]:
        """Return whose contributions are also computed alone.

        Of few users, all; of more, the one with most ratings, and some
        who are drawn anew in each round.
        """
        if self.n_users <= _FEW:
            return list(range(self.n_users))
        draws = generator(round_index, "contributions that are checked")
        drawn = draws.choice(self.n_users, _DRAWN, replace=False)
        return [int(np.argmax(np.diff(self.profiles.indptr))), *drawn.tolist()]

    def _check_alone(self, user: int, layout: Release, rows: AnyInts, numbers: Floats) -> None:
        """Refuse contributions that are others when they are computed of a user alone, or once more."""
        single = self.of_users(slice(user, user + 1))
        for _ in range(2):
            _, again, values = single._cells(layout)
            same = np.array_equal(again, rows)
            apart = float(np.linalg.norm(values - numbers)) if same else 1.0
            if not apart <= _APART:
                off = f"are {apart:.3g} off those beside others"
                found = f"contributions of one user computed alone {off}"
                raise ContractError.of(layout.device, found, FROM_ONE_USER)

    def _cells(self, layout: Release) -> tuple[Ints, AnyInts, Floats]:
        indptr, rows, numbers = layout.device.cells(self.profiles, layout, self.words)
        ours = is_ours(type(layout.device))
        if not ours:
            indptr, rows, numbers = np.asarray(indptr), np.asarray(rows), np.asarray(numbers)
            if not _are_vectors(indptr, rows, numbers, (self.n_users, layout.rows)):
                raise ContractError.of(
                    layout.device, "contributions that are no vector of each user", _VECTORS
                )
            numbers = numbers.astype(np.float64)
        if layout.bounded or not ours:
            users = rows_of(np.diff(indptr))
            if not layout.negative:
                numbers = np.maximum(numbers, 0.0)
            norms = np.sqrt(np.bincount(users, numbers**2, minlength=indptr.size - 1))
            if (norms > _LONGEST).any():
                numbers = numbers / np.where(norms > _LONGEST, norms, 1.0)[users]
            bound = layout.most * _LONGEST
            numbers = np.clip(numbers, -bound, bound)
        return indptr, rows, numbers

    def encode(self, layout: Release) -> list[bytes]:
        """Return every user's item set and its levels, a byte each; who holds nothing sends nothing."""
        profiles = self.profiles
        sets = encode_item_sets(profiles.indptr, profiles.items, layout.n_items)
        if layout.scale.implicit:
            return list(sets)
        levels = Pieces(layout.scale.level_of(profiles.values).astype(np.uint8).tobytes(), profiles.indptr)
        return [items + stars for items, stars in zip(sets, levels, strict=True)]


def _are_vectors(indptr: AnyInts, rows: AnyInts, numbers: Floats, shape: tuple[int, int]) -> bool:
    """Return whether cells are sparse vectors, ``shape``: of so many users, each of so many rows.

    Norms are taken over cells: a row that a user names twice would count as two.
    """
    users, n_rows = shape
    if not (np.issubdtype(indptr.dtype, np.integer) and np.issubdtype(rows.dtype, np.integer)):
        return False
    if indptr.shape != (users + 1,) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return False
    if not rows.shape == numbers.shape == (indptr[-1],) or not np.isfinite(numbers).all():
        return False
    row_numbers = rows.astype(np.int64)
    places = rows_of(np.diff(indptr)) * n_rows + row_numbers
    return all_between(row_numbers, 0, n_rows - 1) and bool((np.diff(places) > 0).all())


def profiles_in(reports: Sequence[bytes], n_items: int, scale: RatingScale) -> tuple[Bools, Profiles]:
    """Return which reports are profiles, or empty, and the profiles in those that are not empty."""
    pieces = Pieces.of(reports)
    empty, size = pieces.sizes == 0, 0 if scale.implicit else 1
    valid, counts, items, ends = decode_item_sets(pieces, n_items)
    valid &= ~empty & (pieces.bounds[1:] - ends == size * counts)
    items, counts = items[np.repeat(valid, counts)], np.where(valid, counts, 0)
    values = np.full(items.size, np.nan)
    if size:
        spans = zip(ends[valid], pieces.bounds[1:][valid], strict=True)
        levels = np.frombuffer(b"".join(pieces.data[end:stop] for end, stop in spans), dtype=np.uint8)
        valid[rows_of(counts)[(levels < 1) | (levels > scale.levels)]] = False
        of_valid = np.repeat(valid, counts)
        items, counts = items[of_valid], np.where(valid, counts, 0)
        values = scale.values[levels[of_valid].astype(np.int64) - 1]
    return valid | empty, Profiles(offsets(counts[valid]), items, values, n_items)
