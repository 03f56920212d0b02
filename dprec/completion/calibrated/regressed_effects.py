"""Biases of users or of items whose means are regressed on features, with learned variances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

_INTERCEPT_VARIANCE = 100.0
"""Prior variance of the coefficient of an intercept: practically free."""

_PRIOR_ENTITIES = 5.0
"""Entities with the expected variance that the learned one is averaged with."""

_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class RegressedBiases:
    """Posterior of the effects e of one side: e ~ Normal(features w, spread), w ~ Normal(0, v)."""

    features: NDArray[np.float64]
    """Shape (entities, features)."""
    intercept: bool
    """Whether the first column is 1 and its coefficient free."""
    expected_spread: float
    """The variance that is expected of effects around their regression."""
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    """Shape (entities,)."""
    coefficients: NDArray[np.float64]
    """Shape (features,)."""
    spread: float
    coefficient_variance: float = 1.0
    """Of the effects around their regression, and v."""

    @classmethod
    def at_zero(
        cls, features: NDArray[np.float64], expected_spread: float, *, intercept: bool
    ) -> RegressedBiases:
        """Return the prior."""
        entities, width = features.shape
        means, variances = np.zeros(entities), np.full(entities, expected_spread)
        return cls(features, intercept, expected_spread, means, variances, np.zeros(width), expected_spread)

    @property
    def regressed(self) -> NDArray[np.float64]:
        """What the features say about each effect, shape (entities,)."""
        return self.features @ self.coefficients

    def solved(
        self,
        precision: NDArray[np.float64],
        target: NDArray[np.float64],
        about_coefficients: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> RegressedBiases:
        """Return the posterior given observations of the effects, and learn both variances from it.

        The coefficients are solved with the deviations from the regression integrated out; the spread
        follows MacKay's rule [mackay1992], with `_PRIOR_ENTITIES` of the expected variance added.

        Parameters
        ----------
        precision : ndarray, shape (entities,)
            Sum of the weights of an entity's observations.
        target : ndarray, shape (entities,)
            Sum of weight times observation.
        about_coefficients : tuple of ndarray, shapes (features, features) and (features,), optional
            The normal equations of observations of the regression itself, beside those of the effects.
        """
        through = 1 / (1 + precision * self.spread)
        prior = np.full(self.features.shape[1], self.coefficient_variance)
        prior[: self.intercept] = _INTERCEPT_VARIANCE
        system = (self.features * (precision * through)[:, None]).T @ self.features + np.diag(1 / prior)
        weighted = self.features.T @ (target * through)
        if about_coefficients is not None:
            system, weighted = system + about_coefficients[0], weighted + about_coefficients[1]
        covariance = np.linalg.inv(system)
        coefficients = covariance @ weighted
        regressed = self.features @ coefficients
        variances = 1 / (precision + 1 / self.spread)
        means = (target + regressed / self.spread) * variances
        seen = precision > 0
        squares = float(((means - regressed)[seen] ** 2).sum())
        determined = float((1 - variances[seen] / self.spread).sum())
        moments = (coefficients**2 + np.diag(covariance))[self.intercept :]
        return replace(
            self,
            means=means,
            variances=variances,
            coefficients=coefficients,
            spread=(squares + _PRIOR_ENTITIES * self.expected_spread) / (determined + _PRIOR_ENTITIES),
            coefficient_variance=max(float(moments.mean()), _LEAST_VARIANCE) if moments.size else 1.0,
        )
