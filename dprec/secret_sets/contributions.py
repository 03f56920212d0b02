"""What a device contributes of a rated profile: vectors of norm 1 at most, whatever its user has rated.

Let e be the ratings of a user less what is known of the items, centred to mean 0, and f_i what is public of
item i, or was learned of it. The parts of a contribution, each of norm 1 at most, are

    counts      1 / sqrt(n) at each of the n rated items,
    residuals   e / |e|,
    features    sum_i e_i f_i, divided by its norm,
    profiles    sum_{j != i} f_j at each rated item i, divided by the norm of all of them together,
    tastes      e_i sum_{j != i} e_j f_j, likewise.

Each is weighted by the root of its share of the release. Vectors are normalised, not clipped, since clipped
ones would say less: those of users with many ratings are small in each number anyway.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Pieces, Uint8s, blocks, offsets, rows_of
from dprec.completion import Profiles
from dprec.ratings import RatingScale
from dprec.sums import UNIT, Contributions, Layout, Vectors
from dprec.wire import ItemTable, decode_item_sets, encode_item_sets

Part = Literal["counts", "residuals", "features", "profiles", "tastes"]

_NOTHING = 1e-6
"""A norm, relative to what it is of, below which it is rounding alone, and nothing is contributed."""

_BELOW_ONE = 1 - 2.0**-40
"""So that rounding makes no contribution longer than 1."""


@dataclass(frozen=True, eq=False)
class ProfileLayout(Layout):
    """The parts of one release, one after another."""

    shares: tuple[tuple[Part, float], ...]
    """The parts, and the share of a contribution's squared norm that each has; together 1."""
    table: ItemTable
    """What devices hold: item biases in units of ratings, and features as embeddings."""
    scale: RatingScale
    limit: int | None = None

    @classmethod
    def of_parts(cls, parts: tuple[tuple[Part, float], ...], table: ItemTable, scale: RatingScale) -> Self:
        """Return the layout of some parts, which divide a release as what they spend."""
        whole = sum(share for _, share in parts)
        return cls(tuple((part, share / whole) for part, share in parts), table, scale)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.table.means.size

    @property
    def features(self) -> Floats:
        """Shape (items, features)."""
        return self.table.embeddings

    @property
    def n_rows(self) -> int:
        """Numbers of all parts."""
        return sum(self.size(part) for part, _ in self.shares)

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def scales(self) -> Floats:
        """One: vectors have norm 1 already."""
        return np.ones(1)

    def about(self, items: AnyInts) -> Bools:
        """Return which rows count ratings of some items, or add up their residuals; shape (rows,)."""
        asked = np.isin(np.arange(self.n_items), items)
        parts = (
            asked if part in ("counts", "residuals") else np.zeros(self.size(part), dtype=np.bool_)
            for part, _ in self.shares
        )
        return np.concatenate([*parts])

    def size(self, part: Part) -> int:
        """Return how many numbers a part has."""
        n_items, n_features = self.features.shape
        if part == "features":
            return int(n_features)
        return int(n_items * n_features) if part in ("profiles", "tastes") else int(n_items)

    def parts_of(self, released: Floats) -> Iterator[tuple[Part, Floats, float]]:
        """Yield the parts of a release, in units of their own, and by how much their noise grew with that."""
        start = 0
        for part, share in self.shares:
            end = start + self.size(part)
            yield part, released[start:end, 0] / np.sqrt(share), float(1 / np.sqrt(share))
            start = end

    def cells(self, given: "ProfileContributions") -> tuple[Ints, Ints, Ints]:
        """Return the user, the row and the units of every cell, by part, and within it by user and row."""
        residuals = self._residuals(given.indptr, given.items, given.levels)
        profiles = _Profiles(given.indptr, given.items, residuals, self.n_items, self.features)
        owners, rows, units, start = [], [], [], 0
        for part, share in self.shares:
            of_users, places, values = profiles.part(part)
            values *= np.sqrt(share) * (_BELOW_ONE / UNIT)
            owners.append(of_users)
            rows.append(places + start)
            # Towards 0, which makes no vector longer.
            units.append(values.astype(np.int64))
            start += self.size(part)
        return np.concatenate(owners), np.concatenate(rows), np.concatenate(units)

    def _residuals(self, indptr: Ints, items: AnyInts, levels: Uint8s) -> Floats:
        """Return ratings less biases, centred for each user, shape (ratings,)."""
        counts = np.diff(indptr)
        left = self.scale.values[levels.astype(np.int64) - 1] - self.table.means[items]
        means = _row_sums(left, indptr) / np.maximum(counts, 1)
        residuals: Floats = left - np.repeat(means, counts)
        # What rounding leaves of equal numbers is no residual.
        residuals[np.abs(residuals) < _NOTHING * (self.scale.high - self.scale.low)] = 0.0
        return residuals

    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Reject what is no profile, and add up the vectors of the rest; see `Layout.added_up`."""
        whole = Pieces.of(reports)
        empty = whole.sizes == 0
        valid, counts, items, ends = decode_item_sets(whole, self.n_items)
        valid &= ~empty & (whole.bounds[1:] - ends == counts)
        items, counts = items[np.repeat(valid, counts)], np.where(valid, counts, 0)
        levels = np.frombuffer(
            b"".join(
                whole.data[end:bound]
                for end, bound, ok in zip(ends, whole.bounds[1:], valid, strict=True)
                if ok
            ),
            dtype=np.uint8,
        )
        off_scale = (levels < 1) | (levels > self.scale.levels)
        valid[rows_of(counts)[off_scale]] = False
        kept = np.repeat(valid, counts)
        items, levels, counts = items[kept], levels[kept], np.where(valid, counts, 0)
        profiles = ProfileContributions(offsets(counts), items, levels)
        total = np.zeros(self.n_rows, dtype=np.int64)
        for users in blocks(counts, 20_000):
            _, rows, units = self.cells(profiles.of_users(users))
            np.add.at(total, rows, units)
        return valid | empty, total[:, None]

    def report_bits(self, ratings: int) -> int:
        """Return the bits of an item set, evenly spread, and of its levels; see `Layout.report_bits`."""
        size = min(ratings, self.n_items)
        items = np.linspace(0, self.n_items - 1, size).astype(np.int64)
        return 8 * (len(encode_item_sets(np.array([0, size]), items, self.n_items).data) + size)


def _row_sums(values: Floats, indptr: Ints) -> Floats:
    """Return the sum over each user's ratings, one after another, so that it depends on no other user."""
    ones, ratings = np.ones(len(values)), np.arange(len(values))
    sums: Floats = sp.csr_array((ones, ratings, indptr), shape=(indptr.size - 1, len(values))) @ values
    return sums


@dataclass(frozen=True, eq=False)
class _Profiles(Profiles):
    """Profiles with residuals as values, and what contributions are made of besides."""

    features: Floats
    """Shape (items, features)."""

    def part(self, part: Part) -> tuple[Ints, Ints, Floats]:
        """Return the users, cells and numbers of a part of norm 1 at most, by user and then by cell."""
        items, users = self.items.astype(np.int64), self.users
        if part == "counts":
            return users, items, self._normalised(np.ones((items.size, 1)))
        if part == "residuals":
            return users, items, self._normalised(self.values[:, None])
        width = self.features.shape[1]
        own = self.features[items]
        if part == "features":
            sums = _row_sums(own * self.values[:, None], self.indptr)
            norms = np.sqrt((sums**2).sum(axis=1, keepdims=True))
            everybody = np.arange(self.n_users)
            there = np.flatnonzero(norms[:, 0] > _NOTHING)
            sums = sums[there] / norms[there]
            places = np.tile(np.arange(width), there.size)
            return np.repeat(everybody[there], width), places, sums.ravel()
        weights = self.values[:, None] if part == "tastes" else np.ones((items.size, 1))
        own = own * weights
        rest = (_row_sums(own, self.indptr)[users] - own) * weights
        places = (items[:, None] * width + np.arange(width)).ravel()
        return np.repeat(users, width), places, self._normalised(rest)

    def _normalised(self, values: Floats) -> Floats:
        """Return the numbers of every rating, divided by the norm of those of its user, one after another."""
        norms = np.sqrt(_row_sums((values**2).sum(axis=1), self.indptr))
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > _NOTHING)
        scaled: Floats = values * inverse[self.users][:, None]
        return scaled.ravel()


@dataclass(frozen=True, eq=False)
class ProfileContributions(Contributions[ProfileLayout]):
    """Rated profiles, and the vectors that follow from them."""

    indptr: Ints
    """Shape (users + 1,)."""
    items: Int32s
    """Rated items, ascending within a user; shape (ratings,)."""
    levels: Uint8s
    """Of the scale, from 1; shape (ratings,)."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        own = self.indptr[users.start : users.stop + 1]
        ratings = slice(own[0], own[-1])
        return type(self)(own - own[0], self.items[ratings], self.levels[ratings])

    def vectors(self, layout: ProfileLayout) -> Vectors:
        """Return the vectors of the profiles; see `Contributions.vectors`."""
        owners, rows, units = layout.cells(self)
        order = np.argsort(owners, kind="stable")
        indptr = offsets(np.bincount(owners, minlength=self.n_users))
        return Vectors(indptr, rows[order].astype(np.int32), units[order][:, None])

    def encode(self, layout: ProfileLayout) -> list[bytes]:
        """Return every user's item set and its levels, a byte each; a user without a rating sends nothing."""
        sets = encode_item_sets(self.indptr, self.items, layout.n_items)
        levels = Pieces(self.levels.tobytes(), self.indptr)
        return [own + stars for own, stars in zip(sets, levels, strict=True)]
