"""One side in bins: for the other side, users or items of much the same propensity and effect are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.completion.calibrated.joint_effects import JointEffects

_BY_PROPENSITY, _BY_EFFECT = 12, 3


@dataclass(frozen=True, eq=False)
class PropensityBins:
    """Bins of users or items, and what is typical of each.

    Parameters
    ----------
    of : ndarray of int64, shape (entities,)
        The bin of each user or item.
    sizes : ndarray of int64, shape (bins,)
        Those who count in each bin.
    means : ndarray, shape (bins, 2)
        Log odds to be rated, and mean effect; 0 in an empty bin.
    deviations : ndarray, shape (entities,)
        How far the log odds of each user or item are from those of its bin.
    effect_variance : float
        Mean posterior variance of the effects.
    """

    of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    effect_variance: float

    @classmethod
    def by_rank(cls, side: JointEffects, counting: NDArray[np.bool_]) -> PropensityBins:
        """Return bins of nearly equal sizes, by propensity and then by effect.

        Parameters
        ----------
        side : JointEffects
        counting : ndarray of bool, shape (entities,)
            Who counts; the others are in bins all the same.
        """
        propensity, effect = side.means.T
        entities = propensity.size
        outer = np.empty(entities, dtype=np.int64)
        outer[np.argsort(propensity, kind="stable")] = np.arange(entities) * _BY_PROPENSITY // entities
        order = np.lexsort((effect, outer))
        sizes = np.bincount(outer, minlength=_BY_PROPENSITY)
        first = np.cumsum(sizes) - sizes
        inner = np.empty(entities, dtype=np.int64)
        inner[order] = (np.arange(entities) - first[outer[order]]) * _BY_EFFECT // sizes[outer[order]]
        of, bins = outer * _BY_EFFECT + inner, _BY_PROPENSITY * _BY_EFFECT
        counted = np.bincount(of[counting], minlength=bins)
        # While ratings are rare, their number follows exp(propensity), with mean exp(mean + variance / 2).
        odds = propensity + side.covariances[:, 0, 0] / 2
        sums = [
            np.bincount(of[counting], weights=column[counting], minlength=bins) for column in (odds, effect)
        ]
        means = np.stack(sums, axis=1) / np.maximum(counted, 1)[:, None]
        variance = float(side.covariances[counting, 1, 1].mean()) if counting.any() else 0.0
        return cls(of, counted, means, odds - means[of, 0], variance)
