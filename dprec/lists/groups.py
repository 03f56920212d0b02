"""Groups of items that go together: they carry what a table of pairs shows to items outside of it.

A table holds the few items of which pairs can be told from noise. Its items fall into groups, spectral
clusters of the table (Ng, Jordan and Weiss [ng2002]), and devices say of each of their items, many more than
the table has, which groups the other items of the user are in. From that sum the server learns a lift for
every item and group: how much more often they meet than popularity explains. A device ranks by the lifts of
the groups that its own items belong to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dprec.arrays import AnyInts, Floats, Int32s, Ints, Uint8s
from dprec.lists.gram import posterior_means
from dprec.randomness import generator

if TYPE_CHECKING:
    import scipy.sparse as sp

MOST_GROUPS = 150

LEAST_LIFT = 0.05
"""Below it, an item is as unlikely for a user as with it."""

LIFT_STEP = 0.2
"""In which devices are sent logarithms of lifts; benchmarks/choosing/sent_tables.py judges it."""

MOST_BESIDE_GROUPS = 4.0
"""What a standard deviation of the scores by a table counts for at most, and a logarithm of lifts like it."""

SEARCHED = 40
"""Numbers of the search for popular items for an item of the table."""

FEWEST_SEARCHED = 8000
"""Numbers of a search at least: a small catalogue has one for each item."""

_PER_GROUP, _TAU, _LEAST_TAU = 20, 1.4e-4, 1e-5
"""Items of the table for each group at a noise; fewer where there is less, down to the least."""

_FEWEST_GROUPS = 8

_CATALOGUE = 20
"""Items of the catalogue for each of the table, from which on groups are worth what they cost."""

_LARGEST_TAU = 2.5e-4
"""Noise of a number and of a user up to which the groups of a table are found."""

NO_GROUP = 255
"""Of an item that is not in the table."""

_STARTS, _STEPS = 5, 30
"""Of k-means."""

_TINY = 1e-12


def groups_at(table_items: int, tau: float, n_items: int) -> int:
    """Return how many groups a rule has, given the noise; none where a table alone is better."""
    if not table_items or n_items < _CATALOGUE * table_items or tau > _LARGEST_TAU:
        return 0
    per_group = _PER_GROUP * (max(tau, _LEAST_TAU) / _TAU) ** 0.3
    return min(max(round(table_items / per_group), _FEWEST_GROUPS), MOST_GROUPS, table_items)


def grouped_at(table_items: int, groups: int, n_items: int) -> int:
    """Return how many items a rule finds with groups: as many numbers as the table has pairs."""
    return min(max(table_items**2 // (2 * max(groups, 1)), table_items), n_items)


def groups_of(pairs: Floats, count: int, seed: int) -> Uint8s:
    """Return the group of each item, below ``count``, which is at most the number of items; shape (items,).

    Rows of the leading eigenvectors of D^-1/2 T D^-1/2, for the table T with the row sums D, of length 1,
    are divided by k-means of their directions: the best of a few starts.

    Parameters
    ----------
    pairs : ndarray, shape (items, items)
        Symmetric, not negative.
    """
    degrees = np.sqrt(np.maximum(pairs.sum(axis=1), _TINY))
    _, vectors = np.linalg.eigh(pairs / np.outer(degrees, degrees))
    rows = vectors[:, -count:]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1), _TINY)[:, None]
    random = generator(seed, "groups of items")
    groupings = [_by_direction(rows, rows[random.permutation(len(rows))[:count]]) for _ in range(_STARTS)]
    groups, _ = max(groupings, key=lambda grouping: grouping[1])
    return groups


def _by_direction(rows: Floats, centres: Floats) -> tuple[Uint8s, float]:
    """Return the groups of rows of length 1 that k-means ends in, and how near all are to their centres."""
    for _ in range(_STEPS):
        groups = (rows @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, groups, rows)
        lengths = np.linalg.norm(sums, axis=1)
        # A group that has lost its items keeps its centre.
        centres = np.where(lengths[:, None] > _TINY, sums / np.maximum(lengths, _TINY)[:, None], centres)
    products = rows @ centres.T
    return products.argmax(axis=1).astype(np.uint8), float(products.max(axis=1).sum())


def others_in_groups(users: Ints, places: AnyInts, groups: Uint8s, count: int, n_users: int) -> Floats:
    """Return the direction of the groups that the other items of a user are in, shape (entries, count).

    Each is the numbers of a user's other items in every group, squared, and has length 1, or 0 if none of
    the others has a group.

    Parameters
    ----------
    users, places : ndarray, shape (entries,)
        Who has an item, and where it is in ``groups``.
    groups : ndarray, shape (places,)
        Below ``count``, or `NO_GROUP`.
    """
    item_groups = groups[places]
    grouped = item_groups != NO_GROUP
    cells = users[grouped] * count + item_groups[grouped]
    of_users = np.bincount(cells, minlength=n_users * count).reshape(n_users, count)
    others = of_users[users].astype(np.float64)
    others[np.flatnonzero(grouped), item_groups[grouped]] -= 1
    others *= others
    lengths = np.sqrt((others**2).sum(axis=1))
    directions: Floats = others / np.maximum(lengths, 1.0)[:, None]
    return directions


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """How much more often items meet the items of groups than popularity explains."""

    items: Int32s
    """Ascending; shape (items,)."""
    lifts: Floats
    """Logarithms; shape (items, groups)."""
    expected: Floats
    """Logarithms of what is expected of the sum of an item of popularity 1 and a group, in deviations of its
    noise; shape (groups,).
    """
    share: float
    """What a logarithm of the lifts counts for, beside one of popularity."""
    step: float = LIFT_STEP
    """In which devices are sent the lifts."""

    @classmethod
    def nothing(cls) -> Self:
        """Return groups of no items."""
        return cls(np.zeros(0, dtype=np.int32), np.zeros((0, 0)), np.zeros(0), 0.0)

    @classmethod
    def of(
        cls, items: Int32s, noisy: Floats, deviation: float, popularity: Floats, share: float = 1.0
    ) -> Self:
        """Return what a noisy sum teaches of items and groups.

        Parameters
        ----------
        noisy : ndarray, shape (items, groups)
            The sum of all contributions, with noise.
        deviation : float
            Of the noise of a number, above 0.
        popularity : ndarray, shape (items,)
            Above 0.
        share : float, optional
            What a logarithm of lifts is to count for.
        """
        totals = np.maximum(noisy.sum(axis=0), deviation * np.sqrt(len(noisy)) / 4)
        base = np.outer(popularity, totals)
        unit = max(float((noisy * base).sum()), _TINY) / float((base**2).sum())
        means = posterior_means(noisy.ravel(), deviation, base.ravel() * unit).reshape(noisy.shape)
        lifts = np.log(np.maximum(means / (base * unit), LEAST_LIFT))
        return cls(items, lifts, np.log(totals * unit / deviation), share)

    def memberships(self, popularity: Floats) -> Floats:
        """Return how much an item belongs to each group, at most 1 together, shape (items, groups).

        In proportion to what is above expectation, and the less the less that stands out of the noise.
        ``popularity``: its logarithm, of all items.
        """
        expected = np.exp(popularity[self.items][:, None] + self.expected)
        above = np.maximum(np.expm1(self.lifts), 0.0) * expected
        memberships: Floats = above / (1 + above.sum(axis=1, keepdims=True))
        return memberships

    def scores(self, sets: sp.csr_array, memberships: Floats) -> Floats:
        """Return logarithms of how much likelier the items are for users, times the share.

        Groups count for a user as its items belong to them, and all of them q of q + 1 where the memberships
        of its items add up to q. ``sets``: of all items, shape (users, all items); the scores: shape (users,
        items).
        """
        of_users = np.asarray(sets[:, self.items] @ memberships)
        total = of_users.sum(axis=1, keepdims=True)
        likelier = (1 + np.maximum(of_users @ np.exp(self.lifts).T, LEAST_LIFT * total)) / (1 + total)
        scores: Floats = self.share * np.log(likelier)
        return scores
