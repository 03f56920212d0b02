"""How alike items are by public data, and what a set tells by it: computed on the device, at no cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dprec.arrays import Floats, Ints
from dprec.catalogue import Catalogue

_CATEGORIES = 5.0
_NUMBERS = 4.0
"""What a likeness of 1 beyond that of an average set adds to a score."""

_PRIOR = 10.0
"""How many items of an average set are added to the own set."""

_REACH = 0.3
"""Share of all popularity that lies between two values of a number whose likeness is 1 / e."""

_BINS = 64
"""Parts of equal popularity that a number's values fall into."""


@dataclass(frozen=True, eq=False)
class PublicKernels:
    """Likeness of items, by shared categories and by near values of numbers."""

    categories: Floats
    """Categories of each item with norm 1, or 0 for an item in none; shape (items, categories)."""
    bins: Ints
    """The part that each number's value falls into; shape (numbers, items)."""
    average: Floats
    """Likeness of each item to an average set, summed over kernels; shape (items,)."""

    @classmethod
    def of(cls, catalogue: Catalogue, popularity: Floats) -> PublicKernels:
        """Return the kernels of a catalogue, given the items' popularity, above 0, shape (items,)."""
        norms = np.sqrt(catalogue.categories.sum(axis=1, keepdims=True))
        categories = catalogue.categories / np.maximum(norms, 1.0)
        weights = popularity / popularity.sum()
        bins = np.zeros(catalogue.numbers.T.shape, dtype=np.int64)
        for own, number in zip(bins, catalogue.numbers.T, strict=True):
            own[:] = _ranks(number, weights)
        kernels = cls(categories, bins, np.zeros(len(weights)))
        average = kernels._likeness(weights[None, :])[0]
        return cls(categories, bins, average)

    def scores(self, sets: sparse.csr_array) -> Floats:
        """Return how much more alike items are to each set than to an average one, shape (users, items)."""
        sizes = np.diff(sets.indptr)[:, None]
        result: Floats = (self._likeness(sets) - sizes * self.average) / (sizes + _PRIOR)
        return result

    def _likeness(self, sets: sparse.csr_array | Floats) -> Floats:
        result: Floats = _CATEGORIES * ((sets @ self.categories) @ self.categories.T)
        near = np.exp(-np.abs(np.subtract.outer(np.arange(_BINS), np.arange(_BINS))) / (_REACH * _BINS))
        for bins in self.bins:
            items = np.arange(bins.size)
            members = sparse.csr_array((np.ones(bins.size), (items, bins)), shape=(bins.size, _BINS))
            result += _NUMBERS / len(self.bins) * ((sets @ members) @ near)[:, bins]
        return result


def _ranks(number: Floats, weights: Floats) -> Ints:
    """Return the part of all popularity that is below each value, in bins."""
    values, places = np.unique(number, return_inverse=True)
    parts = np.bincount(places, weights=weights, minlength=values.size)
    middles = np.cumsum(parts) - parts / 2
    ranks: Ints = np.minimum((middles * _BINS).astype(np.int64), _BINS - 1)[places]
    return ranks
