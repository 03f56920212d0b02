"""Item biases and popularity from answers about whole profiles, which name an item and a side of a mean.

Of n answers, let f_i+ and f_i- be the shares that name item i as rated above and not above the user's mean,
and v the share that an item without ratings has of either. For an item with latent bias c_i that a share
of users proportional to p_i has rated,

    f_i+ + f_i- = 2 v + p_i + noise,        f_i+ - f_i- = p_i E[side] + noise,

with noise of about 2 v / n + p_i / n in both, independent as the two sides are. A side is that of
c_i + e with e ~ N(0, s^2), so that E[side] = 2 Phi(c_i / s) - 1, nearly in proportion to a small c_i. With
log p_i ~ N(m, q) on a grid and c_i ~ N(F_i w, t), F_i holding log p_i in deviations from m, the posterior is
a mixture of normal distributions, one for each p of the grid; m, q, t and v follow by EM, w by ridge
regression with the c_i integrated out. Popularity, of which the answers say most, tells of the biases.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import ItemSetEmbedding
from dprec.completion.calibrated.features import catalogue_features
from dprec.completion.calibrated.regressions import Expected, Regressed
from dprec.observations import ProfileReports
from dprec.progress import Progress

SIDE_PER_BIAS = 1.0
"""E[side] per unit of a bias; more than for all ratings, as those farthest from a user's mean count."""

_BIAS, _ITEMS_WITH_IT = 0.15, 50.0
"""Expected variance of biases around their regression, and how many items with it are averaged with."""

_TYPICAL, _SPREAD, _ITEMS_SO_POPULAR = 0.02, 2.0, 20.0
"""Expected median of p, relative to what an item that everybody rates has, and variance of log p."""

_INTERCEPT, _SLOPE, _COEFFICIENT = 0.3, 0.02, 0.005
"""Expected variances of the regression's intercept, of its slope over popularity, and of the others."""

_POINTS, _RAREST = 121, 1e-4
"""Points of the grid of p, and its lower end relative to an item that everybody rates."""

_SHOWN_OF = 1_000_000
"""Users for whom expected counts of ratings are stated."""


@dataclass(frozen=True, eq=False)
class ProfileFit:
    """What answers say about the items."""

    grid: Floats
    """Values of log p; shape (points,)."""
    features: Floats
    """1, and public features of the items; shape (items, features)."""
    means: Floats
    variances: Floats
    """Of the biases; shape (items,)."""
    popularity: Floats
    """The posterior of p; shape (items, points)."""
    coefficients: Floats
    """Of the deviation of log p, then of the features; shape (1 + features,)."""
    middle: float
    spread: float
    """Mean m and variance q of log p."""
    around: float
    """Variance t of biases around their regression."""
    unrated: float
    """Share 2 v."""

    @classmethod
    def of(
        cls, reports: ProfileReports, catalogue: Catalogue | None, sweeps: int, progress: Progress
    ) -> Self:
        """Fit the model by so many steps of EM to at least one answer; see the module."""
        n_items, most = reports.above.size, reports.rated - reports.unrated[0]
        features = np.ones((n_items, 1))
        if catalogue is not None:
            features = np.hstack([features, catalogue_features(catalogue, np.ones(n_items, dtype=int))])
        grid = np.log(most) + np.linspace(np.log(_RAREST), 0.0, _POINTS)
        fit = cls(
            grid,
            features,
            np.zeros(n_items),
            np.full(n_items, _BIAS),
            np.full((n_items, _POINTS), 1 / _POINTS),
            np.zeros(1 + features.shape[1]),
            float(np.log(most * _TYPICAL)),
            _SPREAD,
            _BIAS,
            float(sum(reports.unrated)),
        )
        for sweep in range(sweeps):
            fit = fit._stepped(reports, float(np.log(most * _TYPICAL)))
            progress("completing", sweep + 1, sweeps)
        return fit

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What was learned, for the run's summary."""
        return {
            "popularity_spread": self.spread,
            "item_spread": self.around,
            "item_coefficients": self.coefficients.tolist(),
            "share_of_unrated": self.unrated,
        }

    @property
    def biases(self) -> Regressed:
        """The biases of the items."""
        start = Regressed.prior(self.features, Expected(spread=(_BIAS,)))
        covariances, spread = self.variances[:, None, None], np.array([[self.around]])
        return replace(start, means=self.means[:, None], covariances=covariances, spread=spread)

    def embedding(self, n_users: int) -> ItemSetEmbedding:
        """Return what is known of popularity; nothing embeds items, or distinguishes users."""
        expected = self.popularity @ self.grid
        unknown = self.popularity @ self.grid**2 - expected**2
        shares = np.exp(expected) / np.exp(expected).sum()
        known = shares @ (expected - shares @ expected) ** 2
        return ItemSetEmbedding(
            np.zeros((n_users, 0)),
            np.zeros((expected.size, 0)),
            np.zeros(n_users, dtype=np.int64),
            np.rint(_SHOWN_OF * shares).astype(np.int64),
            float(np.sqrt(known / (known + shares @ unknown))),
        )

    def _stepped(self, reports: ProfileReports, typical: float) -> Self:
        shares = np.stack([reports.above + reports.below, reports.above - reports.below]) / reports.answers
        values = np.exp(self.grid)
        slope = values * SIDE_PER_BIAS
        noise = (self.unrated + values) / reports.answers
        expected = self._regressed(self.coefficients, self.middle, self.spread)
        # Of the difference, given p alone.
        variances = noise + slope**2 * self.around
        log_weights = -((self.grid - self.middle) ** 2) / (2 * self.spread) - np.log(noise * variances) / 2
        log_weights = log_weights - (shares[0][:, None] - self.unrated - values) ** 2 / (2 * noise)
        log_weights -= (shares[1][:, None] - slope * expected) ** 2 / (2 * variances)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        around = 1 / (1 / self.around + slope**2 / noise)
        means = (expected / self.around + shares[1][:, None] * slope / noise) * around
        mean = (weights * means).sum(axis=1)
        middle, spread = self._popularity(weights, typical)
        coefficients = self._coefficients(weights, shares[1], slope, variances, middle, spread)
        regressed = self._regressed(coefficients, middle, spread)
        squares = float((weights * ((means - regressed) ** 2 + around)).sum())
        unrated = float((shares[0] - weights @ values).mean())
        return replace(
            self,
            means=mean,
            variances=(weights * (means**2 + around)).sum(axis=1) - mean**2,
            popularity=weights,
            coefficients=coefficients,
            middle=middle,
            spread=spread,
            around=(squares + _ITEMS_WITH_IT * _BIAS) / (mean.size + _ITEMS_WITH_IT),
            unrated=float(np.clip(unrated, 2 * reports.unrated[0], 2 * reports.unrated[1])),
        )

    def _popularity(self, weights: Floats, typical: float) -> tuple[float, float]:
        """Return the mean and the variance of log p, both averaged with what is expected."""
        items = len(weights) + _ITEMS_SO_POPULAR
        middle = (float((weights @ self.grid).sum()) + _ITEMS_SO_POPULAR * typical) / items
        squares = float((weights @ (self.grid - middle) ** 2).sum())
        return middle, (squares + _ITEMS_SO_POPULAR * _SPREAD) / items

    def _deviations(self, middle: float, spread: float) -> Floats:
        deviations: Floats = (self.grid - middle) / np.sqrt(spread)
        return deviations

    def _regressed(self, coefficients: Floats, middle: float, spread: float) -> Floats:
        """Return what popularity and features say of every bias, shape (items, points)."""
        along = coefficients[0] * self._deviations(middle, spread)
        regressed: Floats = (self.features @ coefficients[1:])[:, None] + along
        return regressed

    def _coefficients(
        self,
        weights: Floats,
        differences: Floats,
        slope: Floats,
        variances: Floats,
        middle: float,
        spread: float,
    ) -> Floats:
        deviations = self._deviations(middle, spread)
        information, target = weights * (slope**2 / variances), weights * (slope / variances)
        width = 1 + self.features.shape[1]
        system = np.diag(1 / np.r_[_SLOPE, _INTERCEPT, np.full(width - 2, _COEFFICIENT)])
        system[0, 0] += (information @ deviations**2).sum()
        system[0, 1:] = system[1:, 0] = self.features.T @ (information @ deviations)
        system[1:, 1:] += (self.features * information.sum(axis=1)[:, None]).T @ self.features
        sides = np.r_[
            differences @ (target @ deviations), self.features.T @ (target.sum(axis=1) * differences)
        ]
        solved: Floats = np.linalg.solve(system, sides)
        return solved
