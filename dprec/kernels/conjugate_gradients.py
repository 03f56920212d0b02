"""Steps of conjugate gradients towards the factors of rows, each alone."""

from __future__ import annotations

import numpy as np

from dprec.arrays import Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled

_DONE = 1e-28
"""Part of the square of what was left at first that is rounding."""


@compiled
def _apply(
    image: Written[Floats],
    vector: Floats,
    cells: Int32s,
    factors: Table[Floats],
    diagonal: Floats,
    target: float,
    parts: Written[Floats],
) -> None:
    """Write d v + sum of h (h . v - target), over the factors h of the cells.

    An inner product is added up in ``parts`` of four terms, which has room for them: a compiler takes these
    side by side, and may not change the order of a sum.
    """
    rank = vector.size
    a, b, c = rank // 4, 2 * (rank // 4), 3 * (rank // 4)
    for k in range(rank):
        image[k] = diagonal[k] * vector[k]
    for cell in range(cells.size):
        row = cells[cell]
        for k in range(a):
            parts[k] = (factors[row, k] * vector[k] + factors[row, a + k] * vector[a + k]) + (
                factors[row, b + k] * vector[b + k] + factors[row, c + k] * vector[c + k]
            )
        even, odd = -target, 0.0
        for k in range(0, a - 1, 2):
            even += parts[k]
            odd += parts[k + 1]
        if a % 2:
            even += parts[a - 1]
        for k in range(4 * a, rank):
            odd += factors[row, k] * vector[k]
        weight = even + odd
        for k in range(rank):
            image[k] += weight * factors[row, k]


@compiled
def approach(
    solved: Written[Table[Floats]],
    indptr: Ints,
    columns: Int32s,
    factors: Table[Floats],
    everywhere: Floats,
    ridges: Floats,
    steps: int,
) -> None:
    """Take steps from what ``solved`` holds to the solution x of each row's system; 0 of a row without cells.

    (D + sum of h h^T) x = sum of h, over the factors h of the row's cells, where D is the diagonal
    ``everywhere`` + ridge, and its inverse the preconditioner.
    """
    rank = factors.shape[1]
    residual, direction, image, parts = np.empty(rank), np.empty(rank), np.empty(rank), np.empty(rank)
    diagonal = np.empty(rank)
    for row in range(solved.shape[0]):
        cells = columns[indptr[row] : indptr[row + 1]]
        x = solved[row]
        if cells.size == 0:
            x[:] = 0.0
            continue
        for k in range(rank):
            diagonal[k] = everywhere[k] + ridges[row]
        _apply(residual, x, cells, factors, diagonal, 1.0, parts)
        square = 0.0
        for k in range(rank):
            residual[k] = -residual[k]
            direction[k] = residual[k] / diagonal[k]
            square += residual[k] * direction[k]
        first = square
        for _ in range(steps):
            if square <= _DONE * first:
                break
            _apply(image, direction, cells, factors, diagonal, 0.0, parts)
            curvature = 0.0
            for k in range(rank):
                curvature += direction[k] * image[k]
            length, before, square = square / curvature, square, 0.0
            for k in range(rank):
                x[k] += length * direction[k]
                residual[k] -= length * image[k]
                square += residual[k] * (residual[k] / diagonal[k])
            for k in range(rank):
                direction[k] = residual[k] / diagonal[k] + square / before * direction[k]
