"""The latent ratings of the calibrated completion, and their posterior given reports.

theta_ui = b_u + c_i + s_u . g_i + p_u . q_i: biases of the user and of the item, the user's slopes over the
item's embedding, and factors of both. Everything is regressed on features, so that factors have a direction
before they have much evidence. The posterior is a product of those of the five parts; each is solved given
the moments of the others, as in variational matrix factorisation (Lim and Teh [lim2007], section 3).

A row counts how many of some cells' ratings reach a level. Given the latent ratings it is a sum of
independent coins, nearly normal, plus noise that is nearly Laplace's: a mixture of normals of several
variances (Andrews and Mallows [andrews1974]). A step of EM over that mixture replaces the count by an
observation with normal noise. Unlike Fisher scoring, it never overshoots the peak of Laplace's density.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Floats, Int32s
from dprec.completion.calibrated.regressions import Regressed
from dprec.completion.factors import inner_products
from dprec.observations import NoisyCounts

_LEAST_VARIANCE = 0.01
"""Variance that a count has at least beside its noise, so that its density is smooth."""

_LEAST_RESIDUAL = 1e-4
"""Smallest residual in scales of the noise; it stands for those nearer to 0."""


Linearised = tuple[Floats, Floats, Floats]
"""What noisy counts say at some latent ratings.

By how much an expected count grows with the latent rating of each of its cells, shape (counted cells,); the
derivative of each count's log likelihood by its expectation, and the precision of the normal observation that
replaces it, shape (rows,).
"""


@dataclass(frozen=True, eq=False)
class CountLikelihood:
    """The likelihood of noisy counts."""

    counts: NoisyCounts
    cut: float
    """The latent rating at which the lowest counted level begins."""

    @classmethod
    def of(cls, counts: NoisyCounts, cuts: Floats) -> Self:
        """Return the likelihood, given where the latent rating changes level, shape (levels - 1,)."""
        return cls(counts, float(cuts[counts.least_level - 2]))

    def at(self, latent: Floats) -> Linearised:
        """Return what the counts say at the latent ratings of all observed cells, shape (cells,)."""
        from scipy.special import ndtr

        offsets = latent[self.counts.cells] - self.cut
        shares = ndtr(offsets)
        slopes = np.exp(-(offsets**2) / 2) / np.sqrt(2 * np.pi)
        expected, variances = self.sums(shares), np.maximum(self.sums(shares * (1 - shares)), _LEAST_VARIANCE)
        epsilons = self.counts.epsilons
        residuals = (self.counts.values - expected) * epsilons
        residuals = np.where(np.abs(residuals) < _LEAST_RESIDUAL, _LEAST_RESIDUAL, residuals)
        scores = _scores(residuals, variances * epsilons**2)
        return slopes, epsilons * scores, epsilons**2 * scores / residuals

    def sums(self, of_cells: Floats) -> Floats:
        """Add up numbers of the counted cells by row, shape (rows,)."""
        rows = self.counts.sizes.size
        return np.bincount(self.counts.row_of, weights=of_cells, minlength=rows).astype(np.float64)

    def _row_sums(self, slopes: Floats, items: Int32s, vectors: Floats) -> Floats:
        """Add up slope times vector of the item of each counted cell by row, shape (rows, dimensions)."""
        from dprec.kernels.effects import add_weighted

        sums = np.zeros((self.counts.sizes.size, vectors.shape[1]))
        add_weighted(sums, self.counts.row_of, items, slopes, vectors)
        return sums

    def about_users(
        self, linearised: Linearised, items: Int32s, of_items: Floats, vectors: Floats
    ) -> tuple[Floats, Floats]:
        """Return what the counts add to the normal equations of users' vectors.

        ``items``, shape (counted cells,); ``of_items``, shape (items, dimensions): by what a user's vector is
        multiplied in the latent rating of an item; ``vectors``, shape (users, dimensions). Returns
        ``precision``, shape (users, dimensions, dimensions); ``target``, shape (users, dimensions).
        """
        owners = self.counts.users
        slopes, scores, information = linearised
        rows = self._row_sums(slopes, items, of_items)
        products = (rows * vectors[owners]).sum(axis=1)
        precision, target = np.zeros((*vectors.shape, vectors.shape[1])), np.zeros_like(vectors)
        np.add.at(precision, owners, information[:, None, None] * rows[:, :, None] * rows[:, None, :])
        np.add.at(target, owners, (information * products + scores)[:, None] * rows)
        return precision, target

    def about_coefficients(
        self,
        linearised: Linearised,
        items: Int32s,
        features: Floats,
        coefficients: Floats,
        variances: Floats,
    ) -> tuple[Floats, Floats]:
        """Return what the counts add to the normal equations of a regression of the item biases.

        ``items``, shape (counted cells,); ``features``, shape (items, features); ``coefficients``, shape
        (features,); ``variances``, shape (users,): how uncertain the user biases are: a count says less
        about items where they are. Returns ``precision``, shape (features, features); ``target``, shape
        (features,).
        """
        slopes, scores, information = linearised
        rows = self._row_sums(slopes, items, features)
        uncertain = self.sums(slopes) ** 2 * variances[self.counts.users]
        certainty = 1 / (1 + information * uncertain)
        precision = (rows * (certainty * information)[:, None]).T @ rows
        return precision, rows.T @ (certainty * scores) + precision @ coefficients


def _scores(residuals: Floats, variances: Floats) -> Floats:
    """Return minus the derivative of the log density of Laplace(0, 1) plus Normal(0, variance) noise."""
    from scipy.special import log_ndtr

    spreads = np.sqrt(variances)
    # The logarithms of the density's two parts, with Laplace noise above 0 and below.
    above = -residuals + log_ndtr(residuals / spreads - spreads)
    below = residuals + log_ndtr(-residuals / spreads - spreads)
    return np.tanh((above - below) / 2)


LookedUp = Callable[[Floats], tuple[Floats, Floats]]
"""From latent ratings of all cells to the slope of each report's log likelihood, and its information."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Rated cells, and what is reported of them."""

    users: Int32s
    items: Int32s
    """Shape (cells,)."""
    looked_up: LookedUp
    counts: CountLikelihood | None = None
    """Of the ratings of some of the cells."""

    @cached_property
    def counted(self) -> Int32s:
        """Items of the counted cells."""
        assert self.counts is not None
        return self.items[self.counts.counts.cells]

    def about_users(
        self, latent: Floats, means: Floats, of_items: Floats, moments: Floats
    ) -> tuple[Floats, Floats]:
        """Return what reports and counts say of users' vectors; see `_normal`.

        ``latent``: latent ratings, shape (cells,); ``means``: means of the users' vectors, shape (users,
        dimensions); ``of_items``, ``moments``: means of what they are multiplied by, and second moments,
        shapes (items, dimensions) and (items, dimensions, dimensions).
        """
        from_reports = _normal((self.users, self.items), means, of_items, moments, self.looked_up(latent))
        if self.counts is None:
            return from_reports
        from_counts = self.counts.about_users(self.counts.at(latent), self.counted, of_items, means)
        return from_reports[0] + from_counts[0], from_reports[1] + from_counts[1]

    def about_items(
        self, latent: Floats, means: Floats, of_users: Floats, moments: Floats
    ) -> tuple[Floats, Floats]:
        """Return what reports, but not counts, say of items' vectors."""
        return _normal((self.items, self.users), means, of_users, moments, self.looked_up(latent))


@dataclass(frozen=True, eq=False)
class LatentRatings:
    """A posterior of all latent ratings."""

    users: Regressed
    items: Regressed
    """Biases b and c."""
    slopes: Regressed
    """Of users, s."""
    embeddings: Floats
    """Known, g; shape (items, dimensions)."""
    user_factors: Regressed
    item_factors: Regressed
    """Factors of users, p, and of items, q."""

    @classmethod
    def of_biases(cls, users: Regressed, items: Regressed) -> Self:
        """Return latent ratings that are sums of two biases alone."""
        n_users, n_items = len(users.means), len(items.means)
        of_users = Regressed.at(np.zeros((n_users, 0)), users.features, variance=1.0, spread=1.0)
        of_items = Regressed.at(np.zeros((n_items, 0)), items.features, variance=1.0, spread=1.0)
        return cls(users, items, of_users, np.zeros((n_items, 0)), of_users, of_items)

    def means(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the means of the latent ratings of cells, shape (cells,)."""
        # Where item sets are hidden, the first of two dimensions is a propensity: no part of a rating.
        of_user, of_item = self.users.biases[:, None], self.items.biases[:, None]
        of_users = np.hstack([of_user, np.ones_like(of_user), self.slopes.means, self.user_factors.means])
        of_items = np.hstack([np.ones_like(of_item), of_item, self.embeddings, self.item_factors.means])
        return inner_products(of_users, of_items, users, items)

    def variances(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the variances of the latent ratings of cells, shape (cells,)."""
        embeddings, item_factors = self.embeddings[items], self.item_factors.second_moments[items]
        user_factors = self.user_factors.means[users]
        return (
            self.users.variances[users]
            + self.items.variances[items]
            + np.einsum("cd,cd->c", _times(self.slopes.covariances[users], embeddings), embeddings)
            + np.einsum("cde,cde->c", self.user_factors.covariances[users], item_factors)
            + np.einsum("cd,cd->c", _times(self.item_factors.covariances[items], user_factors), user_factors)
        )

    def with_item_biases(self, cells: Cells) -> Self:
        """Solve the item biases; counts tell about their regression only."""
        latent = self.means(cells.users, cells.items)
        ones = np.ones_like(self.users.means)
        equations = cells.about_items(latent, self.items.means, ones, ones[:, :, None])
        of_coefficients = None
        if cells.counts is not None:
            linearised, coefficients = cells.counts.at(latent), self.items.coefficients[:, 0]
            of_coefficients = cells.counts.about_coefficients(
                linearised, cells.counted, self.items.features, coefficients, self.users.variances
            )
        return replace(self, items=self.items.solved(*equations, of_coefficients))

    def with_user_biases(self, cells: Cells) -> Self:
        """Solve the user biases."""
        latent = self.means(cells.users, cells.items)
        ones = np.ones_like(self.items.means)
        return replace(
            self,
            users=self.users.solved(*cells.about_users(latent, self.users.means, ones, ones[:, :, None])),
        )

    def with_slopes(self, cells: Cells) -> Self:
        """Solve the user slopes, and learn their variances."""
        latent = self.means(cells.users, cells.items)
        outer = self.embeddings[:, :, None] * self.embeddings[:, None, :]
        equations = cells.about_users(latent, self.slopes.means, self.embeddings, outer)
        return replace(self, slopes=self.slopes.posterior(*equations).learned())

    def with_item_factors(self, cells: Cells, *, learn: bool) -> Self:
        """Solve the item factors; learn their variances if asked to."""
        latent, user_factors = self.means(cells.users, cells.items), self.user_factors
        equations = cells.about_items(
            latent, self.item_factors.means, user_factors.means, user_factors.second_moments
        )
        item_factors = self.item_factors.posterior(*equations)
        return replace(self, item_factors=item_factors.learned() if learn else item_factors)

    def with_user_factors(self, cells: Cells) -> Self:
        """Solve the user factors, learn their variances, and move their scale to the item factors."""
        latent, item_factors = self.means(cells.users, cells.items), self.item_factors
        equations = cells.about_users(
            latent, self.user_factors.means, item_factors.means, item_factors.second_moments
        )
        user_factors = self.user_factors.posterior(*equations).learned()
        scale = np.sqrt(user_factors.spreads + user_factors.regressed.var(axis=0))
        return replace(
            self, user_factors=user_factors.scaled(1 / scale), item_factors=self.item_factors.scaled(scale)
        )


def _normal(
    cells: tuple[Int32s, Int32s],
    means: Floats,
    vectors: Floats,
    moments: Floats,
    derivatives: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Return the normal equations of the owners' vectors: ``precision`` and ``target``.

    ``cells``: owners and others; ``means``: means of the owners' vectors; ``vectors``, ``moments``: means and
    second moments of the others'; ``derivatives``: slopes and information of the reports.
    """
    from dprec.kernels.effects import normal_equations

    (owners, dimensions), target = means.shape, np.zeros_like(means)
    precision = np.zeros((owners, dimensions * dimensions))
    flat = moments.reshape(len(vectors), precision.shape[1])
    normal_equations(precision, target, *cells, means, vectors, flat, *derivatives)
    return precision.reshape(owners, dimensions, dimensions), target


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return (matrices @ vectors[:, :, None])[:, :, 0]
