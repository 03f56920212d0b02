"""Item steps of private alternating least squares: biases and factors from sums with noise."""

import math
from collections.abc import Iterator

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


def semidefinite(matrices: Floats) -> Floats:
    """Return the nearest positive semidefinite matrices A+ to symmetric ones A, shape (matrices, k, k).

    2 A+ = A + A sign(A), where the sign is that of the eigenvalues. It is found by products in single
    precision (Chen and Chow [chen2014]), and a little is added to the diagonal, so that eigenvalues are less
    than 5e-4 of the largest off, and next to none is negative: a caller adds a ridge. Raises LinAlgError for
    numbers that are not finite.
    """
    largest = np.abs(matrices).max(axis=(1, 2), initial=np.finfo(float).tiny)[:, None, None]
    if not np.isfinite(largest).all():
        raise np.linalg.LinAlgError("matrices of numbers that are not finite")
    scaled = (matrices / largest).astype(np.float32)
    squared, on_diagonal = scaled @ scaled, np.arange(matrices.shape[1])
    # No eigenvalue exceeds the fourth root of the sum of their fourth powers.
    bounds = np.sqrt(np.linalg.norm(squared, axis=(1, 2), keepdims=True))
    bounds[bounds == 0] = 1.0
    sign, product = scaled / bounds, np.empty_like(scaled)
    squared /= bounds**2
    for step, (once, thrice) in enumerate(_STEPS):
        if step:
            np.matmul(sign, sign, out=squared)
        squared *= thrice
        squared[:, on_diagonal, on_diagonal] += once
        np.matmul(sign, squared, out=product)
        sign, product = product, sign
    np.matmul(scaled, sign, out=product)
    product += scaled
    product[:, on_diagonal, on_diagonal] += _LEAST * bounds[:, :, 0]
    nearest: Floats = product * (largest / 2)
    return nearest


def _steps_to_signs(least: float, tolerance: float) -> Iterator[tuple[np.float32, np.float32]]:
    """Yield a and b of the steps a x + b x^3 that take numbers from ``least`` to 1 to 1, all but so much.

    Each step takes both ends of the interval in which they lie to the same number, the least of all, and the
    largest of all to 1.
    """
    while 1 - least > tolerance:
        scale = math.sqrt(3 / (1 + least + least**2))
        yield np.float32(1.5 * scale), np.float32(-0.5 * scale**3)
        least *= scale * (3 - (scale * least) ** 2) / 2


_LEAST = np.float32(1e-4)
"""Eigenvalue, of a bound of the largest, from which on the sign of all is found."""

_STEPS = tuple(_steps_to_signs(float(_LEAST), tolerance=1e-6))


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
