"""Fits users and items to reports that hide which items were rated.

Every cell of the catalogue has a symbol, and whether it is rated is integrated out (`cell_likelihood.py`).
Each half sweep is a step of Fisher scoring for the propensities and effects of one side, with the other side
in bins, so that a step costs little more than counting the symbols. Scores are averaged over the posterior of
the propensity, as in a Gaussian variational approximation (Opper and Archambeau [opper2009]): at the means
alone, users and items that noise makes look active would count most, and ratings would seem frequent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dprec.completion.calibrated.embedding import ItemSetEmbedding
from dprec.completion.calibrated.features import catalogue_features
from dprec.completion.calibrated.hidden_sets import CellLikelihood, HiddenReports, hidden_embeddings
from dprec.completion.calibrated.regressions import JointBiases, PropensityBins
from dprec.observations import Observations, RowReports
from dprec.progress import Progress

_USERS, _ITEMS = ((0.0, 0.0), (1.0, 0.25)), ((-3.0, 0.0), (1.5, 0.3))
"""Means and variances of propensities and effects that are expected of users and of items.

A cell is rated with a probability of about 5 %. Both are averaged with what the reports say.
"""

_LONGEST_STEP = 1.0
"""Log odds, or units of the noise on a latent rating, by which one step may move a user or an item."""

_NODES, _MASSES = np.sqrt(3.0) * np.array([-1, 0, 1]), np.array([1, 4, 1]) / 6
"""Gauss-Hermite quadrature over a standard normal distribution."""

_NUMBERS = 1 << 22
"""Numbers that the likelihoods of a batch of users or items may have."""


@dataclass(frozen=True, eq=False)
class HiddenSetFit:
    """What the reports say about users and items."""

    users: JointBiases
    items: JointBiases
    embedding: ItemSetEmbedding
    """The places of the items; users have none. Counts of ratings are expected ones, rounded."""

    @classmethod
    def of(
        cls,
        observations: Observations,
        received: RowReports,
        cuts: NDArray[np.float64],
        dimensions: int,
        regressed: int,
        sweeps: int,
        seed: int,
        progress: Progress,
    ) -> HiddenSetFit:
        """Fit both sides, place the items by what the fit does not explain, and fit again given the places.

        Parameters
        ----------
        cuts : ndarray, shape (levels - 1,)
        dimensions : int
            Of the places; those that do not stand out from the noise are 0.
        regressed : int
            Dimensions, the first, on which propensities and biases of items are regressed.
        sweeps : int
            Before the items are placed; a third as many follow.
        """
        reports = HiddenReports.of(observations, received)
        users = JointBiases.at_centre(np.zeros((reports.reported.size, 0)), *_USERS)
        features = [np.ones((reports.n_items, 1))]
        if observations.catalogue is not None:
            features.append(catalogue_features(observations.catalogue, np.ones(reports.n_items, dtype=int)))
        items = JointBiases.at_centre(np.hstack(features), *_ITEMS)
        again = -(-sweeps // 3)
        for sweep in range(sweeps):
            users, items = _swept(users, items, reports, cuts)
            progress("completing", sweep + 1, sweeps + again)
        embeddings = hidden_embeddings(reports, users, items, cuts, dimensions, seed)
        # What items of a place have in common tells of each of them.
        embedded = int(embeddings[:, :regressed].any(axis=0).sum())
        items = items.with_features(np.hstack([*features, embeddings[:, :embedded]]))
        for sweep in range(again):
            users, items = _swept(users, items, reports, cuts)
            progress("completing", sweeps + sweep + 1, sweeps + again)
        return cls(users, items, _embedding(users, items, embeddings, reports))

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What was learned, for the run's summary."""
        return {
            "expected_ratings": int(self.embedding.item_counts.sum()),
            "user_spread": self.users.spread.tolist(),
            "item_spread": self.items.spread.tolist(),
            "item_coefficients": self.items.coefficients.tolist(),
            "dimensions_above_noise": int(self.embedding.items.any(axis=0).sum()),
        }


def _swept(
    users: JointBiases, items: JointBiases, reports: HiddenReports, cuts: NDArray[np.float64]
) -> tuple[JointBiases, JointBiases]:
    """Solve the items given the users, then the users given the items."""
    bins = PropensityBins.by_rank(users, reports.reported)
    items = _solved(items, bins, reports.of_items(bins.of, bins.sizes.size), reports, cuts)
    bins = PropensityBins.by_rank(items, np.ones(reports.n_items, dtype=np.bool_))
    return _solved(users, bins, reports.of_users(bins.of, bins.sizes.size), reports, cuts), items


def _solved(
    side: JointBiases,
    others: PropensityBins,
    counts: NDArray[np.float64],
    reports: HiddenReports,
    cuts: NDArray[np.float64],
) -> JointBiases:
    """Solve one side given the bins of the other side and the symbols counted by bin."""
    precision = np.empty((len(counts), 2, 2))
    slopes = np.empty((len(counts), 2))
    step = max(1, _NUMBERS // (counts.shape[1] * counts.shape[2] * _NODES.size))
    spreads = np.sqrt(side.covariances[:, 0, 0])[:, None]
    for start in range(0, len(counts), step):
        part = slice(start, start + step)
        at = side.means[part, None, :] + others.means
        around = at[..., 0] + _NODES[:, None, None] * spreads[part]
        channel = reports.unrated, reports.rated
        likelihood = CellLikelihood.at(around, at[..., 1], channel, cuts, others.bias_variance)
        moved = np.stack([likelihood.by_propensity, likelihood.by_latent])
        relative = moved / likelihood.probabilities * _MASSES[:, None, None, None]
        slopes[part] = np.einsum("anibz,ibz->ia", relative, counts[part], optimize=True)
        precision[part] = np.einsum("anibz,cnibz,b->iac", relative, moved, others.sizes, optimize=True)
    # Users who did not report have no symbols, and no information.
    precision *= (counts.sum(axis=(1, 2)) > 0)[:, None, None]
    target = (precision @ side.means[:, :, None])[:, :, 0] + slopes
    solved = side.solved(precision, target)
    change = np.clip(solved.means - side.means, -_LONGEST_STEP, _LONGEST_STEP)
    return solved.moved_to(side.means + change)


def _embedding(
    users: JointBiases, items: JointBiases, embeddings: NDArray[np.float64], reports: HiddenReports
) -> ItemSetEmbedding:
    """Return places with expected counts of ratings, and how far those of the items are more than noise."""
    typical = PropensityBins.by_rank(items, np.ones(len(embeddings), dtype=np.bool_))
    of_user = expit(users.means[:, :1] + typical.means[:, 0]) @ typical.sizes
    typical = PropensityBins.by_rank(users, reports.reported)
    of_item = expit(items.means[:, :1] + typical.means[:, 0]) @ typical.sizes
    signal, noise = items.means[:, 0].var(), items.covariances[:, 0, 0].mean()
    return ItemSetEmbedding(
        np.zeros((of_user.size, embeddings.shape[1])),
        embeddings,
        np.rint(of_user).astype(np.int64),
        np.rint(of_item).astype(np.int64),
        float(np.sqrt(signal / (signal + noise))),
    )
