"""Lists from one noisy table of items and public features: what tastes the users of an item have.

A device contributes, for each of its items that take part, the public features of its other items. The
server removes from the table what popularity and an average user explain, and what noise alone explains. What
is left, over the covariance of features among items, says how an item's scores follow the features of a set:
fewer numbers than pairs of items have, and by what is public of them, of items that are in few sets too.
"""

from __future__ import annotations

import numpy as np

from dprec.arrays import Bools, Floats, Uint8s
from dprec.lists.gram import joined
from dprec.lists.public_kernels import BINS

COLUMNS = 28
"""Public features: parts of numbers after categories, one upon another where there are more.

benchmarks/choosing/list_settings.py judges it, `_PARTS`, `_RIDGE` and `share_of_tastes` on validation items.
"""

_PARTS = 8
"""Of equal popularity that a number's values are told apart by."""

_RIDGE = 0.03
"""Of the covariance of features, in its mean variance."""

_STEPS = 10


def public_features(categories: Bools, bins: Uint8s) -> Floats:
    """Return features of items, none negative, shape (items, COLUMNS); for arguments see `PublicKernels`."""
    norms = np.sqrt(np.maximum(categories.sum(axis=1, keepdims=True), 1.0))
    parts = [categories / norms, *(np.eye(_PARTS)[item_bins // (BINS // _PARTS)] for item_bins in bins)]
    every = np.hstack(parts)
    features = np.zeros((len(every), COLUMNS))
    for column, values in enumerate(every.T):
        features[:, column % COLUMNS] += values
    return features


def popularity_of_products(
    estimate: Floats, estimate_deviation: float, noisy: Floats, deviation: float
) -> Floats:
    """Return the popularity of the items of noisy products too, above 0, shape (items,).

    The users of all items are taken to be of the same features, on average; see `joined_popularity`.
    """
    factor = estimate
    for _ in range(_STEPS):
        average = factor @ noisy
        fitted = noisy @ average * (float(factor @ factor) / max(float(average @ average), 1e-300))
        factor = np.maximum(fitted, 0.05 * estimate.mean())
    unit = estimate.sum() / factor.sum()
    length = float(np.linalg.norm(factor @ noisy)) / float(factor @ factor)
    variance = (unit * deviation / max(length, 1e-100)) ** 2
    return joined(estimate, estimate_deviation, unit * factor, np.full(estimate.size, variance))


def taste_weights(
    noisy: Floats, deviation: float, popularity: Floats, features: Floats, shares: Floats
) -> Floats:
    """Return by how much items' scores follow features, in a unit of their own, shape (items, COLUMNS).

    Parameters
    ----------
    noisy : ndarray, shape (items, COLUMNS)
        The noisy sum of products with features.
    deviation : float
        Standard deviation of its noise, above 0.
    popularity : ndarray, shape (items,)
        Popularity of the items of the table, above 0.
    features : ndarray, shape (all items, COLUMNS)
    shares : ndarray, shape (all items,)
        Of all popularity.
    """
    residuals = noisy - np.outer(popularity, popularity @ noisy / (popularity @ popularity))
    axes, values, others = np.linalg.svd(residuals, full_matrices=False)
    # The best for a squared error when only the table is known (Gavish and Donoho [gavish2017]).
    rows, columns = (size * deviation**2 for size in residuals.shape)
    squares = np.maximum((values**2 - rows - columns) ** 2 - 4 * rows * columns, 0.0)
    stand_out = values > np.sqrt(rows) + np.sqrt(columns)
    shrunk = np.where(stand_out, np.sqrt(squares) / np.maximum(values, 1e-300), 0.0)
    centred = features - shares @ features
    covariance = (centred * shares[:, None]).T @ centred
    covariance += np.eye(COLUMNS) * max(_RIDGE * float(np.trace(covariance)) / COLUMNS, 1e-12)
    weights: Floats = np.linalg.solve(covariance, ((axes * shrunk) @ others / popularity[:, None]).T).T
    return weights / max(float(np.abs(weights).max(initial=0.0)), 1e-300)


def share_of_tastes(tau: float) -> float:
    """Return what a standard deviation of the scores by features counts for; see `GramSettings`."""
    return 0.2 if tau < _NOISY_TAU else 0.1


_NOISY_TAU = 2e-3
"""Noise above which few tastes stand out."""
