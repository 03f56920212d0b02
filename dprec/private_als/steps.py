"""Item steps of private alternating least squares: biases and factors from sums with noise."""

import numpy as np

from dprec.arrays import Floats


def shrunken_biases(
    counts: Floats, sums: Floats, *, noise: float, residual: float, prior: float, count_noise: float = 0.0
) -> Floats:
    """Return the biases c with the least expected squared error given the counts, shape (items,).

    A sum is s = n c + e, where e holds the residuals of n ratings and the noise of the release. Negative
    counts, which noise makes, are taken as 0.
    """
    n = np.maximum(counts, 0.0)
    below = n**2 + count_noise**2 + (noise**2 + residual * n) / prior
    return np.divide(n * sums, below, out=np.zeros_like(n), where=below > 0)


def shrunken_factors(
    matrices: Floats,
    sides: Floats,
    *,
    noise: float,
    residual: Floats,
    prior: float,
    matrix_noise: float = 0.0,
    largest: float = np.inf,
) -> Floats:
    """Return the factors with the least expected squared error given the matrices, shape (items, rank).

    The Gram matrix is projected to the positive semidefinite ones: its negative eigenvalues, which noise
    makes, are set to 0 (Chien et al. [chien2021], Algorithm 2). The ridge of that step is here that of
    Wiener's filter, in every direction of the matrix its own, as in `shrunken_biases`: where noise exceeds
    what ratings say, the factors are small.
    """
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, 0.0, largest)
    below = values**2 + matrix_noise**2 + (noise**2 + residual[:, None] * values) / prior
    along = np.einsum("npq,np->nq", vectors, sides)
    gains = np.divide(values, below, out=np.zeros_like(values), where=below > 0)
    return np.einsum("npq,nq->np", vectors, gains * along)


def root_of_moment(moment: Floats, least: float) -> Floats:
    """Return L with L L^T the nearest matrix to a symmetric one whose eigenvalues are ``least`` to 1."""
    values, vectors = np.linalg.eigh((moment + moment.T) / 2)
    return vectors * np.sqrt(np.clip(values, least, 1.0))


def orthogonal(factors: Floats, weights: Floats, least: float) -> Floats:
    """Return the same space of factors with weighted mean squares of 1 and no correlation.

    Directions with less than ``least`` of the largest mean square are enlarged no further than those.
    """
    moment = (factors * weights[:, None]).T @ factors / weights.sum()
    values, vectors = np.linalg.eigh(moment)
    largest = max(float(values[-1]), np.finfo(float).tiny)
    return factors @ vectors / np.sqrt(np.maximum(values, least * largest))
