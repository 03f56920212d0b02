"""Vectors of users or items whose means are regressed on features, with learned covariances.

x_i ~ Normal(centre_i + W^T f_i, spread) for the features f_i of an entity, and W_fk ~ Normal(0, r_f v_k). The
centres, and what is expected of v and of the spread, are public: where reports say little, that is what
remains, and noise moves nothing. The spread and v are learned as far as the reports tell. Where the
vectors are biases, the last dimension is the one on the latent rating; a propensity may stand before it.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.arrays import Bools, Floats, Ints

_PRIOR_ENTITIES = 5.0
"""Entities with the expected covariance, for each dimension, that the learned one is averaged with."""

PRIOR_COEFFICIENTS = 20.0
"""Coefficients with the expected variance that the learned one is averaged with."""

_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What is expected of the vectors of one side before anything is observed of them."""

    spread: tuple[float, ...]
    """Variances around the regression."""
    centre: Floats | tuple[float, ...] = (0.0,)
    """Means, of all of them or one row each."""
    coefficients: tuple[float, ...] = (1.0,)
    """Variances of the coefficients."""
    ratios: Floats | float = 1.0
    """The same relative to these, feature by feature."""


@dataclass(frozen=True, eq=False)
class Regressed:
    """Posterior of the vectors of one side."""

    features: Floats
    """Shape (entities, features)."""
    expected: Expected
    means: Floats
    """Shape (entities, dimensions)."""
    covariances: Floats
    """Shape (entities, dimensions, dimensions)."""
    coefficients: Floats
    """Shape (features, dimensions)."""
    spread: Floats
    """Covariance of the vectors around their regression; shape (dimensions, dimensions)."""
    coefficient_variances: Floats
    """Relative to the expected ratios; shape (dimensions,)."""

    @classmethod
    def prior(cls, features: Floats, expected: Expected) -> Self:
        """Return what is known without observations."""
        means, spread = (
            np.zeros((len(features), len(expected.spread))) + expected.centre,
            np.diag(expected.spread),
        )
        coefficients = np.zeros((features.shape[1], means.shape[1]))
        covariances = np.tile(spread, (len(means), 1, 1))
        variances = np.array(expected.coefficients)
        return cls(features, expected, means, covariances, coefficients, spread, variances)

    @classmethod
    def at(cls, means: Floats, features: Floats, *, variance: float, spread: float) -> Self:
        """Return vectors that are known up to a variance, around a mean of 0 with an expected spread."""
        dimensions = means.shape[1]
        expected = Expected(
            spread=(spread,) * dimensions,
            centre=(0.0,) * dimensions,
            coefficients=(1.0,) * dimensions,
        )
        covariances = np.tile(variance * np.eye(dimensions), (len(means), 1, 1))
        return replace(cls.prior(features, expected), means=means, covariances=covariances)

    @property
    def biases(self) -> Floats:
        """Means of the last dimension, shape (entities,)."""
        return self.means[:, -1]

    @property
    def variances(self) -> Floats:
        """Variances of the last dimension, shape (entities,)."""
        return self.covariances[:, -1, -1]

    @property
    def spreads(self) -> Floats:
        """Variances around the regression, shape (dimensions,)."""
        return np.diagonal(self.spread).astype(np.float64)

    @property
    def regressed(self) -> Floats:
        """What the features say about each vector, shape (entities, dimensions)."""
        return np.array(self.expected.centre) + self.features @ self.coefficients

    @property
    def second_moments(self) -> Floats:
        """Expected outer product of each vector with itself, shape (entities, dimensions, dimensions)."""
        return self.means[:, :, None] * self.means[:, None, :] + self.covariances

    def posterior(self, precision: Floats, target: Floats) -> Self:
        """Return the posterior given observations of the vectors, with the regression as it is.

        ``precision`` and ``target`` sum weight times second moments of the designs, and weight times
        observation times design; shapes (entities, dimensions, dimensions) and (entities, dimensions).
        """
        inverse = _inverse(self.spread)
        covariances = _inverse(precision + inverse)
        means = _times(covariances, target + self.regressed @ inverse)
        return replace(self, means=means, covariances=covariances)

    def solved(
        self, precision: Floats, target: Floats, about_coefficients: tuple[Floats, Floats] | None = None
    ) -> Self:
        """Return the posterior of vectors and regression, and learn both variances from it.

        The coefficients are solved with the deviations from the regression integrated out. The spread follows
        MacKay's rule [mackay1992] in one dimension; in several, a step of expectation maximisation,
        which leaves it a covariance.

        ``precision``, ``target``: as in `posterior`. ``about_coefficients``: the normal equations of
        observations of the regression itself, beside those of the vectors; of one dimension only.
        """
        shape = self.coefficients.shape[::-1]
        prior = np.outer(self.coefficient_variances, np.broadcast_to(self.expected.ratios, shape[1]))
        through = np.eye(shape[0]) - precision @ _inverse(precision + _inverse(self.spread))
        weights, residual_target = through @ precision, target - _times(precision, self.expected.centre)
        weighted = np.moveaxis(weights, 0, -1)[:, :, None, :] * self.features.T
        across = (weighted @ self.features).swapaxes(1, 2)
        system = across.reshape(prior.size, prior.size) + np.diag(1 / prior.ravel())
        right_side = _times(through, residual_target).T @ self.features
        if about_coefficients is not None:
            system, right_side = system + about_coefficients[0], right_side + about_coefficients[1]
        covariance = np.linalg.inv(system)
        coefficients = (covariance @ right_side.ravel()).reshape(shape)
        moments = (coefficients**2 + np.diag(covariance).reshape(shape)) / self.expected.ratios
        solution = replace(self, coefficients=coefficients.T).posterior(precision, target)
        # The variances of coefficients, averaged with the expected ones.
        expected = PRIOR_COEFFICIENTS * np.array(self.expected.coefficients)
        return replace(
            solution,
            spread=solution._learned_spread(precision),
            coefficient_variances=(moments.sum(axis=1) + expected) / (moments.shape[1] + PRIOR_COEFFICIENTS),
        )

    def _learned_spread(self, precision: Floats) -> Floats:
        """Return the covariance around the regression, averaged with the expected one."""
        entities, dimensions = self.means.shape
        few, deviations = _PRIOR_ENTITIES * dimensions, self.means - self.regressed
        expected = few * np.diag(self.expected.spread)
        if dimensions > 1:
            squares, determined = deviations.T @ deviations + self.covariances.sum(axis=0), float(entities)
        else:
            informed = precision[:, 0, 0] > 0
            squares = (deviations[informed] ** 2).sum()
            determined = (1 - self.variances[informed] / self.spreads).sum()
        return (squares + expected) / (determined + few)

    def learned(self) -> Self:
        """Return the vectors with coefficients and variances learned from the posterior by a step of EM.

        The dimensions are taken one by one, and their spread has no covariances.
        """
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
            spread=np.diag(np.maximum(spreads, _LEAST_VARIANCE)),
            coefficient_variances=np.maximum(variances, _LEAST_VARIANCE),
        )

    def scaled(self, factors: Floats) -> Self:
        """Return the vectors in other units: every dimension times a factor."""
        expected, squares = self.expected, factors**2
        return replace(
            self,
            expected=replace(
                expected,
                spread=tuple(np.multiply(expected.spread, squares)),
                centre=np.multiply(expected.centre, factors),
                coefficients=tuple(np.multiply(expected.coefficients, squares)),
            ),
            means=self.means * factors,
            covariances=self.covariances * factors[:, None] * factors,
            coefficients=self.coefficients * factors,
            spread=self.spread * factors[:, None] * factors,
            coefficient_variances=self.coefficient_variances * squares,
        )

    def lowered(self, by: Floats) -> Self:
        """Return vectors whose biases are lower, each by a number of its own; shape (entities,)."""
        means = self.means.copy()
        means[:, -1] -= by
        return replace(self, means=means)


def _times(matrices: Floats, vectors: Floats | tuple[float, ...]) -> Floats:
    """Return the product of every matrix and its vector, or the one of all."""
    return (matrices @ np.asarray(vectors)[..., None])[..., 0]


def _inverse(matrices: Floats) -> Floats:
    """Return the inverse of every matrix; of single numbers, which are many, at the speed of a division."""
    return 1 / matrices if matrices.shape[-1] == 1 else np.linalg.inv(matrices).astype(np.float64)


_BY_PROPENSITY, _BY_BIAS = 12, 3


@dataclass(frozen=True, eq=False)
class PropensityBins:
    """Bins of users or items, and what is typical of each."""

    of: Ints
    """The bin of each user or item; shape (entities,)."""
    sizes: Ints
    """Those who count in each bin; shape (bins,)."""
    means: Floats
    """Log odds to be rated, and mean bias; 0 in an empty bin; shape (bins, 2)."""
    deviations: Floats
    """How far the log odds of each user or item are from those of its bin; shape (entities,)."""
    bias_variance: float
    """Mean posterior variance of the biases."""

    @classmethod
    def by_rank(cls, side: Regressed, counting: Bools) -> Self:
        """Return bins of nearly equal sizes of those who count, by propensity and then by bias."""
        propensity, bias = side.means.T
        entities = propensity.size
        outer = np.empty(entities, dtype=np.int64)
        outer[np.argsort(propensity, kind="stable")] = np.arange(entities) * _BY_PROPENSITY // entities
        order = np.lexsort((bias, outer))
        sizes = np.bincount(outer, minlength=_BY_PROPENSITY)
        first = np.cumsum(sizes) - sizes
        inner = np.empty(entities, dtype=np.int64)
        inner[order] = (np.arange(entities) - first[outer[order]]) * _BY_BIAS // sizes[outer[order]]
        of, bins = outer * _BY_BIAS + inner, _BY_PROPENSITY * _BY_BIAS
        counted = np.bincount(of[counting], minlength=bins)
        # While ratings are rare, their number follows exp(propensity), with mean exp(mean + variance / 2).
        odds = propensity + side.covariances[:, 0, 0] / 2
        sums = [
            np.bincount(of[counting], weights=column[counting], minlength=bins) for column in (odds, bias)
        ]
        means = np.stack(sums, axis=1) / np.maximum(counted, 1)[:, None]
        variance = float(side.covariances[counting, 1, 1].mean()) if counting.any() else 0.0
        return cls(of, counted, means, odds - means[of, 0], variance)
