"""What everybody's item sets say together, with noise: how often items are rated, and by the same people.

With x_u the 0/1 row of a user's n_u rated items, two sums over users are released. The first is of

    min(1, sqrt(k / n_u)) x_u,

which has a norm of at most sqrt(k). Items whose sum stands out from its noise are kept; p holds their shares
of it. Of those items alone, the second sum is of

    y_u y_u^T,    y_u = (x_u - n_u p) / ||x_u - n_u p||,

which has a Frobenius norm of 1: where a user's choice among the items differs from their popularity. So one
profile more or less moves the first sum by sqrt(k) at most and the second by 1. Two profiles in place of each
other move them by sqrt(2) times as much, as ||a - b||^2 <= ||a||^2 + ||b||^2 for rows without negative
numbers, and ||y y^T - z z^T||^2 = 2 - 2 (y . z)^2. With Gaussian noise the two releases compose exactly
(`dprec.privacy.gaussian`); that the second is chosen by the outcome of the first makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

RATINGS_PER_USER = 32
"""Ratings k of a user from which on each counts for less: many more would need more noise."""

_SHARE_OF_COUNTS = 0.3
"""Share of the budget, as a squared distance of two means, that goes to the first sum."""

_CLEAR = 3.0
"""Standard deviations of the noise by which an item's sum has to exceed 0 for the item to be kept."""

_MOST_KEPT = 2000
"""Most items of the second sum, which is a square matrix."""

_LEAST_REST = 1e-3
"""Share of ||x_u||^2 up to which a difference from popularity is left out, lest rounding count."""

_MARGIN = 1 + 1e-9
"""Rows are scaled in floating point, so their norms may exceed the bounds by very little."""


@dataclass(frozen=True, eq=False)
class NoisySets:
    """The two sums with their noise."""

    counts: NDArray[np.float64]
    """The first sum, which may be negative; shape (items,)."""
    count_noise: float
    """Standard deviation of the noise on each count."""
    kept: NDArray[np.int64]
    """Items of the second sum, ascending; shape (kept,)."""
    together: NDArray[np.float64]
    """The second sum, symmetric; shape (kept, kept)."""
    pair_noise: float
    """Standard deviation of the noise on each entry off its diagonal; that on the diagonal is sqrt(2) times
    as large.
    """

    @classmethod
    def released(
        cls, rated: sp.csr_array, distance: float, least_raters: int, random: np.random.Generator
    ) -> NoisySets:
        """Release the sums.

        Parameters
        ----------
        rated : sparse array of 0 and 1, shape (users, items)
        distance : float
            What both releases together cost: how many standard deviations apart they are, as two means, with
            and without a profile; see `dprec.privacy.gaussian`.
        least_raters : int
            Least count, noise included, of an item that is kept.
        random : Generator
            Of the noise.
        """
        count_noise = _MARGIN * np.sqrt(RATINGS_PER_USER / _SHARE_OF_COUNTS) / distance
        counts = weighted_counts(rated) + count_noise * random.standard_normal(rated.shape[1])
        kept = _kept(counts, max(float(least_raters), _CLEAR * count_noise))
        pair_noise = _MARGIN / np.sqrt(2 * (1 - _SHARE_OF_COUNTS)) / distance
        together = sums_of_squares(rated[:, kept], counts[kept])
        noise = random.standard_normal(together.shape)
        # Symmetric, and as large in every direction of the symmetric matrices.
        together += (noise + noise.T) * (pair_noise / np.sqrt(2))
        return cls(counts, float(count_noise), kept, together, float(pair_noise))


def weighted_counts(rated: sp.csr_array) -> NDArray[np.float64]:
    """Return how often each item is rated, by users of many ratings less, shape (items,); the first sum.

    Parameters
    ----------
    rated : sparse array of 0 and 1, shape (users, items)
    """
    sizes = np.asarray(rated.sum(axis=1)).ravel()
    weights = np.minimum(1.0, np.sqrt(RATINGS_PER_USER / np.maximum(sizes, 1)))
    counts: NDArray[np.float64] = rated.T @ weights
    return counts


def sums_of_squares(rated: sp.csr_array, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over users of y_u y_u^T, shape (kept, kept); the second sum.

    Parameters
    ----------
    rated : sparse array of 0 and 1, shape (users, kept)
    counts : ndarray, shape (kept,)
        Of the items that are kept, above 0.
    """
    shares = counts / max(float(counts.sum()), np.finfo(float).tiny)
    sizes = np.asarray(rated.sum(axis=1)).ravel()
    squares = sizes - 2 * sizes * (rated @ shares) + sizes**2 * (shares @ shares)
    left = squares > _LEAST_REST * sizes
    inverse = left / np.where(left, squares, 1.0)
    # Written out, so that no row of numbers per user is ever dense.
    together: NDArray[np.float64] = (rated.T @ (sp.diags_array(inverse) @ rated)).toarray()
    across = np.outer(rated.T @ (inverse * sizes), shares)
    together += np.outer(shares, shares) * float(inverse @ sizes**2) - across - across.T
    return together


def _kept(counts: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Return the items whose counts are at least so large, the most frequent if they are too many."""
    frequent = np.argsort(-counts, kind="stable")[:_MOST_KEPT]
    return np.sort(frequent[counts[frequent] >= least])
