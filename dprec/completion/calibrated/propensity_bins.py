"""One side in bins: for the other side, users or items of much the same propensity and effect are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.completion.calibrated.regressions import JointBiases

_BY_PROPENSITY, _BY_BIAS = 12, 3


@dataclass(frozen=True, eq=False)
class PropensityBins:
    """Bins of users or items, and what is typical of each."""

    of: NDArray[np.int64]
    """The bin of each user or item; shape (entities,)."""
    sizes: NDArray[np.int64]
    """Those who count in each bin; shape (bins,)."""
    means: NDArray[np.float64]
    """Log odds to be rated, and mean effect; 0 in an empty bin; shape (bins, 2)."""
    deviations: NDArray[np.float64]
    """How far the log odds of each user or item are from those of its bin; shape (entities,)."""
    bias_variance: float
    """Mean posterior variance of the effects."""

    @classmethod
    def by_rank(cls, side: JointBiases, counting: NDArray[np.bool_]) -> PropensityBins:
        """Return bins of nearly equal sizes, by propensity and then by effect.

        Parameters
        ----------
        counting : ndarray of bool, shape (entities,)
            Who counts; the others are in bins all the same.
        """
        propensity, bias = side.means.T
        entities = propensity.size
        outer = np.empty(entities, dtype=np.int64)
        outer[np.argsort(propensity, kind="stable")] = np.arange(entities) * _BY_PROPENSITY // entities
        order = np.lexsort((bias, outer))
        sizes = np.bincount(outer, minlength=_BY_PROPENSITY)
        first = np.cumsum(sizes) - sizes
        inner = np.empty(entities, dtype=np.int64)
        inner[order] = (np.arange(entities) - first[outer[order]]) * _BY_BIAS // sizes[outer[order]]
        of, bins = outer * _BY_BIAS + inner, _BY_PROPENSITY * _BY_BIAS
        counted = np.bincount(of[counting], minlength=bins)
        # While ratings are rare, their number follows exp(propensity), with mean exp(mean + variance / 2).
        odds = propensity + side.covariances[:, 0, 0] / 2
        sums = [
            np.bincount(of[counting], weights=column[counting], minlength=bins) for column in (odds, bias)
        ]
        means = np.stack(sums, axis=1) / np.maximum(counted, 1)[:, None]
        variance = float(side.covariances[counting, 1, 1].mean()) if counting.any() else 0.0
        return cls(of, counted, means, odds - means[of, 0], variance)
