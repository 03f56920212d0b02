"""Priors of users or items whose means are regressed on features, with learned covariances."""

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
class RegressedEffects:
    """Posterior of the effects e of one side: e ~ Normal(features w, spread), w ~ Normal(0, v).

    Parameters
    ----------
    features : ndarray, shape (entities, features)
    intercept : bool
        Whether the first column is 1 and its coefficient free.
    expected_spread : float
        The variance that is expected of effects around their regression.
    means, variances : ndarray, shape (entities,)
    coefficients : ndarray, shape (features,)
    spread, coefficient_variance : float
        Of the effects around their regression, and v.
    """

    features: NDArray[np.float64]
    intercept: bool
    expected_spread: float
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    spread: float
    coefficient_variance: float = 1.0

    @classmethod
    def at_zero(
        cls, features: NDArray[np.float64], expected_spread: float, *, intercept: bool
    ) -> RegressedEffects:
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
    ) -> RegressedEffects:
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


@dataclass(frozen=True, eq=False)
class RegressedVectors:
    """Posterior of the vectors x of one side: x_k ~ Normal(features w_k, spread_k), w_k ~ Normal(0, v_k).

    Parameters
    ----------
    features : ndarray, shape (entities, features)
    means : ndarray, shape (entities, dimensions)
    covariances : ndarray, shape (entities, dimensions, dimensions)
    coefficients : ndarray, shape (features, dimensions)
    spreads, coefficient_variances : ndarray, shape (dimensions,)
        Of the vectors around their regression, and v.
    """

    features: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    spreads: NDArray[np.float64]
    coefficient_variances: NDArray[np.float64]

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


_INTERCEPT_VARIANCES = np.array([1.0, 0.09])
"""Prior variances of the two intercepts: that of the effects is near 0, as the histogram is public."""

_EXPECTED_COEFFICIENT_VARIANCES = np.array([0.5, 0.05])

_PRIOR_PAIRS = 10.0
"""Entities with the expected covariance that the learned one is averaged with."""


@dataclass(frozen=True, eq=False)
class JointEffects:
    """Posterior of pairs e of one side: e ~ Normal(centre + W features, spread), W ~ Normal(0, ...).

    A pair is a propensity, on the scale of the log odds that a cell is rated, and an effect on the latent
    rating.

    Parameters
    ----------
    features : ndarray, shape (entities, features)
        The first column is 1, or there is none.
    centre : ndarray, shape (2,)
    expected_spread : ndarray, shape (2, 2)
        The covariance that is expected of pairs around their regression.
    means : ndarray, shape (entities, 2)
    covariances : ndarray, shape (entities, 2, 2)
    coefficients : ndarray, shape (2, features)
    spread : ndarray, shape (2, 2)
    coefficient_variances : ndarray, shape (2,)
    """

    features: NDArray[np.float64]
    centre: NDArray[np.float64]
    expected_spread: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    spread: NDArray[np.float64]
    coefficient_variances: NDArray[np.float64]

    @classmethod
    def at_centre(
        cls, features: NDArray[np.float64], centre: tuple[float, float], variances: tuple[float, float]
    ) -> JointEffects:
        """Return the prior."""
        entities, width = features.shape
        middle, spread = np.array(centre), np.diag(variances)
        means, covariances = np.tile(middle, (entities, 1)), np.tile(spread, (entities, 1, 1))
        expected = _EXPECTED_COEFFICIENT_VARIANCES
        return cls(features, middle, spread, means, covariances, np.zeros((2, width)), spread, expected)

    def solved(self, precision: NDArray[np.float64], target: NDArray[np.float64]) -> JointEffects:
        """Return the posterior given observations of the pairs, and learn the prior's covariances from it.

        The coefficients are solved with the deviations from the regression integrated out; the spread is a
        step of expectation maximisation, with `_PRIOR_PAIRS` of the expected covariance added.

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
        spread = (squares + _PRIOR_PAIRS * self.expected_spread) / (len(means) + _PRIOR_PAIRS)
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

    def moved_to(self, means: NDArray[np.float64]) -> JointEffects:
        """Return the same posterior around other means."""
        return replace(self, means=means)

    def with_features(self, features: NDArray[np.float64]) -> JointEffects:
        """Return the same posterior, to be regressed on other features from the next solution on."""
        return replace(self, features=features, coefficients=np.zeros((2, features.shape[1])))

    @property
    def effects(self) -> RegressedEffects:
        """The effects on the latent rating alone."""
        return RegressedEffects(
            self.features,
            True,
            float(self.expected_spread[1, 1]),
            self.means[:, 1],
            self.covariances[:, 1, 1],
            self.coefficients[1],
            float(self.spread[1, 1]),
            float(self.coefficient_variances[1]),
        )


_BY_PROPENSITY, _BY_EFFECT = 12, 3


@dataclass(frozen=True, eq=False)
class PropensityBins:
    """Bins of users or items, and what is typical of each.

    Parameters
    ----------
    of : ndarray of int64, shape (entities,)
        The bin of each user or item.
    sizes : ndarray of int64, shape (bins,)
        Those who count in each bin.
    means : ndarray, shape (bins, 2)
        Log odds to be rated, and mean effect; 0 in an empty bin.
    deviations : ndarray, shape (entities,)
        How far the log odds of each user or item are from those of its bin.
    effect_variance : float
        Mean posterior variance of the effects.
    """

    of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    effect_variance: float

    @classmethod
    def by_rank(cls, side: JointEffects, counting: NDArray[np.bool_]) -> PropensityBins:
        """Return bins of nearly equal sizes, by propensity and then by effect.

        Parameters
        ----------
        side : JointEffects
        counting : ndarray of bool, shape (entities,)
            Who counts; the others are in bins all the same.
        """
        propensity, effect = side.means.T
        entities = propensity.size
        outer = np.empty(entities, dtype=np.int64)
        outer[np.argsort(propensity, kind="stable")] = np.arange(entities) * _BY_PROPENSITY // entities
        order = np.lexsort((effect, outer))
        sizes = np.bincount(outer, minlength=_BY_PROPENSITY)
        first = np.cumsum(sizes) - sizes
        inner = np.empty(entities, dtype=np.int64)
        inner[order] = (np.arange(entities) - first[outer[order]]) * _BY_EFFECT // sizes[outer[order]]
        of, bins = outer * _BY_EFFECT + inner, _BY_PROPENSITY * _BY_EFFECT
        counted = np.bincount(of[counting], minlength=bins)
        # While ratings are rare, their number follows exp(propensity), with mean exp(mean + variance / 2).
        odds = propensity + side.covariances[:, 0, 0] / 2
        sums = [
            np.bincount(of[counting], weights=column[counting], minlength=bins) for column in (odds, effect)
        ]
        means = np.stack(sums, axis=1) / np.maximum(counted, 1)[:, None]
        variance = float(side.covariances[counting, 1, 1].mean()) if counting.any() else 0.0
        return cls(of, counted, means, odds - means[of, 0], variance)
