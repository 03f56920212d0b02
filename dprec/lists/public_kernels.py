"""How alike items are by public data, and what a set tells by it: computed on the device, at no cost.

A user is taken to choose items in proportion to popularity times exp(f), where f is a Gaussian process of the
items: items of the same categories, and of near numbers, have similar f. A device knows its set of n items,
and ranks by the mean of f that one step of Newton's method from 0 gives, f = K (I + n W K)^-1 (x - n p), for
the kernel K, the set x, the shares p of all popularity and W = diag(p) - p p^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dprec.arrays import Bools, Floats, Uint8s

if TYPE_CHECKING:
    from scipy import sparse

CATEGORIES, NUMBERS = 0.5, 0.3
"""Variances of f by categories and by numbers; `benchmarks/choosing/list_settings.py` judges them."""

_REACH = 0.3
"""Share of all popularity that lies between two values of a number whose likeness is 1 / e."""

BINS = 64
"""Parts of equal popularity that a number's values fall into."""


@dataclass(frozen=True, eq=False)
class PublicKernels:
    """Likeness of items, by shared categories and by near values of numbers."""

    features: Floats
    """Features whose products are the kernel, uncorrelated among items chosen by popularity alone, of which
    they have a mean of 0; shape (items, features).
    """
    variances: Floats
    """Of each feature among such items; shape (features,)."""

    @classmethod
    def among(
        cls, categories: Bools, bins: Uint8s, popularity: Floats, spread: tuple[float, float] | None = None
    ) -> Self:
        """Return the kernels of items, given their popularity, above 0, shape (items,).

        ``categories``, shape (items, categories); ``bins``, shape (numbers, items): see `popularity_bins`;
        ``spread``: variances of f, `CATEGORIES` and `NUMBERS`.
        """
        by_categories, by_numbers = (CATEGORIES, NUMBERS) if spread is None else spread
        norms = np.sqrt(np.maximum(categories.sum(axis=1, keepdims=True), 1.0))
        parts = [np.sqrt(by_categories) * categories / norms]
        if len(bins):
            # Features of the bins whose products are their likeness.
            apart = np.abs(np.subtract.outer(np.arange(BINS), np.arange(BINS)))
            values, vectors = np.linalg.eigh(np.exp(-apart / (_REACH * BINS)))
            significant = values > 1e-2 * values[-1]
            bin_features = vectors[:, significant] * np.sqrt(values[significant])
            parts.extend(np.sqrt(by_numbers / len(bins)) * bin_features[item_bins] for item_bins in bins)
        features, shares = np.hstack(parts), popularity / popularity.sum()
        centred = features - shares @ features
        _, roots, axes = np.linalg.svd(np.sqrt(shares)[:, None] * centred, full_matrices=False)
        return cls(centred @ axes.T, roots**2)

    def scores(self, sets: sparse.csr_array) -> Floats:
        """Return f of all items for each set, shape (users, items)."""
        sizes = np.diff(sets.indptr)[:, None]
        return ((sets @ self.features) / (1 + sizes * self.variances)) @ self.features.T


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
