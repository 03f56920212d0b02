"""Half steps of variational least squares: sums over cells, and the solution of the normal equations.

An entity (a user, or an item) has a bias b and factors f. Its moments are those of z = (1, b, f): the upper
triangle of E[z z^T], row by row, which begins with E[z]. Over cells with weights w and ratings r, the other
side's problems sum w E[z z^T], and apart from it w r E[z] (``target_sums``).
"""

from __future__ import annotations

import numpy as np

from dprec.arrays import Float32s, Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled

_LANES = 64
"""Problems that are solved side by side: the processor takes the same step of several at once."""


@compiled
def write_moments(moments: Written[Table[Floats]], means: Table[Floats], covariances: Table[Floats]) -> None:
    """Write the moments of every entity."""
    width = means.shape[1]
    for row in range(means.shape[0]):
        moments[row, 0] = 1.0
        place = 0
        for i in range(width):
            moments[row, 1 + i] = means[row, i]
            for j in range(i, width):
                product = means[row, i] * means[row, j]
                moments[row, 1 + width + place] = product + covariances[row, place]
                place += 1


@compiled
def gather(
    sums: Written[Table[Floats]],
    target_sums: Written[Table[Floats]],
    first: int,
    indptr: Ints,
    others: Int32s,
    weights: Float32s,
    targets: Float32s,
    moments: Table[Float32s],
) -> None:
    """Sum the other side's moments over the cells of some rows, from the first; ``targets`` are w r."""
    for row in range(sums.shape[0]):
        sums[row, :] = 0.0
        target_sums[row, :] = 0.0
        start, end = indptr[first + row], indptr[first + row + 1]
        fours = end - (end - start) % 4
        for cell in range(start, fours, 4):
            a, b, c, d = others[cell], others[cell + 1], others[cell + 2], others[cell + 3]
            p, q, r, s = weights[cell], weights[cell + 1], weights[cell + 2], weights[cell + 3]
            for column in range(sums.shape[1]):
                sums[row, column] += (p * moments[a, column] + q * moments[b, column]) + (
                    r * moments[c, column] + s * moments[d, column]
                )
            p, q, r, s = targets[cell], targets[cell + 1], targets[cell + 2], targets[cell + 3]
            for column in range(target_sums.shape[1]):
                target_sums[row, column] += (p * moments[a, column] + q * moments[b, column]) + (
                    r * moments[c, column] + s * moments[d, column]
                )
        for cell in range(fours, end):
            for column in range(sums.shape[1]):
                sums[row, column] += weights[cell] * moments[others[cell], column]
            for column in range(target_sums.shape[1]):
                target_sums[row, column] += targets[cell] * moments[others[cell], column]


@compiled
def scatter(
    sums: Written[Table[Floats]],
    target_sums: Written[Table[Floats]],
    first: int,
    indptr: Ints,
    others: Int32s,
    weights: Float32s,
    targets: Float32s,
    moments: Table[Floats],
) -> None:
    """Add the moments of some rows, from the first, to the other side's sums at each of their cells."""
    for row in range(moments.shape[0]):
        for cell in range(indptr[first + row], indptr[first + row + 1]):
            other, weight, target = others[cell], np.float64(weights[cell]), np.float64(targets[cell])
            for column in range(sums.shape[1]):
                sums[other, column] += weight * moments[row, column]
            for column in range(target_sums.shape[1]):
                target_sums[other, column] += target * moments[row, column]


@compiled
def _subtract_product(
    sums: Written[Table[Floats]],
    place: int,
    left: Table[Floats],
    start: int,
    right: Table[Floats],
    begin: int,
    count: int,
) -> None:
    """Subtract, in every lane, the inner product of consecutive entries of two triangles."""
    fours = count - count % 4
    for k in range(0, fours, 4):
        i, j = start + k, begin + k
        for lane in range(_LANES):
            sums[place, lane] -= (left[i, lane] * right[j, lane] + left[i + 1, lane] * right[j + 1, lane]) + (
                left[i + 2, lane] * right[j + 2, lane] + left[i + 3, lane] * right[j + 3, lane]
            )
    for k in range(fours, count):
        for lane in range(_LANES):
            sums[place, lane] -= left[start + k, lane] * right[begin + k, lane]


@compiled
def _factorise(factor: Written[Table[Floats]], pivots: Floats) -> None:
    """Turn lower triangles, row by row, into their Cholesky factors, with the reciprocals of the diagonal."""
    for i in range(pivots.size):
        row = i * (i + 1) // 2
        for j in range(i):
            other_row = j * (j + 1) // 2
            _subtract_product(factor, row + j, factor, row, factor, other_row, j)
            for lane in range(_LANES):
                factor[row + j, lane] *= factor[other_row + j, lane]
        _subtract_product(factor, row + i, factor, row, factor, row, i)
        for lane in range(_LANES):
            pivot = pivots[i] if factor[row + i, lane] < pivots[i] else factor[row + i, lane]
            factor[row + i, lane] = 1.0 / np.sqrt(pivot)


@compiled
def _invert(inverse: Written[Table[Floats]], factor: Written[Table[Floats]], width: int) -> None:
    """Write the transposed inverses of Cholesky factors, then less the whole inverses over the factors."""
    for j in range(width):
        row = j * width - j * (j + 1) // 2
        for i in range(j, width):
            other_row = i * (i + 1) // 2
            for lane in range(_LANES):
                inverse[row + i, lane] = 1.0 if i == j else 0.0
            _subtract_product(inverse, row + i, factor, other_row + j, inverse, row + j, i - j)
            for lane in range(_LANES):
                inverse[row + i, lane] *= factor[other_row + i, lane]
    for i in range(width):
        row = i * width - i * (i + 1) // 2
        for j in range(i, width):
            other_row = j * width - j * (j + 1) // 2
            for lane in range(_LANES):
                factor[row + j, lane] = 0.0
            _subtract_product(factor, row + j, inverse, row + j, inverse, other_row + j, width - j)


@compiled
def _write_equations(
    factor: Written[Table[Floats]],
    target: Written[Table[Floats]],
    sums: Table[Floats],
    target_sums: Table[Floats],
    begin: int,
    precision: Floats,
    noise: float,
) -> None:
    """Write the normal equations of some rows into the lanes; lanes beyond the last row repeat it."""
    width, last, share = target.shape[0], sums.shape[0] - 1, 1.0 / noise
    for j in range(width):
        for i in range(j, width):
            place = j * width - j * (j + 1) // 2 + i
            # Of the products of (1, factors), those with 1 stand first, the others after those with b.
            column = 1 + width + place if j > 0 else (1 + i if i > 0 else 0)
            for lane in range(_LANES):
                row = min(begin + lane, last)
                factor[i * (i + 1) // 2 + j, lane] = sums[row, column] * share + precision[place]
        with_rating, with_bias = (1 + j, 1 + width + j) if j > 0 else (0, 1)
        for lane in range(_LANES):
            row = min(begin + lane, last)
            target[j, lane] = (target_sums[row, with_rating] - sums[row, with_bias]) * share


@compiled
def solve(
    means: Written[Table[Floats]],
    covariances: Written[Table[Floats]],
    sums: Table[Floats],
    target_sums: Table[Floats],
    precision: Floats,
    pivots: Floats,
    noise: float,
) -> float:
    """Solve the normal equations of every row from its sums, by Cholesky factors.

    ``precision`` is that of the prior, packed, and ``pivots`` its own: what is added to it only raises them,
    but for rounding. Returns the sum over rows of E[c^2 - 2 r c], where c is the other side's bias, less the
    product of mean and target.
    """
    rows, width = means.shape
    factor, inverse = np.empty((precision.size, _LANES)), np.empty((precision.size, _LANES))
    target, mean = np.empty((width, _LANES)), np.empty((width, _LANES))
    total = 0.0
    for begin in range(0, rows, _LANES):
        end = min(begin + _LANES, rows)
        _write_equations(factor, target, sums, target_sums, begin, precision, noise)
        _factorise(factor, pivots)
        _invert(inverse, factor, width)
        mean[:] = 0.0
        for i in range(width):
            for j in range(i, width):
                place = i * width - i * (i + 1) // 2 + j
                for lane in range(_LANES):
                    mean[i, lane] -= factor[place, lane] * target[j, lane]
                if i < j:
                    for lane in range(_LANES):
                        mean[j, lane] -= factor[place, lane] * target[i, lane]
                for row in range(begin, end):
                    covariances[row, place] = -factor[place, row - begin]
        for row in range(begin, end):
            total += sums[row, 1 + width] - 2.0 * target_sums[row, 1]
            for i in range(width):
                means[row, i] = mean[i, row - begin]
                total -= noise * means[row, i] * target[i, row - begin]
    return total
