"""What devices are sent for lists: popularity, what is public of the items, and how items go together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from dprec.arrays import Bools, Floats, Int32s, Ints, Uint8s
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.errors import InputError, SettingError
from dprec.lists.gram import MOST_ITEMS, DenoisedTable, popular_items, regularised_inverse, scores
from dprec.lists.groups import LIFT_STEP, MOST_GROUPS, ItemGroups
from dprec.lists.public_kernels import BINS, PublicKernels, popularity_bins
from dprec.wire import (
    MOST_TIMES,
    Reader,
    encode_integers,
    encode_items,
    encode_numbers,
    fitted,
    step_of,
)

if TYPE_CHECKING:
    import scipy.sparse as sp

_NUMBER, _COUNT = np.dtype("<f4"), np.dtype("<u4")

LARGEST = 200.0
"""Bounds logarithms of what is received, so that no score of a device overflows."""

_MOST_CATEGORIES = 1 << 24
"""Categories of all items at most, which bounds the memory of a device to eight bytes for each."""

POPULARITY_STEP, ROOTS_STEP, INVERSE_STEP = 0.05, 0.01, 0.25
"""Steps in which devices are sent logarithms of popularity and of a table's roots, and its inverse, that one
in root mean squares; benchmarks/choosing/sent_tables.py judges them.
"""

_EXACT_STEP = 1e-4
"""Step of logarithms of popularity that is no estimate, or a longer one where integers do not reach."""

_LONGER = 4.0
"""By how much steps grow for a limit before a table loses items."""


@dataclass(frozen=True, eq=False)
class PairTable:
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

    @property
    def upper(self) -> Floats:
        """The inverse above its diagonal, by rows."""
        return self.inverse[np.triu_indices(self.items.size, 1)]

    def among(self, places: Ints) -> Self:
        """Return the table of some of its items, given their places, ascending: as if it had no others."""
        if places.size == self.items.size:
            return self
        if places.size < 2:
            return self.nothing()
        others = np.setdiff1d(np.arange(self.items.size), places)
        inverse = self.inverse * np.outer(self.roots, self.roots)
        across = inverse[np.ix_(places, others)]
        inverse = inverse[np.ix_(places, places)] - across @ np.linalg.solve(
            inverse[np.ix_(others, others)], across.T
        )
        roots = np.sqrt(np.diag(inverse))
        inverse = (inverse + inverse.T) / 2 / np.outer(roots, roots)
        return type(self)(self.items[places], inverse, roots, self.share)

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
    table: PairTable
    groups: ItemGroups = field(default_factory=ItemGroups.nothing)
    steps: tuple[float, float, float] | None = None
    """Of the logarithms of popularity and of the table's roots, and of its inverse, as devices are sent them;
    by default the shortest that matter."""

    @classmethod
    def of(
        cls,
        popularity: Floats,
        catalogue: Catalogue | None,
        table: PairTable,
        parted_by: Floats | None = None,
        groups: ItemGroups | None = None,
        *,
        exact: bool = False,
    ) -> Self:
        """Return what devices are sent, given popularity in any unit, above 0, shape (items,).

        ``parted_by``: the popularity of which numbers have equal parts; by default the same.
        ``exact``: whether popularity has no noise, so that near ties are sent as what they are.
        """
        if catalogue is None:
            categories = np.zeros((popularity.size, 0), dtype=np.bool_)
            bins = np.zeros((0, popularity.size), dtype=np.uint8)
        else:
            categories = catalogue.categories
            bins = popularity_bins(catalogue.numbers, popularity if parted_by is None else parted_by)
        model = cls(np.log(popularity), categories, bins, table, groups or ItemGroups.nothing())
        return replace(model, steps=(_EXACT_STEP, *model.sent_steps[1:])) if exact else model

    @cached_property
    def _memberships(self) -> Floats:
        return self.groups.memberships(self.popularity)

    @cached_property
    def _kernels(self) -> PublicKernels:
        """How alike items are by what is public of them."""
        return PublicKernels.among(self.categories, self.bins, np.exp(self.popularity))

    def scores(self, sets: sp.csr_array) -> Floats:
        """Return by what devices rank all items, from their users' sets, shape (users, items)."""
        expected: Floats = np.broadcast_to(self.popularity, (sets.shape[0], self.popularity.size))
        if self.categories.size or self.bins.size:
            expected = expected + self._kernels.scores(sets)
        if self.groups.items.size:
            expected = expected.copy()
            expected[:, self.groups.items] += self.groups.scores(sets, self._memberships)
        table = self.table
        if not table.items.size:
            return expected
        return scores(sets, table.items, table.weights, expected, table.share)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return by what devices rank all items, shape (users, items)."""
        return self.scores(profiles.to_sets())

    @property
    def sent_steps(self) -> tuple[float, float, float]:
        """The steps in which devices are sent it; see `steps`."""
        return self.steps or (POPULARITY_STEP, ROOTS_STEP, step_of(self.table.upper, INVERSE_STEP))

    def within(self, max_bytes: int | None) -> Self:
        """Return the model of at most so many bytes: with longer steps, and a table of fewer items.

        The most popular ones stay. Raises SettingError where not even popularity fits, as it does in
        `least_bytes`.
        """
        if max_bytes is None or len(self.encode()) <= max_bytes:
            return self
        size = self.table.items.size
        while True:
            places = popular_items(self.popularity[self.table.items], size)
            groups = self.groups if size == self.table.items.size else ItemGroups.nothing()
            model = replace(self, table=self.table.among(places), groups=groups, steps=None)
            longest = _LONGER if size else MOST_TIMES
            shortened = fitted(model.with_steps, lambda sent: len(sent.encode()), max_bytes, longest)
            if shortened is not None:
                return shortened
            if not size:
                raise too_few_bytes(max_bytes, len(model.with_steps(longest).encode()))
            size = size // 2 if size > 3 else 0

    def with_steps(self, longer: float) -> Self:
        """Return the model in steps so many times as long."""
        of_popularity, of_roots, of_inverse = self.sent_steps
        groups = replace(self.groups, step=longer * LIFT_STEP)
        steps = longer * of_popularity, longer * of_roots, longer * of_inverse
        return replace(self, groups=groups, steps=steps)

    def encode(self) -> bytes:
        """Return the bytes that devices are sent; raises InputError for more categories than they take.

        Numbers are rounded to steps, the table is its upper triangle without the diagonal.
        """
        table, (of_popularity, of_roots, of_inverse) = self.table, self.sent_steps
        if self.categories.size > _MOST_CATEGORIES:
            found = "{1:,} categories of {0:,} items, in a model for devices".format(*self.categories.shape)
            raise InputError("the catalogue", found, f"at most {_MOST_CATEGORIES:,} of all items")
        n_items, n_categories = self.categories.shape
        groups, shares = self.groups, [table.share, self.groups.share]
        sizes = [n_categories, len(self.bins), table.items.size, *groups.lifts.shape]
        parts = [
            np.array(sizes, dtype=_COUNT).tobytes(),
            np.array(shares, dtype=_NUMBER).tobytes(),
            encode_numbers(self.popularity, of_popularity),
            encode_integers(self.categories.T),
            encode_integers(self.bins),
        ]
        if table.items.size:
            parts += [
                encode_numbers(np.log(table.roots), of_roots),
                encode_numbers(table.upper, of_inverse),
                encode_items(table.items, n_items),
            ]
        if groups.items.size:
            parts += [
                encode_items(groups.items, n_items),
                encode_numbers(groups.lifts, groups.step),
                encode_numbers(groups.expected, ROOTS_STEP),
            ]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, n_items: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        read = Reader(data)
        n_categories, n_numbers, size, grouped, n_groups = read.numbers(_COUNT, 5).tolist()
        if grouped > n_items or n_groups > MOST_GROUPS:
            raise ValueError(f"{n_groups} groups of {grouped} of {n_items} items")
        if size > min(n_items, MOST_ITEMS):
            raise ValueError(f"a table of {size} of {n_items} items")
        if n_categories * n_items > _MOST_CATEGORIES:
            raise ValueError(f"{n_categories} categories of {n_items} items")
        share, share_of_groups = read.floats(_NUMBER, 2).tolist()
        popularity, of_popularity = read.rounded((n_items,))
        categories = read.integers(n_categories * n_items).reshape(n_categories, n_items).T
        bins = read.integers(n_numbers * n_items).reshape(n_numbers, n_items)
        table, steps = PairTable.nothing(), (of_popularity, ROOTS_STEP, 1.0)
        if size:
            roots, of_roots = read.rounded((size,))
            upper, of_inverse = read.rounded((size * (size - 1) // 2,))
            steps = of_popularity, of_roots, of_inverse
            # A weight is a ratio of two, and devices square scores by them.
            if not (np.abs(roots) <= LARGEST / 2).all():
                raise ValueError("a list model with roots out of range")
            inverse = np.zeros((size, size))
            inverse[np.triu_indices(size, 1)] = upper
            inverse += inverse.T + np.eye(size)
            table = PairTable(read.item_set(n_items, size), inverse, np.exp(roots), share)
        groups = ItemGroups.nothing()
        if grouped:
            items = read.item_set(n_items, grouped)
            lifts, step = read.rounded((grouped, n_groups))
            groups = ItemGroups(items, lifts, read.rounded((n_groups,))[0], share_of_groups, step)
        read.end()
        # Not a number is in no range.
        numbers = popularity, np.array([share, share_of_groups]), groups.lifts, groups.expected
        possible = all((np.abs(values) <= LARGEST).all() for values in numbers)
        binary = ((categories >= 0) & (categories <= 1)).all()
        # A number of at most 1 is rounded by less.
        if not (possible and binary and (np.abs(table.inverse) <= 2).all()):
            raise ValueError("a list model with numbers out of range")
        if not ((bins >= 0) & (bins < BINS)).all():
            raise ValueError("a list model with public numbers out of range")
        return cls(popularity, categories.astype(np.bool_), bins.astype(np.uint8), table, groups, steps)


def least_bytes(n_items: int, catalogue: Catalogue | None) -> int:
    """Return bytes that suffice for popularity in a few steps, and what is public of the items."""
    public = 0
    if catalogue is not None:
        public = len(encode_integers(catalogue.categories.T)) + catalogue.numbers.shape[1] * n_items
    return 64 + n_items // 4 + public


def check_least_bytes(
    max_bytes: int | None, n_items: int, catalogue: Catalogue | None, further: int = 0
) -> None:
    """Raise SettingError for a limit in which popularity and what is public may not fit.

    ``further``: bytes that are sent besides.
    """
    least = least_bytes(n_items, catalogue) + further
    if max_bytes is not None and max_bytes < least:
        raise too_few_bytes(max_bytes, least)


def too_few_bytes(max_bytes: int, least: int) -> SettingError:
    """Return what refuses a limit."""
    accepted = f"at least {least}, for popularity and what is public of the items, or null"
    return SettingError("max_bytes_down", str(max_bytes), accepted)
