"""Item biases from sums of normalised residuals: empirical Bayes, regressed on popularity and public data.

A latent rating has noise of variance 1. With c_i the count of item i (a user with n ratings adds
1 / sqrt(n)), b_i its bias, bbar the mean bias over ratings, and s the deviation of a user's latent ratings
about its own mean, the sum of the residuals of item i that users' means, and known biases o, have been taken
from is about

    S_i = c_i (b_i - o_i) / s + noise,

since a user's residuals are divided by s sqrt(n); noise is that of the sum, and that of ratings, of variance
c_i / sqrt(n). The sum over features f with mean 0 and mean square K of a row is about

    Z = sum_i c_i f_i (b_i - o_i) / (s sqrt(K)) + noise.

With b = X w + d, w ~ N(0, V) and d ~ N(0, t), b has a normal posterior, found by the matrix inversion lemma:
all is diagonal but for the columns of X and of Z. Counts are not known either; a mean-field step takes
each item's count given its bias, and the other way round. t follows by EM.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import Floats
from dprec.secret_sets.popularity import Counts

OWN_DEVIATION = 1.15
"""Deviation s of a user's latent ratings about its own mean."""

PRIOR_SPREAD = 0.45
"""Expected deviation of a latent bias around its regression."""

_PRIOR_ITEMS = 20.0
"""Items with that deviation, with which the learned one is averaged."""

_SWEEPS = 12


@dataclass(frozen=True, eq=False)
class ResidualSum:
    """A noisy sum of residuals."""

    sums: Floats
    """Shape (items,)."""
    deviation: float
    """Of its noise."""
    known: Floats
    """The biases o that were taken from ratings; shape (items,)."""


@dataclass(frozen=True, eq=False)
class FeatureSum:
    """A noisy sum over features of residuals."""

    sums: Floats
    """Shape (features,)."""
    deviation: float
    features: Floats
    """Shape (items, features)."""
    known: Floats
    """As in `ResidualSum`."""


@dataclass(frozen=True, eq=False)
class BiasPosterior:
    """Posterior of the latent biases of items; their mean over ratings is 0."""

    means: Floats
    variances: Floats
    """Shape (items,)."""
    counts: Counts
    spread: float
    """Variance around the regression."""


def learned_biases(
    counts: Counts,
    residuals: list[ResidualSum],
    of_features: FeatureSum | None,
    design: Floats,
    variances: Floats,
    users: int,
) -> BiasPosterior:
    """Return the posterior of biases and counts.

    Parameters
    ----------
    design : ndarray, shape (items, columns)
        X.
    variances : ndarray, shape (columns,)
        V.
    users : int
        Who contributed.
    """
    spread, prior = PRIOR_SPREAD**2, _PRIOR_ITEMS * PRIOR_SPREAD**2
    for _ in range(_SWEEPS):
        expected, squares = counts.means, counts.squares
        weights = _weights(residuals, expected, users)
        precision = sum(weights, start=_nothing(expected)) * squares / OWN_DEVIATION**2
        target = _nothing(expected)
        for residual_sum, weight in zip(residuals, weights, strict=True):
            evidence = expected * residual_sum.sums + squares * residual_sum.known / OWN_DEVIATION
            target += weight * evidence / OWN_DEVIATION
        joint = _JointEvidence.nothing(expected.size)
        if of_features is not None:
            joint = _JointEvidence.of(of_features, counts, users)
            target = target + joint.columns @ joint.pull
        means, bias_variances, coefficients = _posterior(precision, target, joint, design, variances, spread)
        deviations, conditional_variances = means - design @ coefficients, 1 / (precision + 1 / spread)
        spread = (float((deviations**2 + conditional_variances).sum()) + prior) / (means.size + _PRIOR_ITEMS)
        linear, quadratic = _nothing(expected), _nothing(expected)
        for residual_sum, weight in zip(residuals, weights, strict=True):
            shifts = (means - residual_sum.known) / OWN_DEVIATION
            linear += weight * shifts * residual_sum.sums
            quadratic += weight * (shifts**2 + bias_variances / OWN_DEVIATION**2)
        counts = counts.given(linear, quadratic)
    return BiasPosterior(means - counts.shares @ means, bias_variances, counts, spread)


def _nothing(counts: Floats) -> Floats:
    return np.zeros(counts.size)


def _weights(residuals: list[ResidualSum], counts: Floats, users: int) -> list[Floats]:
    """Return one over the variance of each sum's noise, that of ratings included, shapes (items,)."""
    of_rating = users / max(float(counts.sum()), 1.0)  # 1 / sqrt(n), in the mean over ratings
    return [1 / (residual_sum.deviation**2 + counts * of_rating) for residual_sum in residuals]


@dataclass(frozen=True, eq=False)
class _JointEvidence:
    """What a sum over features tells of all biases together."""

    columns: Floats
    """What each bias adds to each number, shape (items, features)."""
    weight: float
    """One over the variance of a number's noise."""
    pull: Floats
    """The numbers, times their weight; shape (features,)."""

    @classmethod
    def nothing(cls, n_items: int) -> Self:
        return cls(np.zeros((n_items, 0)), 1.0, np.zeros(0))

    @classmethod
    def of(cls, feature_sum: FeatureSum, counts: Counts, users: int) -> Self:
        shares = counts.shares
        centred = feature_sum.features - shares @ feature_sum.features
        norm = np.sqrt(max(float(shares @ (centred**2).sum(axis=1)), np.finfo(float).tiny))
        columns = centred * (counts.means / (OWN_DEVIATION * norm))[:, None]
        weight = 1 / (feature_sum.deviation**2 + users / max(1, centred.shape[1]))
        return cls(columns, weight, weight * (feature_sum.sums + columns.T @ feature_sum.known))


def _posterior(
    precision: Floats,
    target: Floats,
    joint: _JointEvidence,
    design: Floats,
    variances: Floats,
    spread: float,
) -> tuple[Floats, Floats, Floats]:
    """Return means and variances of biases, and the coefficients of their regression.

    The precision of the biases is diagonal, but for what is known of all jointly and for the regression:
    (X V X^T + t I)^-1 = I / t - X (V^-1 + X^T X / t)^-1 X^T / t^2.
    """
    inner = np.linalg.inv(np.diag(1 / variances) + design.T @ design / spread)
    diagonal = precision + 1 / spread
    low = np.hstack([design / spread, joint.columns])
    middle = np.zeros((low.shape[1], low.shape[1]))
    width = design.shape[1]
    middle[:width, :width] = -inner
    middle[width:, width:] = joint.weight * np.eye(joint.pull.size)
    scaled = low / diagonal[:, None]
    correction = np.linalg.solve(np.eye(len(middle)) + middle @ (low.T @ scaled), middle)
    means = target / diagonal - scaled @ (correction @ (scaled.T @ target))
    bias_variances = 1 / diagonal - np.einsum("ik,kl,il->i", scaled, correction, scaled, optimize=True)
    return means, np.maximum(bias_variances, 0.0), inner @ (design.T @ means) / spread
