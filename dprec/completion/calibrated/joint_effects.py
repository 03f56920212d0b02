"""Propensities and biases of users or items: how often they occur among ratings, and how they are rated.

The two are correlated, as popular items are rated higher, so that what is learned of one tells of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dprec.completion.calibrated.regressions import RegressedBiases

_INTERCEPT_VARIANCES = np.array([1.0, 0.09])
"""Prior variances of the two intercepts: that of the effects is near 0, as the histogram is public."""

_EXPECTED_COEFFICIENT_VARIANCES = np.array([0.5, 0.05])

_PRIOR_ENTITIES = 10.0
"""Entities with the expected covariance that the learned one is averaged with."""


@dataclass(frozen=True, eq=False)
class JointBiases:
    """Posterior of pairs e of one side: e ~ Normal(centre + W features, spread), W ~ Normal(0, ...).

    A pair is a propensity, on the scale of the log odds that a cell is rated, and an effect on the latent
    rating.
    """

    features: NDArray[np.float64]
    """The first column is 1, or there is none; shape (entities, features)."""
    centre: NDArray[np.float64]
    """Shape (2,)."""
    expected_spread: NDArray[np.float64]
    """The covariance that is expected of pairs around their regression; shape (2, 2)."""
    means: NDArray[np.float64]
    """Shape (entities, 2)."""
    covariances: NDArray[np.float64]
    """Shape (entities, 2, 2)."""
    coefficients: NDArray[np.float64]
    """Shape (2, features)."""
    spread: NDArray[np.float64]
    """Shape (2, 2)."""
    coefficient_variances: NDArray[np.float64]
    """Shape (2,)."""

    @classmethod
    def at_centre(
        cls, features: NDArray[np.float64], centre: tuple[float, float], variances: tuple[float, float]
    ) -> JointBiases:
        """Return the prior."""
        entities, width = features.shape
        middle, spread = np.array(centre), np.diag(variances)
        means, covariances = np.tile(middle, (entities, 1)), np.tile(spread, (entities, 1, 1))
        expected = _EXPECTED_COEFFICIENT_VARIANCES
        return cls(features, middle, spread, means, covariances, np.zeros((2, width)), spread, expected)

    def solved(self, precision: NDArray[np.float64], target: NDArray[np.float64]) -> JointBiases:
        """Return the posterior given observations of the pairs, and learn the prior's covariances from it.

        The coefficients are solved with the deviations from the regression integrated out; the spread is a
        step of expectation maximisation, with `_PRIOR_ENTITIES` of the expected covariance added.

        Parameters
        ----------
        precision : ndarray, shape (entities, 2, 2)
            Sum of the weights of an entity's observations.
        target : ndarray, shape (entities, 2)
            Sum of weight times observation.
        """
        inverse = np.linalg.inv(self.spread)
        covariances = np.linalg.inv(precision + inverse)
        through = np.eye(2) - precision @ covariances
        weights, around = through @ precision, target - precision @ self.centre
        prior = np.repeat(self.coefficient_variances[:, None], self.features.shape[1], axis=1)
        prior[:, :1] = _INTERCEPT_VARIANCES[:, None]
        width = prior.size
        across = np.einsum("iab,ik,il->akbl", weights, self.features, self.features, optimize=True)
        system = across.reshape(width, width) + np.diag(1 / prior.ravel())
        pulled = np.einsum("iab,ib,ik->ak", through, around, self.features, optimize=True)
        of_coefficients = np.linalg.inv(system)
        coefficients = (of_coefficients @ pulled.ravel()).reshape(prior.shape)
        regressed = self.centre + self.features @ coefficients.T
        means = (covariances @ (target + regressed @ inverse)[:, :, None])[:, :, 0]
        deviations = means - regressed
        squares = deviations.T @ deviations + covariances.sum(axis=0)
        spread = (squares + _PRIOR_ENTITIES * self.expected_spread) / (len(means) + _PRIOR_ENTITIES)
        moments = (coefficients**2 + np.diag(of_coefficients).reshape(prior.shape))[:, 1:]
        learned = (moments.sum(axis=1) + _EXPECTED_COEFFICIENT_VARIANCES) / (moments.shape[1] + 1)
        return replace(
            self,
            means=means,
            covariances=covariances,
            coefficients=coefficients,
            spread=spread,
            coefficient_variances=learned,
        )

    def moved_to(self, means: NDArray[np.float64]) -> JointBiases:
        """Return the same posterior around other means."""
        return replace(self, means=means)

    def with_features(self, features: NDArray[np.float64]) -> JointBiases:
        """Return the same posterior, to be regressed on other features from the next solution on."""
        return replace(self, features=features, coefficients=np.zeros((2, features.shape[1])))

    @property
    def biases(self) -> RegressedBiases:
        """The effects on the latent rating alone."""
        return RegressedBiases(
            self.features,
            True,
            float(self.expected_spread[1, 1]),
            self.means[:, 1],
            self.covariances[:, 1, 1],
            self.coefficients[1],
            float(self.spread[1, 1]),
            float(self.coefficient_variances[1]),
        )
