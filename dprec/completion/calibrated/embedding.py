"""What the set of rated items says about users and items before any rating is read.

The singular vectors of the normalised 0/1 matrix of ratings place items that the same people rate next to
each other. Taste shows in what people choose, so their ratings vary smoothly over these places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion.spectral import SparsePlusLowRank

_DAMPING = 0.3
"""Each row and column of the 0/1 matrix is divided by this power of its number of ratings."""

SHRINKAGE = 5.0
"""Ratings at the origin that every average of places includes: places of few ratings are pulled to it."""

_NOISE = 1e-9
"""Relative size below which a singular value or a spread is rounding and no structure."""


@dataclass(frozen=True, eq=False)
class ItemSetEmbedding:
    """Places of users and items, and how often each of them occurs."""

    users: NDArray[np.float64]
    items: NDArray[np.float64]
    """Over the ratings, every dimension has mean 0, and the later ones spread less;
    shapes (users, dimensions) and (items, dimensions).
    """
    user_counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    """Ratings of each user and of each item."""
    count_reliability: float = 1.0
    """The correlation to be expected of the items' counts with those without noise, on a logarithmic scale.
    """

    @property
    def popularity(self) -> NDArray[np.float64]:
        """Standardised logarithms of the items' counts, shrunk by what noise may make of them."""
        return self.count_reliability * standardised_logarithms(self.item_counts)

    @classmethod
    def of(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        shape: tuple[int, int],
        dimensions: int,
        seed: int,
        least_raters: int = 1,
    ) -> ItemSetEmbedding:
        """Place the users and items of rated cells.

        Items with fewer raters than the least stay at the origin, and say nothing about other places.

        Parameters
        ----------
        users, items : ndarray of int, shape (cells,)
        shape : tuple of int
            Users and items of the whole catalogue.
        dimensions : int
            Those for which the matrix has no singular vectors are 0.
        seed : int
            Seed of the initial Lanczos vector of large matrices.
        """
        all_counts = _counted((users, items), shape)
        known = all_counts[1][items] >= least_raters
        cells = users[known], items[known]
        rated = sp.csr_array((np.ones(cells[0].size), cells), shape=shape)
        of_user, of_item = _counted(cells, shape)
        by_user, by_item = (np.maximum(counts, 1.0) ** -_DAMPING for counts in (of_user, of_item))
        normal = (sp.diags_array(by_user) @ rated @ sp.diags_array(by_item)).tocsr()
        kept = max(0, min(dimensions, min(shape) - 2))
        sparse_alone = SparsePlusLowRank(normal, np.zeros((shape[0], 0)), np.zeros((shape[1], 0)))
        leading = sparse_alone.leading(kept + 1, seed)
        # The first pair of vectors says little more than how often users and items occur.
        values = leading.values[1:]
        axes = leading.right[:, 1:] * by_item[:, None]
        user_embeddings = (rated @ axes) / (of_user + SHRINKAGE)[:, None]
        item_embeddings = (rated.T @ user_embeddings) / (of_item + SHRINKAGE)[:, None]
        unused = ((0, 0), (0, dimensions - kept))
        spreads = np.sqrt(values * (values > _NOISE) / max(values.max(initial=0.0), _NOISE))
        return cls(
            np.pad(standardised(user_embeddings, of_user) * spreads, unused),
            np.pad(standardised(item_embeddings, of_item) * spreads, unused),
            *all_counts,
        )


def _counted(
    cells: tuple[NDArray[np.integer], NDArray[np.integer]], shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each user occurs in some cells, and each item."""
    users, items = cells
    return np.bincount(users, minlength=shape[0]), np.bincount(items, minlength=shape[1])


def standardised_logarithms(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log(1 + counts) with mean 0 and variance 1 over the ratings; 0 where nothing is counted."""
    return standardised(np.log1p(counts)[:, None], counts)[:, 0]


def standardised(columns: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the columns with mean 0 and variance 1 over the ratings; rows without ratings are 0."""
    shares = counts / max(int(counts.sum()), 1)
    centred = (columns - shares @ columns) * (counts > 0)[:, None]
    deviations = np.sqrt(shares @ centred**2)
    spread_out = deviations > _NOISE * np.abs(columns).max(axis=0, initial=0.0)
    standard: NDArray[np.float64] = centred * spread_out / np.where(spread_out, deviations, 1.0)
    return standard
