"""Item embeddings from who rated an item: what stands above noise in sums of the profiles of its raters.

A user adds its own profile in public features to each item that it rated, or its residuals by feature times
the residual of the item, always with the item itself left out. So the sum of item i is its count times the
mean direction of its raters, g_i, with noise of the sum and of sampling. Of the covariance of the g_i those
directions are kept that stand above what noise alone would have; along each, g_i is shrunk as Wiener's
filter does.
"""

import numpy as np

from dprec.arrays import Floats

_MOST = 20
"""Dimensions, at most: as those of item embeddings that are learned from visible sets."""

_MARGIN = 1.1
"""How far beyond its expected edge noise may reach."""


def embeddings_of(sums: Floats, deviation: float, counts: Floats, users: int) -> Floats:
    """Return item embeddings, with their deviations over ratings by strength; shape (items, dimensions).

    Parameters
    ----------
    sums : ndarray, shape (items, features)
        With noise.
    deviation : float
        Of the noise of each number.
    counts : ndarray, shape (items,)
        How often items are rated, in the weights of the sums.
    users : int
        Who contributed.
    """
    n_items, width = sums.shape
    total = max(float(counts.sum()), np.finfo(float).tiny)
    shares = counts / total
    # What all items have in common says nothing about who rates what.
    residuals = sums - counts[:, None] * (sums.sum(axis=0) / total)
    noise = deviation**2 + counts * (users / total / width)
    weights = counts / np.maximum(noise, np.finfo(float).tiny)
    weighted = residuals * weights[:, None]
    scale = max(float(((counts * weights) ** 2).sum()), np.finfo(float).tiny)
    spread = weights**2 * noise
    covariance = (weighted.T @ weighted - np.eye(width) * spread.sum()) / scale
    # Of noise alone, so weighted, no eigenvalue is expected beyond (Marchenko and Pastur).
    squares = float((spread**2).sum())
    edge = 2 * np.sqrt(width * squares) + width * squares / max(float(spread.sum()), np.finfo(float).tiny)
    edge *= _MARGIN / scale
    values, vectors = np.linalg.eigh(covariance)
    significant = np.flatnonzero(values > edge)[::-1][:_MOST]
    if not significant.size:
        return np.zeros((n_items, 0))
    strengths, projections = values[significant], residuals @ vectors[:, significant]
    signal = counts[:, None] ** 2 * strengths
    gains = signal / (signal + noise[:, None])
    means = gains * projections / np.maximum(counts, np.finfo(float).tiny)[:, None]
    spreads = np.sqrt(np.maximum(shares @ means**2, np.finfo(float).tiny))
    # Deviations as those of dprec.completion: the root of the singular values.
    by_strength = (strengths / strengths[0]) ** 0.25 * np.sqrt(shares @ gains)
    return means / spreads * by_strength
