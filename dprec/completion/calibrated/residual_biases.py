"""Item biases from answers to whether ratings are above the mean of their user's.

The latent rating of user u and item i is b_u + c_i + e_ui, and the mean of the user's n rated items is about
b_u + cbar_u + ebar_u: the user's bias drops out. The residual has the mean c_i - cbar_u and the variance
(1 + t)(1 - 1/n), with 1 the noise on a latent rating and t the variance of preferences, so that

    Pr(above) = Phi((c_i - cbar_u) / sqrt((1 + t)(1 - 1/n))),
    Pr(answer is yes) = q + (1 - 2 q) Pr(above), for answers that are lies with probability q.

With c_i = F_i w + d_i, for features F_i that are 0 on average, this is a probit regression on F_i - Fbar_u
with a bias (1 - 1/n) d_i of the item; the other items' d, of which cbar_u holds the mean, are neglected.
It is fitted by Fisher scoring, the d_i integrated out of the equations of w.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtr

from dprec.arrays import AnyInts, Floats
from dprec.completion.calibrated.features import expected_coefficients
from dprec.completion.calibrated.regressions import Regressed
from dprec.observations import Observations, ResidualReports
from dprec.ordinal import INVERSE_SQRT_2_PI
from dprec.progress import Progress

_USER_FACTOR_VARIANCE = 0.2
"""Variance of preferences t: what devices assume far from the origin, about `taste` plus `nearness`."""

_COEFFICIENT_VARIANCE, _PRIOR_COEFFICIENTS = 0.005, 40.0
"""Expected variance of a coefficient, and how many of that variance the learned one is averaged with."""

_PRIOR_ITEMS = 5.0
"""Items with the expected variance that the learned variance of d is averaged with."""


@dataclass(frozen=True, eq=False)
class ResidualAnswers:
    """Answers, and how the probability of a yes depends on what is to be learned."""

    reports: ResidualReports
    items: AnyInts
    """Shape (answers,)."""
    design: Floats
    """F_i - Fbar_u, in units of the residual's standard deviation; shape (answers, features)."""
    shares: Floats
    """What d_i counts for, in the same units; shape (answers,)."""

    @classmethod
    def of(cls, seen: Observations, reports: ResidualReports, features: Floats) -> Self:
        """Read answers about items with features of shape (items, features)."""
        users, items, n_users = seen.users, seen.items, seen.shape[0]
        counts = np.bincount(users, minlength=n_users)
        means = (
            np.column_stack(
                [np.bincount(users, weights=column[items], minlength=n_users) for column in features.T]
            )
            / np.maximum(counts, 1)[:, None]
        )
        asked, about = users[reports.cells], items[reports.cells]
        # Of one rating alone the residual is 0: nothing is learned.
        alone = 1 / counts[asked]
        scale = 1 / np.sqrt((1 + _USER_FACTOR_VARIANCE) * np.where(alone < 1, 1 - alone, 1.0))
        design = (features[about] - means[asked]) * scale[:, None]
        return cls(reports, about, design, (1 - alone) * scale)

    def linearised(self, latent: Floats) -> tuple[Floats, Floats]:
        """Return the slope of each answer's log likelihood, and its information, at latent residuals."""
        honest, lies = 1 - 2 * self.reports.lies, self.reports.lies
        chance = lies + honest * ndtr(latent)
        moved = honest * np.exp(-(latent**2) / 2) * INVERSE_SQRT_2_PI
        slopes = moved * np.where(self.reports.above, 1 / chance, -1 / (1 - chance))
        return slopes, moved**2 / (chance * (1 - chance))


@dataclass
class _Posterior:
    """Means and variances of the coefficients w and the deviations d, and the variances learned from them."""

    weights: Floats
    deviations: Floats
    variances: Floats
    coefficient_variance: float
    spread: float


def fitted_to_residuals(
    start: Regressed, seen: Observations, reports: ResidualReports, sweeps: int, progress: Progress
) -> Regressed:
    """Return the posterior of the item biases, by Fisher scoring; an intercept stays 0."""
    answers = ResidualAnswers.of(seen, reports, start.features)
    n_items, width = start.features.shape
    expected = start.expected.spread[0]
    posterior = _Posterior(
        np.zeros(width), np.zeros(n_items), np.full(n_items, expected), _COEFFICIENT_VARIANCE, expected
    )
    ratios = expected_coefficients(width)
    for sweep in range(sweeps):
        posterior = _scored(posterior, answers, expected, ratios)
        progress("completing", sweep + 1, sweeps)
    return replace(
        start,
        means=(start.features @ posterior.weights + posterior.deviations)[:, None],
        covariances=posterior.variances[:, None, None],
        coefficients=posterior.weights[:, None],
        spread=np.array([[posterior.spread]]),
        coefficient_variances=np.array([posterior.coefficient_variance]),
    )


def _scored(
    before: _Posterior, answers: ResidualAnswers, expected_spread: float, ratios: Floats
) -> _Posterior:
    """Take a step of Fisher scoring, and learn both variances from the result (MacKay [mackay1992])."""
    n_items, (design, shares, items) = before.deviations.size, (answers.design, answers.shares, answers.items)

    def per_item(values: Floats) -> Floats:
        return np.bincount(items, weights=values, minlength=n_items).astype(np.float64)

    latent = design @ before.weights + shares * before.deviations[items]
    slopes, information = answers.linearised(latent)
    target = information * latent + slopes
    precision, own = per_item(information * shares**2), per_item(target * shares)
    crossed = np.column_stack([per_item(column * information * shares) for column in design.T])
    variances = 1 / (precision + 1 / before.spread)
    system = (design * information[:, None]).T @ design - (crossed * variances[:, None]).T @ crossed
    covariance = np.linalg.inv(system + np.diag(1 / (ratios * before.coefficient_variance)))
    weights = covariance @ (design.T @ target - crossed.T @ (own * variances))
    deviations = (own - crossed @ weights) * variances
    seen = precision > 0
    squares = float((deviations[seen] ** 2).sum()) + _PRIOR_ITEMS * expected_spread
    determined = float((1 - variances[seen] / before.spread).sum()) + _PRIOR_ITEMS
    moments = float(((weights**2 + np.diag(covariance)) / ratios).sum())
    return _Posterior(
        weights,
        deviations,
        variances,
        coefficient_variance=(moments + _PRIOR_COEFFICIENTS * _COEFFICIENT_VARIANCE)
        / (weights.size + _PRIOR_COEFFICIENTS),
        spread=squares / determined,
    )
