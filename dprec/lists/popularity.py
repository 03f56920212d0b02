"""Scores by how many users have an item, and by how far a user's own items are like it in public data."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dprec.arrays import AnyInts, Floats
from dprec.catalogue import Catalogue

_PRIOR = 1.0
"""Items of every group that a user is taken to have beside the own ones."""


def unit_vectors(sets: sp.csr_array) -> sp.csr_array:
    """Return every set as a vector of norm 1, x / sqrt(n), shape (users, items); an empty one stays 0."""
    counts = np.diff(sets.indptr)
    weights = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)
    return sp.csr_array((weights, sets.indices, sets.indptr), shape=sets.shape)


def popularity(sets: sp.csr_array) -> Floats:
    """Return the sum of the unit vectors of all sets, shape (items,): what a noisy sum estimates.

    Long profiles weigh less on each item than short ones, so that nobody adds more than a vector of norm 1.
    """
    return np.asarray(unit_vectors(sets).sum(axis=0))


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Public groups of items: each has memberships in groups that may overlap, such as genres, or decades."""

    memberships: Floats
    """Share of each item in each group; a row sums to 1, or to 0 for one in none; shape (items, groups)."""

    @classmethod
    def of_categories(cls, catalogue: Catalogue) -> "ItemGroups":
        """Return the categories of a catalogue, of which an item's share a membership evenly."""
        flags = catalogue.categories.astype(np.float64)
        return cls(flags / np.maximum(flags.sum(axis=1, keepdims=True), 1))

    @classmethod
    def of_numbers(cls, catalogue: Catalogue, groups: int = 8) -> "list[ItemGroups]":
        """Return, for every number of a catalogue such as a year, as many groups of about equally many items.

        Neighbouring groups overlap: an item between two centres is in both, linearly.
        """
        return [cls(_triangles(column, groups)) for column in catalogue.numbers.T]


def _triangles(numbers: Floats, groups: int) -> Floats:
    """Return linear memberships between the quantiles of a column, shape (items, groups)."""
    centres = np.unique(np.quantile(numbers, np.linspace(0, 1, groups)))
    place: Floats = np.interp(numbers, centres, np.arange(centres.size, dtype=np.float64))
    memberships: Floats = np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(centres.size)))
    return memberships


def groups_of(catalogue: Catalogue) -> list[ItemGroups]:
    """Return all groups of a catalogue: its categories together, and each number by itself."""
    groups = ItemGroups.of_numbers(catalogue)
    return [ItemGroups.of_categories(catalogue), *groups] if catalogue.category_names else groups


def popularity_by_content(
    popularity: Floats, groups: "list[ItemGroups]", sets: sp.csr_array, strength: float = 1.0
) -> Floats:
    """Return scores of all items for users: popularity times how often their own items have its groups.

    For each kind of groups, the share of a user's items in a group, over what would be expected by
    popularity alone, is averaged over the groups of an item; the product over kinds multiplies popularity.
    Computed on the device: nothing but popularity and public data is needed.

    Parameters
    ----------
    popularity : ndarray of float64, shape (items,)
        Noisy or exact; negative numbers count as 0.
    sets : csr_array, shape (users, items)
        The users' own items.
    strength : float
        Exponent of the product.

    Returns
    -------
    ndarray of float64, shape (users, items)
    """
    weights = np.maximum(popularity, 0.0)
    factor = np.ones(sets.shape)
    for kind in groups:
        expected = weights @ kind.memberships if weights.any() else kind.memberships.sum(axis=0)
        expected = expected / max(float(expected.sum()), np.finfo(float).tiny)
        own = sets @ kind.memberships
        lengths = own.sum(axis=1, keepdims=True)
        prior = _PRIOR * kind.memberships.shape[1]
        shares = (own + prior * expected) / (lengths + prior)
        lift = shares / np.maximum(expected, np.finfo(float).tiny)
        known = kind.memberships.sum(axis=1)
        factor *= np.where(known > 0, lift @ kind.memberships.T / np.where(known > 0, known, 1), 1.0)
    return weights * factor**strength


def uniform_order(public_seed: int, users: AnyInts, items: AnyInts) -> Floats:
    """Return numbers from 0 to 1 that order all items of each user at random, for all who know the seed.

    ``users``, ``items``: of the same shape, which is that of the result.
    """
    from dprec.randomness import threefry, uniforms

    low, high = items.ravel(), users.ravel()
    keys = np.zeros((2, low.size), dtype=np.uint64)
    keys[0] = public_seed & ((1 << 64) - 1)
    return uniforms(threefry(keys, low, high)[0]).reshape(items.shape)
