"""Places of items from noisy reports of what is rated: what propensities alone do not explain.

A user's scores of the propensities, each divided by the root of its information, are a matrix of noise with
variance 1 where users and items are independent given their propensities. Tastes stand out from that noise as
singular values above the largest one that noise has. Below it nothing is known, and places are 0.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion.calibrated.embedding import expected_cosines, noise_edge
from dprec.completion.calibrated.hidden_sets import CellLikelihood, HiddenReports
from dprec.completion.calibrated.regressions import JointBiases, PropensityBins
from dprec.completion.spectral import SparsePlusLowRank


def hidden_embeddings(
    reports: HiddenReports,
    users: JointBiases,
    items: JointBiases,
    cuts: NDArray[np.float64],
    dimensions: int,
    seed: int,
) -> NDArray[np.float64]:
    """Place items that the same people rate next to each other, shape (items, dimensions).

    Rows and columns are weighted by the fourth root of their mean information, so that users and items of
    whom little is known add less noise. Over the ratings, a dimension has mean 0, and its standard
    deviation is the cosine of the angle to be expected between the singular vector and that without noise.

    Parameters
    ----------
    users, items : JointEffects
        As fitted.
    cuts : ndarray, shape (levels - 1,)
    seed : int
        Seed of the initial Lanczos vector of large matrices.
    """
    sizes = (reports.reported.size, reports.n_items)
    kept = max(0, min(dimensions, min(sizes) - 1))
    matrix, weights = _weighted_scores(reports, users, items, cuts)
    edge = noise_edge(*weights)
    if kept == 0 or edge == 0:
        return np.zeros((sizes[1], dimensions))
    leading = matrix.leading(kept, seed)
    shares = np.exp(items.means[:, 0])
    axes = leading.right - (shares / shares.sum()) @ leading.right
    deviations = np.sqrt((shares / shares.sum()) @ axes**2)
    scaled = axes / np.maximum(deviations, np.finfo(float).tiny) * expected_cosines(leading.values, edge)
    return np.pad(scaled, ((0, 0), (0, dimensions - kept)))


def _weighted_scores(
    reports: HiddenReports, users: JointBiases, items: JointBiases, cuts: NDArray[np.float64]
) -> tuple[SparsePlusLowRank, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the weighted matrix of scores, and the weights of its rows and columns.

    Users and items are in bins, so that the cells without a symbol are of low rank. How far each is from its
    bin moves its scores by as much as their information, to first order.
    """
    of_user = PropensityBins.by_rank(users, reports.reported)
    of_item = PropensityBins.by_rank(items, np.ones(reports.n_items, dtype=np.bool_))
    at = of_user.means[:, None, :] + of_item.means
    likelihood = CellLikelihood.at(at[..., 0], at[..., 1], (reports.unrated, reports.rated), cuts)
    scores = likelihood.by_propensity / likelihood.probabilities
    information = (scores * likelihood.by_propensity).sum(axis=2)
    roots = np.sqrt(information)
    scores /= np.maximum(roots, np.sqrt(np.finfo(float).tiny))[..., None]
    row_weights = _root_of_share(information @ of_item.sizes)[of_user.of] * reports.reported
    column_weights = _root_of_share(of_user.sizes @ information)[of_item.of]
    cells = of_user.of[reports.users], of_item.of[reports.items]
    weights = row_weights[reports.users] * column_weights[reports.items]
    sent = (scores[*cells, reports.symbols] - scores[*cells, 0]) * weights
    shape = (row_weights.size, column_weights.size)
    sparse = sp.csr_array((sent, (reports.users, reports.items)), shape=shape)
    by_user = scores[..., 0][of_user.of] - roots[of_user.of] * of_user.deviations[:, None]
    left = np.hstack([by_user, roots[of_user.of]]) * row_weights[:, None]
    members = np.eye(of_item.sizes.size)[of_item.of]
    right = np.hstack([members, -members * of_item.deviations[:, None]]) * column_weights[:, None]
    return SparsePlusLowRank(sparse, left, right), (row_weights, column_weights)


def _root_of_share(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fourth root of each share of the information; 1 where there is none at all."""
    shares = information / max(float(information.mean()), np.finfo(float).tiny)
    weights: NDArray[np.float64] = shares**0.25 if information.any() else np.ones_like(information)
    return weights
