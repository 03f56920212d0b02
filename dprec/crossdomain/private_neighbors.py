"""Private neighbour selection and private similarities: PNSA and PNCF of X-Map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.crossdomain.bounds import limited_width, selection_width
from dprec.randomness import laplace_of_uniforms

_TINY = 1e-300


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
    k : int
    sensitivity : ndarray of float64, shape (rows,)
        SS of each row.
    epsilon, failure, lowest : float
        eps', rho and the least similarity, as in `dprec.crossdomain.bounds`.
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
    k : int
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


def noisy_similarities(
    similarities: NDArray[np.float64],
    sensitivity: NDArray[np.float64],
    epsilon: float,
    draws: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Add Laplace noise of scale SS / (eps' / 2) to each similarity (PNCF).

    Parameters
    ----------
    similarities : ndarray of float64, shape (rows, k)
    sensitivity : ndarray of float64, shape (rows,)
    epsilon : float
        eps', for selection and prediction together.
    draws : ndarray of float64, shape (rows, k)
        Uniform on [0, 1).

    Notes
    -----
    Guerraoui et al. [guerraoui2017], section 4.4. The scale protects one similarity: for a user who moves
    all k similarities of a prediction, the loss can be k times as large.
    """
    return similarities + laplace_of_uniforms(draws, (sensitivity / (epsilon / 2))[:, None])
