"""The item step: effects and factors of the items from sums with noise of known size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shrunken_biases(
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    *,
    noise: float,
    residual: float,
    prior: float,
    count_noise: float = 0.0,
) -> NDArray[np.float64]:
    """Return the effects c with the least expected squared error given the counts, shape (items,).

    A sum is s = n c + e, where e holds the residuals of n ratings and the noise of the release. Negative
    counts, which noise makes, are taken as 0.

    Parameters
    ----------
    counts, sums : ndarray of float64, shape (items,)
        Weighted.
    noise : float
        Standard deviation of the noise of a sum.
    residual : float
        Variance of a residual, times the weight of a rating.
    prior : float
        Prior variance of an effect, above 0.
    count_noise : float
        Standard deviation of the noise of a count, which makes a small one worth less.
    """
    n = np.maximum(counts, 0.0)
    below = n**2 + count_noise**2 + (noise**2 + residual * n) / prior
    biases: NDArray[np.float64] = np.divide(n * sums, below, out=np.zeros_like(n), where=below > 0)
    return biases


def shrunken_factors(
    matrices: NDArray[np.float64],
    sides: NDArray[np.float64],
    *,
    noise: float,
    residual: NDArray[np.float64],
    prior: float,
    matrix_noise: float = 0.0,
    largest: float = np.inf,
) -> NDArray[np.float64]:
    """Return the factors with the least expected squared error given the matrices, shape (items, rank).

    The Gram matrix is projected to the positive semidefinite ones: its negative eigenvalues, which noise
    makes, are set to 0 (Chien et al. [chien2021], Algorithm 2). The ridge of that step is here that of
    Wiener's filter, in every direction of the matrix its own, as in `shrunken_biases`: where noise exceeds
    what ratings say, the factors are small.

    Parameters
    ----------
    matrices : ndarray of float64, shape (items, rank, rank)
        Symmetric.
    sides : ndarray of float64, shape (items, rank)
    noise : float
        Standard deviation of the noise of a right-hand side.
    residual : ndarray of float64, shape (items,)
        Variance of a residual, times the weight of a rating.
    prior : float
        Prior variance of a factor, above 0.
    matrix_noise : float
        Standard deviation of the noise of a matrix's entries, which makes small eigenvalues worth less.
    largest : float
        Bound of the eigenvalues.
    """
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, 0.0, largest)
    below = values**2 + matrix_noise**2 + (noise**2 + residual[:, None] * values) / prior
    along = np.einsum("npq,np->nq", vectors, sides)
    gains = np.divide(values, below, out=np.zeros_like(values), where=below > 0)
    factors: NDArray[np.float64] = np.einsum("npq,nq->np", vectors, gains * along)
    return factors


def root_of_moment(moment: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """Return L with L L^T the nearest matrix to a symmetric one whose eigenvalues are ``baseline`` to 1."""
    values, vectors = np.linalg.eigh((moment + moment.T) / 2)
    root: NDArray[np.float64] = vectors * np.sqrt(np.clip(values, floor, 1.0))
    return root


def orthogonal(
    factors: NDArray[np.float64], weights: NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """Return the same space of factors with weighted mean squares of 1 and no correlation.

    Directions with less than ``baseline`` of the largest mean square are enlarged no further than those.
    """
    moment = (factors * weights[:, None]).T @ factors / weights.sum()
    values, vectors = np.linalg.eigh(moment)
    largest = max(float(values[-1]), np.finfo(float).tiny)
    spread: NDArray[np.float64] = factors @ vectors / np.sqrt(np.maximum(values, floor * largest))
    return spread
