"""Noisy counts as observations of latent ratings.

A row counts how many of some cells' ratings reach a level. Given the latent ratings it is a sum of
independent coins, nearly normal, plus noise that is nearly Laplace's: a mixture of normals of several
variances (Andrews and Mallows [andrews1974]). A step of EM over that mixture replaces the count by an
observation with normal noise. Unlike Fisher scoring, it never overshoots the peak of Laplace's density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dprec.observations import NoisyCounts

_LEAST_VARIANCE = 0.01
"""Variance that a count has at least beside its noise, so that its density is smooth."""

_LEAST_RESIDUAL = 1e-4
"""Residuals, in scales of the noise, that are not told apart from 0."""


@dataclass(frozen=True, eq=False)
class CountSlopes:
    """What noisy counts say at some latent ratings."""

    slopes: NDArray[np.float64]
    """By how much an expected count grows with the latent rating of each of its cells;
    shape (counted cells,).
    """
    scores: NDArray[np.float64]
    information: NDArray[np.float64]
    """The derivative of each count's log likelihood by its expectation, and the precision of the normal
    observation that replaces it; shape (rows,).
    """


@dataclass(frozen=True, eq=False)
class CountLikelihood:
    """The likelihood of noisy counts."""

    counts: NoisyCounts
    cut: float
    """The latent rating at which the lowest counted level begins."""

    @classmethod
    def of(cls, counts: NoisyCounts, cuts: NDArray[np.float64]) -> Self:
        """Return the likelihood, given where the latent rating changes level, shape (levels - 1,)."""
        return cls(counts, float(cuts[counts.least_level - 2]))

    def at(self, latent: NDArray[np.float64]) -> CountSlopes:
        """Return what the counts say at the latent ratings of all observed cells, shape (cells,)."""
        offsets = latent[self.counts.cells] - self.cut
        shares = ndtr(offsets)
        slopes = np.exp(-(offsets**2) / 2) / np.sqrt(2 * np.pi)
        expected, variances = self.sums(shares), np.maximum(self.sums(shares * (1 - shares)), _LEAST_VARIANCE)
        epsilons = self.counts.epsilons
        residuals = (self.counts.values - expected) * epsilons
        residuals = np.where(np.abs(residuals) < _LEAST_RESIDUAL, _LEAST_RESIDUAL, residuals)
        scores = _scores(residuals, variances * epsilons**2)
        return CountSlopes(slopes, epsilons * scores, epsilons**2 * scores / residuals)

    def sums(self, of_cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up numbers of the counted cells by row, shape (rows,)."""
        rows = self.counts.sizes.size
        return np.bincount(self.counts.row_of, weights=of_cells, minlength=rows).astype(np.float64)

    def _row_sums(self, of_cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up vectors of the counted cells by row, shape (rows, dimensions)."""
        sums = [self.sums(column) for column in of_cells.T]
        return np.stack(sums, axis=1) if sums else np.zeros((self.counts.sizes.size, 0))

    def about_users(
        self, linearised: CountSlopes, designs: NDArray[np.float64], vectors: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the counts add to the normal equations of users' vectors.

        Parameters
        ----------
        designs : ndarray, shape (counted cells, dimensions)
            By what a user's vector is multiplied in the latent rating of each counted cell.
        vectors : ndarray, shape (users, dimensions)

        Returns
        -------
        precision : ndarray, shape (users, dimensions, dimensions)
        target : ndarray, shape (users, dimensions)
        """
        owners = self.counts.users
        rows = self._row_sums(linearised.slopes[:, None] * designs)
        products = (rows * vectors[owners]).sum(axis=1)
        precision, target = np.zeros((*vectors.shape, vectors.shape[1])), np.zeros_like(vectors)
        np.add.at(
            precision, owners, linearised.information[:, None, None] * rows[:, :, None] * rows[:, None, :]
        )
        np.add.at(target, owners, (linearised.information * products + linearised.scores)[:, None] * rows)
        return precision, target

    def about_coefficients(
        self,
        linearised: CountSlopes,
        features: NDArray[np.float64],
        coefficients: NDArray[np.float64],
        variances: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the counts add to the normal equations of a regression of the item biases.

        Parameters
        ----------
        features : ndarray, shape (counted cells, features)
            Those of each counted cell's item.
        coefficients : ndarray, shape (features,)
        variances : ndarray, shape (users,)
            How uncertain the users' effects are: a count says less about items where they are.

        Returns
        -------
        precision : ndarray, shape (features, features)
        target : ndarray, shape (features,)
        """
        rows = self._row_sums(linearised.slopes[:, None] * features)
        uncertain = self.sums(linearised.slopes) ** 2 * variances[self.counts.users]
        known = 1 / (1 + linearised.information * uncertain)
        precision = (rows * (known * linearised.information)[:, None]).T @ rows
        return precision, rows.T @ (known * linearised.scores) + precision @ coefficients


def _scores(residuals: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the derivative of the log density of Laplace(0, 1) plus Normal(0, variance) noise."""
    spreads = np.sqrt(variances)
    # The logarithms of the density's two parts, with Laplace noise above 0 and below.
    above = -residuals + log_ndtr(residuals / spreads - spreads)
    below = residuals + log_ndtr(-residuals / spreads - spreads)
    scores: NDArray[np.float64] = np.tanh((above - below) / 2)
    return scores
