"""Item steps of private alternating least squares: biases and factors from sums with noise."""

import math
from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Floats
from dprec.completion.factors import FloatT


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


def semidefinite(matrices: NDArray[FloatT], error: float = 0.0) -> NDArray[FloatT]:
    """Return the nearest positive semidefinite matrices A+ to symmetric ones A, shape (matrices, k, k).

    2 A+ = A + A sign(A), where the sign is that of the eigenvalues. It is found by products in single
    precision (Chen and Chow [chen2014]), and a little is added to the diagonal, so that eigenvalues are off
    by less than ``error``, or 3e-4 of the largest where that is more, and next to none is negative: a caller
    adds a ridge, of which the error is a small part. Raises LinAlgError for numbers that are not finite.
    """
    size = matrices.shape[1]
    largest = np.maximum(np.abs(matrices).max(axis=(1, 2), keepdims=True), np.finfo(matrices.dtype).tiny)
    if not np.isfinite(largest).all():
        raise np.linalg.LinAlgError("matrices of numbers that are not finite")
    scaled = (matrices / largest).astype(np.float32, copy=False)
    squared, product = scaled @ scaled, np.empty_like(scaled)
    # No eigenvalue exceeds the fourth root of the sum of their fourth powers.
    bounds = np.sqrt(np.linalg.norm(squared, axis=(1, 2), keepdims=True))
    bounds[bounds == 0] = 1.0
    sign = scaled / bounds
    squared /= bounds**2
    # A matrix takes as many steps as it needs, whatever others are beside it.
    levels = np.searchsorted(_LEAST[1:], error / (largest * bounds).ravel(), side="right")
    for step, own in enumerate(_STEPS[:, levels]):
        once, thrice = own.T[:, :, None]
        if not thrice.any():
            break
        if step:
            np.matmul(sign, sign, out=squared)
        squared *= thrice[:, :, None]
        squared.reshape(-1, size**2)[:, :: size + 1] += once
        np.matmul(sign, squared, out=product)
        sign, product = product, sign
    np.matmul(scaled, sign, out=product)
    product += scaled
    product.reshape(-1, size**2)[:, :: size + 1] += _LEAST[levels][:, None] * bounds[:, :, 0]
    return product * (largest / 2)


def _steps_to_signs(least: float) -> Iterator[tuple[float, float]]:
    """Yield a and b of the steps a x + b x^3 that take numbers from ``least`` to 1 to nearly 1.

    Each step takes both ends of the interval in which they lie to the same number, the least of all, and the
    largest of all to 1. What is left to 1 counts for less than ``least`` does.
    """
    smallest = least
    while 1 - smallest > least / 10:
        scale = math.sqrt(3 / (1 + smallest + smallest**2))
        yield 1.5 * scale, -0.5 * scale**3
        smallest *= scale * (3 - (scale * smallest) ** 2) / 2


_LEAST = np.array([1e-4 * 2**power for power in range(10)], dtype=np.float32)
"""Eigenvalues, of a bound of the largest, from which on the sign of all is found."""

_STEPS = np.array(
    [*zip_longest(*map(_steps_to_signs, _LEAST.tolist()), fillvalue=(1.0, 0.0))], dtype=np.float32
)
"""The steps for each of them, and then such as change nothing; shape (steps, least, 2)."""


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
