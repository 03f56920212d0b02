"""Private neighbour selection and private similarities: PNSA and PNCF of X-Map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.crossdomain.recommender import limited_width, selection_width
from dprec.randomness import NoiseGrid

_TINY = 1e-300
_LEAST_SENSITIVITY = 2.0**-16
"""Smaller sensitivities count as this one, so that a similarity is a number of steps below 2**52."""


def truncated_similarities(
    similarities: NDArray[np.float64],
    k: int,
    sensitivity: NDArray[np.float64],
    epsilon: float,
    failure: float,
    lowest: float,
) -> NDArray[np.float64]:
    """Return Sim^ = max(Sim, Sim_k - w), shape (rows, candidates).

    Parameters
    ----------
    similarities : ndarray of float64, shape (rows, candidates)
        More candidates than k.
    sensitivity : ndarray of float64, shape (rows,)
        SS of each row.
    epsilon, failure, lowest : float
        eps', rho and the least similarity, as in `dprec.crossdomain.recommender`.
    """
    candidates = similarities.shape[1]
    nearest = -np.partition(-similarities, k - 1, axis=1)[:, k - 1]
    widths = np.array(
        [selection_width(k, candidates, value, epsilon, failure) for value in sensitivity.tolist()]
    )
    floor = nearest - limited_width(widths, nearest, lowest)
    return np.maximum(similarities, floor[:, None])


def select_neighbors(
    similarities: NDArray[np.float64],
    k: int,
    sensitivity: NDArray[np.float64],
    epsilon: float,
    failure: float,
    lowest: float,
    draws: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Draw k neighbours per row without replacement (PNSA), shape (rows, min(k, candidates)).

    Each draw takes a remaining candidate with probability proportional to exp(eps' Sim^ / (4 k SS)):
    eps' / (2 k) for a draw, eps' / 2 for all k (Guerraoui et al. [guerraoui2017], section 4.4 and
    Theorem 3). If there are no more candidates than k, all are taken and nothing is drawn.

    Parameters
    ----------
    similarities : ndarray of float64, shape (rows, candidates)
    sensitivity : ndarray of float64, shape (rows,)
        SS of each row; 0 selects the nearest outright.
    epsilon : float
        eps', for selection and prediction together.
    failure, lowest : float
        As for `truncated_similarities`.
    draws : ndarray of float64, shape (rows, k)
        Uniform on [0, 1).
    """
    rows, candidates = similarities.shape
    if candidates <= k:
        return np.tile(np.arange(candidates), (rows, 1))
    usable = truncated_similarities(similarities, k, sensitivity, epsilon, failure, lowest)
    # A row that no user can move is not truncated: a width of 0 would tie all others with the k-th.
    usable = np.where(sensitivity[:, None] > 0, usable, similarities)
    coefficients = epsilon / (4 * k * np.maximum(sensitivity, _TINY))
    exponents = usable * coefficients[:, None]
    chosen = np.empty((rows, k), dtype=np.int64)
    everyone = np.arange(rows)
    for place in range(k):
        # Relative to the largest one left, so that no weight that matters underflows.
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        sums = np.cumsum(weights, axis=1)
        passed = (sums <= (draws[:, place] * sums[:, -1])[:, None]).sum(axis=1)
        taken = np.minimum(passed, candidates - 1)
        # Rounding at the very end may point at a candidate already taken; the likeliest left replaces it.
        gone = np.isneginf(exponents[everyone, taken])
        taken[gone] = weights[gone].argmax(axis=1)
        chosen[:, place] = taken
        exponents[everyone, taken] = -np.inf
    return chosen


@dataclass(frozen=True)
class SimilarityNoise:
    """Noise of scale SS / (eps' / 2) on every similarity of a prediction (PNCF), in integers.

    Guerraoui et al. [guerraoui2017], section 4.4. The scale protects one similarity: for a user who moves all
    k similarities of a prediction, the loss can be k times as large.
    """

    unit: NoiseGrid
    """The grid of an item with a sensitivity of 1; the steps of others are proportional to theirs."""

    @classmethod
    def of(cls, epsilon: float) -> SimilarityNoise:
        """Return the noise at eps', for selection and prediction together."""
        return cls(NoiseGrid.of(1.0, epsilon / 2, 1))

    def added(
        self,
        similarities: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
        noise: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Round similarities to their items' grids and add noise, shape (rows, k).

        Parameters
        ----------
        similarities : ndarray of float64, shape (rows, k)
            From -1 to 1.
        sensitivity : ndarray of float64, shape (rows,)
            SS of each row; what no user can move, 0, is left as it is.
        noise : ndarray of int64, shape (rows, k)
            In steps, from `unit`.
        """
        # Rounded upwards, so that SS is never more steps than the noise covers.
        steps = np.nextafter(np.maximum(sensitivity, _LEAST_SENSITIVITY) * self.unit.step, np.inf)[:, None]
        whole = np.rint(similarities / steps).astype(np.int64) + noise
        return np.where(sensitivity[:, None] > 0, whole * steps, similarities)
