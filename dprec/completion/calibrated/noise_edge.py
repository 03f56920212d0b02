"""What noise does to singular values and vectors: how large the ones, how far turned the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MARGIN = 1.02
"""Factor by which a singular value has to exceed the largest that is expected of noise."""

_POINTS = 500


def noise_edge(row_weights: NDArray[np.float64], column_weights: NDArray[np.float64]) -> float:
    """Return the largest singular value to be expected of independent noise, in the limit of large matrices.

    With entries a_i b_j g_ij and g_ij of variance 1, squared singular values beyond the noise are
    t / (p q), where sum_i a_i^2 p / (1 - a_i^2 p) = t = sum_j b_j^2 q / (1 - b_j^2 q); the edge is the least
    of them over t (Paul and Silverstein [paul2009]).

    Parameters
    ----------
    row_weights, column_weights : ndarray, shapes (rows,) and (columns,)
        The factors a and b.
    """
    curves = []
    for weights in (row_weights, column_weights):
        squares = weights[weights > 0] ** 2
        if squares.size == 0:
            return 0.0
        points = -np.expm1(np.linspace(-14, -1e-6, _POINTS)[:, None]) / squares.max()
        curves.append((points[::-1, 0], (points * squares / (1 - points * squares)).sum(axis=1)[::-1]))
    (rows, of_rows), (columns, of_columns) = curves
    ends = max(of_rows[0], of_columns[0]), min(of_rows[-1], of_columns[-1])
    at = np.geomspace(*ends, _POINTS)
    squared = at / (np.interp(at, of_rows, rows) * np.interp(at, of_columns, columns))
    return float(np.sqrt(squared.min()))


def expected_cosines(values: NDArray[np.float64], edge: float) -> NDArray[np.float64]:
    """Return the expected cosines between singular vectors and those without noise, 0 at the edge and below.

    A value s = edge (x + 1 / x) / 2 comes from a signal x times as strong as the least that can be seen, and
    its vector has cosine^2 = 1 - 1 / x^2 (Benaych-Georges and Nadakuditi [benaych2012], section 3.1, square
    matrices). The same holds of eigenvalues above the noise of a symmetric matrix.

    Parameters
    ----------
    values : ndarray, shape (values,)
    edge : float
        See `noise_edge`; above 0. Values have to exceed it by 2 %.
    """
    ratios = np.maximum(values / (_MARGIN * edge), 1.0)
    strengths = ratios + np.sqrt(ratios**2 - 1)
    cosines: NDArray[np.float64] = np.sqrt(1 - 1 / strengths**2)
    return cosines
