"""Places of users and items from item sets, within what these may say to everybody who is sent the places."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion.calibrated.embedding import (
    SHRINKAGE,
    ItemSetEmbedding,
    NoisySets,
    expected_cosines,
    standardised,
)
from dprec.observations import EmbeddingRelease
from dprec.randomness import generator, seed_for


def embedded(
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    shape: tuple[int, int],
    embedding_release: EmbeddingRelease,
    dimensions: int,
    seed: int,
) -> ItemSetEmbedding:
    """Place users and items; see `ItemSetEmbedding.of`.

    With noise, places and counts of the items, and the axes along which users are placed, follow from
    `NoisySets` alone. A user's own place follows from these and its own items.

    Parameters
    ----------
    users, items : ndarray of int, shape (cells,)
    shape : tuple of int
    seed : int
        Of the server.
    """
    if embedding_release.epsilon is None:
        return ItemSetEmbedding.of(users, items, shape, dimensions, seed, embedding_release.least_raters)
    rated = sp.csr_array((np.ones(users.size), (users, items)), shape=shape)
    # Another budget draws other noise: two releases whose noise is in proportion would tell it.
    drawn_for = np.array([embedding_release.distance, embedding_release.least_raters])
    random = generator(seed_for(seed, users, items, drawn_for), "noise of item sets")
    released = NoisySets.released(rated, embedding_release.distance, embedding_release.least_raters, random)
    return placed_by(released, rated, dimensions)


def placed_by(released: NoisySets, rated: sp.csr_array, dimensions: int) -> ItemSetEmbedding:
    """Place items by what was released, and users by their items.

    Parameters
    ----------
    rated : sparse array of 0 and 1, shape (users, items)
    dimensions : int
        Those whose eigenvalues do not stand out from the noise are 0. Over the ratings, the others have
        standard deviations of the cosine to be expected between an eigenvector and that without noise, times
        the fourth root of the eigenvalue relative to the largest, as without noise.
    """
    kept, n_items = released.kept, rated.shape[1]
    used = min(dimensions, kept.size)
    counts = np.rint(np.maximum(released.counts, 0.0)).astype(np.int64)
    among = np.zeros(n_items, dtype=np.int64)
    among[kept] = counts[kept]
    axes, scales = np.zeros((n_items, dimensions)), np.zeros(dimensions)
    if used:
        last = [kept.size - used, kept.size - 1]
        values, vectors = scipy.linalg.eigh(released.together, subset_by_index=last)
        # The first are those of the largest eigenvalues.
        axes[kept, :used] = vectors[:, ::-1] / np.sqrt(released.counts[kept])[:, None]
        # What every direction has in common says nothing about who rates what together.
        values = values - np.trace(released.together) / kept.size
        scales[:used] = _scales(values[::-1], 2 * released.pair_noise * np.sqrt(kept.size))
    of_user = np.asarray(rated.sum(axis=1)).ravel().astype(np.int64)
    own = np.asarray(rated[:, kept].sum(axis=1)).ravel()
    along = (rated @ axes) / (own + SHRINKAGE)[:, None]
    return ItemSetEmbedding(
        standardised(along, of_user) * scales,
        standardised(axes, among) * scales,
        of_user,
        counts,
        _reliability(released),
    )


def _scales(values: NDArray[np.float64], edge: float) -> NDArray[np.float64]:
    """Return the standard deviation of each dimension, from its eigenvalue, descending."""
    above = np.maximum(values, edge)
    # The eigenvalue t without noise makes one of t + (edge / 2)^2 / t.
    strengths = (above + np.sqrt(above**2 - edge**2)) / 2
    scales: NDArray[np.float64] = expected_cosines(values, edge) * np.sqrt(strengths / strengths.max())
    return scales


def _reliability(released: NoisySets) -> float:
    """Return the correlation to be expected of log(1 + count) with and without noise, over the ratings.

    The variance of the noise on a logarithm is s^2 / (1 + count)^2, to first order, and at most 4.
    """
    counts = np.maximum(released.counts, 0.0)
    shares = counts / max(float(counts.sum()), np.finfo(float).tiny)
    logarithms = np.log1p(counts)
    whole = float(shares @ (logarithms - shares @ logarithms) ** 2)
    noise = float(shares @ np.minimum((released.count_noise / (1 + counts)) ** 2, 4.0))
    return float(np.sqrt(max(0.0, 1 - noise / max(whole, float(np.finfo(float).tiny)))))
