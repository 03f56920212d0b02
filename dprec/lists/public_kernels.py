"""How alike items are by public data, and what a set tells by it: computed on the device, at no cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from dprec.arrays import Bools, Floats, Uint8s

_CATEGORIES = 5.0
_NUMBERS = 4.0
"""What a likeness of 1 beyond that of an average set adds to a score."""

_PRIOR = 10.0
"""How many items of an average set are added to the own set."""

_REACH = 0.3
"""Share of all popularity that lies between two values of a number whose likeness is 1 / e."""

BINS = 64
"""Parts of equal popularity that a number's values fall into."""


@dataclass(frozen=True, eq=False)
class PublicKernels:
    """Likeness of items, by shared categories and by near values of numbers."""

    categories: Floats
    """Categories of each item with norm 1, or 0 for an item in none; shape (items, categories)."""
    bins: Uint8s
    """The part of all popularity that each number falls into; shape (numbers, items)."""
    average: Floats
    """Likeness of each item to an average set, summed over kernels; shape (items,)."""

    @classmethod
    def among(cls, categories: Bools, bins: Uint8s, popularity: Floats) -> Self:
        """Return the kernels of items, given their popularity, above 0, shape (items,).

        ``categories``, shape (items, categories); ``bins``, shape (numbers, items): see `popularity_bins`.
        """
        norms = np.sqrt(categories.sum(axis=1, keepdims=True))
        kernels = cls(categories / np.maximum(norms, 1.0), bins, np.zeros(len(popularity)))
        average = kernels._likeness(popularity[None, :] / popularity.sum())[0]
        return cls(kernels.categories, bins, average)

    def scores(self, sets: sparse.csr_array) -> Floats:
        """Return how much more alike items are to each set than to an average one, shape (users, items)."""
        sizes = np.diff(sets.indptr)[:, None]
        scores: Floats = (self._likeness(sets) - sizes * self.average) / (sizes + _PRIOR)
        return scores

    def _likeness(self, sets: sparse.csr_array | Floats) -> Floats:
        result: Floats = _CATEGORIES * ((sets @ self.categories) @ self.categories.T)
        near = np.exp(-np.abs(np.subtract.outer(np.arange(BINS), np.arange(BINS))) / (_REACH * BINS))
        for bins in self.bins:
            items = np.arange(bins.size)
            members = sparse.csr_array((np.ones(bins.size), (items, bins)), shape=(bins.size, BINS))
            result += _NUMBERS / len(self.bins) * ((sets @ members) @ near)[:, bins]
        return result


def popularity_bins(numbers: Floats, popularity: Floats) -> Uint8s:
    """Return the part of all popularity that is below each value, in `BINS`, shape (numbers, items).

    Parameters
    ----------
    numbers : ndarray of float64, shape (items, numbers)
    popularity : ndarray of float64, shape (items,)
        Above 0.
    """
    weights, bins = popularity / popularity.sum(), np.zeros(numbers.shape[::-1], dtype=np.uint8)
    for number, bin_of in zip(numbers.T, bins, strict=True):
        values, places = np.unique(number, return_inverse=True)
        parts = np.bincount(places, weights=weights, minlength=values.size)
        middles = np.cumsum(parts) - parts / 2
        bin_of[:] = np.minimum(middles * BINS, BINS - 1).astype(np.uint8)[places]
    return bins
