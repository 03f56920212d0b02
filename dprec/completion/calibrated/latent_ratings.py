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
import scipy.sparse as sp
from scipy.special import log_ndtr, ndtr

from dprec.arrays import AnyInts, Floats, Ints, offsets
from dprec.completion.calibrated.regressions import Regressed
from dprec.observations import NoisyCounts

_LEAST_VARIANCE = 0.01
"""Variance that a count has at least beside its noise, so that its density is smooth."""

_LEAST_RESIDUAL = 1e-4
"""Smallest residual in scales of the noise; it stands for those nearer to 0."""


@dataclass(frozen=True, eq=False)
class _CountSlopes:
    """What noisy counts say at some latent ratings."""

    slopes: Floats
    """By how much an expected count grows with the latent rating of each of its cells;
    shape (counted cells,).
    """
    scores: Floats
    information: Floats
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
    def of(cls, counts: NoisyCounts, cuts: Floats) -> Self:
        """Return the likelihood, given where the latent rating changes level, shape (levels - 1,)."""
        return cls(counts, float(cuts[counts.least_level - 2]))

    def at(self, latent: Floats) -> _CountSlopes:
        """Return what the counts say at the latent ratings of all observed cells, shape (cells,)."""
        offsets = latent[self.counts.cells] - self.cut
        shares = ndtr(offsets)
        slopes = np.exp(-(offsets**2) / 2) / np.sqrt(2 * np.pi)
        expected, variances = self.sums(shares), np.maximum(self.sums(shares * (1 - shares)), _LEAST_VARIANCE)
        epsilons = self.counts.epsilons
        residuals = (self.counts.values - expected) * epsilons
        residuals = np.where(np.abs(residuals) < _LEAST_RESIDUAL, _LEAST_RESIDUAL, residuals)
        scores = _scores(residuals, variances * epsilons**2)
        return _CountSlopes(slopes, epsilons * scores, epsilons**2 * scores / residuals)

    def sums(self, of_cells: Floats) -> Floats:
        """Add up numbers of the counted cells by row, shape (rows,)."""
        rows = self.counts.sizes.size
        return np.bincount(self.counts.row_of, weights=of_cells, minlength=rows).astype(np.float64)

    def _row_sums(self, of_cells: Floats) -> Floats:
        sums = [self.sums(column) for column in of_cells.T]
        return np.stack(sums, axis=1) if sums else np.zeros((self.counts.sizes.size, 0))

    def about_users(
        self, linearised: _CountSlopes, designs: Floats, vectors: Floats
    ) -> tuple[Floats, Floats]:
        """Return what the counts add to the normal equations of users' vectors.

        ``designs``, shape (counted cells, dimensions): by what a user's vector is multiplied in the latent
        rating of each counted cell; ``vectors``, shape (users, dimensions). Returns ``precision``, shape
        (users, dimensions, dimensions); ``target``, shape (users, dimensions).
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
        self, linearised: _CountSlopes, features: Floats, coefficients: Floats, variances: Floats
    ) -> tuple[Floats, Floats]:
        """Return what the counts add to the normal equations of a regression of the item biases.

        ``features``, shape (counted cells, features): those of each counted cell's item; ``coefficients``,
        shape (features,); ``variances``, shape (users,): how uncertain the user biases are: a count says less
        about items where they are. Returns ``precision``, shape (features, features); ``target``, shape
        (features,).
        """
        rows = self._row_sums(linearised.slopes[:, None] * features)
        uncertain = self.sums(linearised.slopes) ** 2 * variances[self.counts.users]
        known = 1 / (1 + linearised.information * uncertain)
        precision = (rows * (known * linearised.information)[:, None]).T @ rows
        return precision, rows.T @ (known * linearised.scores) + precision @ coefficients


def _scores(residuals: Floats, variances: Floats) -> Floats:
    """Return minus the derivative of the log density of Laplace(0, 1) plus Normal(0, variance) noise."""
    spreads = np.sqrt(variances)
    # The logarithms of the density's two parts, with Laplace noise above 0 and below.
    above = -residuals + log_ndtr(residuals / spreads - spreads)
    below = residuals + log_ndtr(-residuals / spreads - spreads)
    scores: Floats = np.tanh((above - below) / 2)
    return scores


@dataclass(frozen=True, eq=False)
class Cells:
    """Rated cells, by user."""

    users: AnyInts
    items: AnyInts
    """Users ascending; shape (cells,)."""
    shape: tuple[int, int]
    """Users and items of the whole catalogue."""

    def by_user(self, weights: Floats, of_items: Floats) -> Floats:
        """Return for each user the sum of weight times what belongs to the item, over the user's cells."""
        return _cells_times(self._matrix(weights), of_items)

    def by_item(self, weights: Floats, of_users: Floats) -> Floats:
        """Return for each item the same sum over its cells, shape (items, ...)."""
        return _cells_times(self._matrix(weights).T, of_users)

    @cached_property
    def _indptr(self) -> Ints:
        return offsets(np.bincount(self.users, minlength=self.shape[0]))

    def _matrix(self, weights: Floats) -> sp.csr_array:
        return sp.csr_array((weights, self.items, self._indptr), shape=self.shape)


def _cells_times(matrix: sp.csr_array, values: Floats) -> Floats:
    sums: Floats = matrix @ values.reshape(len(values), -1)
    return sums.reshape(matrix.shape[0], *values.shape[1:])


LookedUp = Callable[[Floats], tuple[Floats, Floats]]
"""From latent ratings of all cells to the slope of each report's log likelihood, and its information."""


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
        latent: Floats = (
            self.users.biases[users]
            + self.items.biases[items]
            + _dots(self.slopes.means[users], self.embeddings[items])
            + _dots(self.user_factors.means[users], self.item_factors.means[items])
        )
        return latent

    def variances(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the variances of the latent ratings of cells, shape (cells,)."""
        embeddings, item_factors = self.embeddings[items], self.item_factors.second_moments[items]
        user_factors = self.user_factors.means[users]
        variances: Floats = (
            self.users.variances[users]
            + self.items.variances[items]
            + _dots(_times(self.slopes.covariances[users], embeddings), embeddings)
            + np.einsum("cde,cde->c", self.user_factors.covariances[users], item_factors)
            + _dots(_times(self.item_factors.covariances[items], user_factors), user_factors)
        )
        return variances

    def with_item_biases(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> Self:
        """Solve the item biases; counts tell about their regression only."""
        latent = self.means(cells.users, cells.items)
        precision, target = _sums(self.items, cells.items, latent, looked_up)
        rows = None
        if counts is not None:
            features = self.items.features[cells.items[counts.counts.cells]]
            linearised = counts.at(latent)
            rows = counts.about_coefficients(
                linearised, features, self.items.coefficients[:, 0], self.users.variances
            )
        return replace(self, items=self.items.solved(precision, target, rows))

    def with_user_biases(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> Self:
        """Solve the user biases."""
        latent = self.means(cells.users, cells.items)
        precision, target = _sums(self.users, cells.users, latent, looked_up)
        more = _counted(cells, latent, counts, np.ones((cells.shape[1], 1)), self.users.means)
        return replace(self, users=self.users.solved(precision + more[0], target + more[1]))

    def with_slopes(self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None) -> Self:
        """Solve the user slopes, and learn their variances."""
        latent = self.means(cells.users, cells.items)
        own = _dots(self.slopes.means[cells.users], self.embeddings[cells.items])
        score, information = _scored(latent, looked_up, own)
        outer = self.embeddings[:, :, None] * self.embeddings[:, None, :]
        precision, target = cells.by_user(information, outer), cells.by_user(score, self.embeddings)
        more = _counted(cells, latent, counts, self.embeddings, self.slopes.means)
        slopes = self.slopes.posterior(precision + more[0], target + more[1]).learned()
        return replace(self, slopes=slopes)

    def with_item_factors(self, cells: Cells, looked_up: LookedUp, *, learn: bool) -> Self:
        """Solve the item factors; learn their variances if asked to."""
        latent = self.means(cells.users, cells.items)
        score, information = _scored(latent, looked_up, self._products(cells))
        item_factors = self.item_factors.posterior(
            cells.by_item(information, self.user_factors.second_moments),
            cells.by_item(score, self.user_factors.means),
        )
        return replace(self, item_factors=item_factors.learned() if learn else item_factors)

    def with_user_factors(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> Self:
        """Solve the user factors, learn their variances, and move their scale to the item factors."""
        latent = self.means(cells.users, cells.items)
        score, information = _scored(latent, looked_up, self._products(cells))
        precision = cells.by_user(information, self.item_factors.second_moments)
        target = cells.by_user(score, self.item_factors.means)
        more = _counted(cells, latent, counts, self.item_factors.means, self.user_factors.means)
        user_factors = self.user_factors.posterior(precision + more[0], target + more[1]).learned()
        scale = np.sqrt(user_factors.spreads + user_factors.regressed.var(axis=0))
        return replace(
            self, user_factors=user_factors.scaled(1 / scale), item_factors=self.item_factors.scaled(scale)
        )

    def _products(self, cells: Cells) -> Floats:
        return _dots(self.user_factors.means[cells.users], self.item_factors.means[cells.items])


def _sums(side: Regressed, owners: AnyInts, latent: Floats, looked_up: LookedUp) -> tuple[Floats, Floats]:
    score, information = _scored(latent, looked_up, side.biases[owners])
    precision, target = (
        np.bincount(owners, weights=weights, minlength=len(side.means)) for weights in (information, score)
    )
    return precision.astype(np.float64)[:, None, None], target.astype(np.float64)[:, None]


def _counted(
    cells: Cells, latent: Floats, counts: CountLikelihood | None, of_items: Floats, of_users: Floats
) -> tuple[Floats, Floats]:
    """Return what counts add to the precisions and targets of users' vectors; see `about_users`."""
    if counts is None:
        return np.zeros((*of_users.shape, of_users.shape[1])), np.zeros_like(of_users)
    return counts.about_users(counts.at(latent), of_items[cells.items[counts.counts.cells]], of_users)


def _scored(latent: Floats, looked_up: LookedUp, own: Floats) -> tuple[Floats, Floats]:
    """Return weight times pseudo-observation of one part of each latent rating, and the weights.

    Fisher scoring: the weight is the information of a report, the pseudo-observation ``own`` + slope /
    weight. Their product needs no division.
    """
    slopes, information = looked_up(latent)
    return information * own + slopes, information


def _dots(rows: Floats, others: Floats) -> Floats:
    products: Floats = np.einsum("cd,cd->c", rows, others)
    return products


def _times(matrices: Floats, vectors: Floats) -> Floats:
    products: Floats = (matrices @ vectors[:, :, None])[:, :, 0]
    return products
