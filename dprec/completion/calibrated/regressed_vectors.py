"""Vectors of users or of items whose means are regressed on features, with learned variances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class RegressedVectors:
    """Posterior of the vectors x of one side: x_k ~ Normal(features w_k, spread_k), w_k ~ Normal(0, v_k)."""

    features: NDArray[np.float64]
    """Shape (entities, features)."""
    means: NDArray[np.float64]
    """Shape (entities, dimensions)."""
    covariances: NDArray[np.float64]
    """Shape (entities, dimensions, dimensions)."""
    coefficients: NDArray[np.float64]
    """Shape (features, dimensions)."""
    spreads: NDArray[np.float64]
    coefficient_variances: NDArray[np.float64]
    """Of the vectors around their regression, and v; shape (dimensions,)."""

    @classmethod
    def at(
        cls, means: NDArray[np.float64], features: NDArray[np.float64], *, variance: float, spread: float
    ) -> RegressedVectors:
        """Return vectors that are known up to a variance, around a mean of 0 with an expected spread."""
        entities, dimensions = means.shape
        covariances = np.tile(variance * np.eye(dimensions), (entities, 1, 1))
        coefficients = np.zeros((features.shape[1], dimensions))
        ones = np.ones(dimensions)
        return cls(features, means, covariances, coefficients, spread * ones, ones)

    @property
    def regressed(self) -> NDArray[np.float64]:
        """What the features say about each vector, shape (entities, dimensions)."""
        return self.features @ self.coefficients

    @property
    def second_moments(self) -> NDArray[np.float64]:
        """Expected outer product of each vector with itself, shape (entities, dimensions, dimensions)."""
        return self.means[:, :, None] * self.means[:, None, :] + self.covariances

    def solved(self, precision: NDArray[np.float64], target: NDArray[np.float64]) -> RegressedVectors:
        """Return the posterior given observations of the vectors.

        Parameters
        ----------
        precision : ndarray, shape (entities, dimensions, dimensions)
            Sum of the weights of an entity's observations times the second moments of their designs.
        target : ndarray, shape (entities, dimensions)
            Sum of weight times observation times design.
        """
        covariances = np.linalg.inv(precision + np.diag(1 / self.spreads)).astype(np.float64)
        pulled = target + self.regressed / self.spreads
        means = (covariances @ pulled[:, :, None])[:, :, 0]
        return replace(self, means=means, covariances=covariances)

    def learned(self) -> RegressedVectors:
        """Return the vectors with coefficients and variances learned from the posterior by a step of EM."""
        gram, shared = self.features.T @ self.features, self.features.T @ self.means
        coefficients, variances = np.empty_like(self.coefficients), np.empty_like(self.coefficient_variances)
        for column, (spread, variance) in enumerate(
            zip(self.spreads, self.coefficient_variances, strict=True)
        ):
            covariance = np.linalg.inv(gram / spread + np.eye(len(gram)) / variance)
            coefficients[:, column] = covariance @ shared[:, column] / spread
            variances[column] = (coefficients[:, column] ** 2 + np.diag(covariance)).mean()
        squares = (self.means - self.features @ coefficients) ** 2
        spreads = (squares + np.diagonal(self.covariances, axis1=1, axis2=2)).mean(axis=0)
        return replace(
            self,
            coefficients=coefficients,
            spreads=np.maximum(spreads, _LEAST_VARIANCE),
            coefficient_variances=np.maximum(variances, _LEAST_VARIANCE),
        )

    def scaled(self, factors: NDArray[np.float64]) -> RegressedVectors:
        """Return the vectors in other units: every dimension times a factor."""
        return replace(
            self,
            means=self.means * factors,
            covariances=self.covariances * factors[:, None] * factors,
            coefficients=self.coefficients * factors,
            spreads=self.spreads * factors**2,
            coefficient_variances=self.coefficient_variances * factors**2,
        )
