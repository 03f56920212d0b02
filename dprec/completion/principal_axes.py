"""Principal axes of a low-rank model, along which the factors of both sides are uncorrelated.

Factors p_u and q_i predict the same as A^T p_u and A^-1 q_i, for every invertible A. One choice of A
makes the prior covariances of both sides diagonal, and equal. Along these axes, a factor that the data do not
support is one axis of small variance, rather than a part of every factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.completion.variational import Side


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The axes of two sides, by descending variance.

    Attributes
    ----------
    of_users, of_items : ndarray of float64, shape (rank, rank)
        Turn the factors of a side into those along the axes, one row per axis.
    variances : ndarray of float64, shape (rank,)
        Prior variance of what each axis adds to a rating, in squared rating units.
    """

    of_users: NDArray[np.float64]
    of_items: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def between(cls, users: Side, items: Side) -> PrincipalAxes:
        """Find the axes of the priors of both sides."""
        root = np.linalg.cholesky(users.prior[1:, 1:])
        variances, directions = np.linalg.eigh(root.T @ items.prior[1:, 1:] @ root)
        variances, directions = variances[::-1], directions[:, ::-1]
        scales = variances**0.25
        of_users = scales[:, None] * np.linalg.solve(root.T, directions).T
        of_items = (root @ directions / scales).T
        return cls(of_users, of_items, variances)

    def explained_variances(self, users: Side, items: Side) -> NDArray[np.float64]:
        """Return the variance of what each axis adds to the predictions of all cells, shape (rank,).

        In squared rating units, from the posterior means alone.
        """
        along = users.means[:, 1:] @ self.of_users.T, items.means[:, 1:] @ self.of_items.T
        variances: NDArray[np.float64] = np.mean(along[0] ** 2, axis=0) * np.mean(along[1] ** 2, axis=0)
        return variances

    def kept(self, kept: NDArray[np.bool_], users: Side, items: Side) -> tuple[Side, Side]:
        """Return both sides along some of the axes, as if the factors along the others were known to be 0."""
        return users.transformed(self.of_users[kept]), items.transformed(self.of_items[kept])
