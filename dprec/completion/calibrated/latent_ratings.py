"""The latent ratings of the calibrated completion, and their posterior given reports.

theta_ui = b_u + c_i + s_u . g_i + p_u . q_i: biases of the user and of the item, the user's slopes over the
item's known place, and factors of both. Everything is regressed on features, so that factors have a direction
before they have much evidence. The posterior is a product of those of the five parts; each is solved given
the moments of the others, as in variational matrix factorisation (Lim and Teh [lim2007], section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dprec.completion.calibrated.latent_ratings import Cells, CountLikelihood
from dprec.completion.calibrated.regressions import RegressedBiases, RegressedVectors

LookedUp = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""From latent ratings of all cells to the slope of each report's log likelihood, and its information."""


@dataclass(frozen=True, eq=False)
class LatentRatings:
    """A posterior of all latent ratings."""

    users: RegressedBiases
    items: RegressedBiases
    """Effects b and c."""
    slopes: RegressedVectors
    """Of users, s."""
    embeddings: NDArray[np.float64]
    """Known, g; shape (items, places)."""
    user_factors: RegressedVectors
    item_factors: RegressedVectors
    """Factors of users, p, and of items, q."""

    @classmethod
    def of_biases(cls, users: RegressedBiases, items: RegressedBiases) -> LatentRatings:
        """Return latent ratings that are sums of two effects alone."""
        n_users, n_items = users.means.size, items.means.size
        of_users = RegressedVectors.at(np.zeros((n_users, 0)), users.features, variance=1.0, spread=1.0)
        of_items = RegressedVectors.at(np.zeros((n_items, 0)), items.features, variance=1.0, spread=1.0)
        return cls(users, items, of_users, np.zeros((n_items, 0)), of_users, of_items)

    def means(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the means of the latent ratings of cells, shape (cells,)."""
        latent: NDArray[np.float64] = (
            self.users.means[users]
            + self.items.means[items]
            + _dots(self.slopes.means[users], self.embeddings[items])
            + _dots(self.user_factors.means[users], self.item_factors.means[items])
        )
        return latent

    def variances(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the variances of the latent ratings of cells, shape (cells,)."""
        embeddings, item_factors = self.embeddings[items], self.item_factors.second_moments[items]
        user_factors = self.user_factors.means[users]
        variances: NDArray[np.float64] = (
            self.users.variances[users]
            + self.items.variances[items]
            + _dots(_times(self.slopes.covariances[users], embeddings), embeddings)
            + np.einsum("cde,cde->c", self.user_factors.covariances[users], item_factors)
            + _dots(_times(self.item_factors.covariances[items], user_factors), user_factors)
        )
        return variances

    def with_item_biases(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> LatentRatings:
        """Solve the items' effects; counts tell about their regression only."""
        latent = self.means(cells.users, cells.items)
        precision, target = _sums(self.items, cells.items, latent, looked_up)
        rows = None
        if counts is not None:
            features = self.items.features[cells.items[counts.counts.cells]]
            linearised = counts.at(latent)
            rows = counts.about_coefficients(
                linearised, features, self.items.coefficients, self.users.variances
            )
        return replace(self, items=self.items.solved(precision, target, rows))

    def with_user_biases(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> LatentRatings:
        """Solve the users' effects."""
        latent = self.means(cells.users, cells.items)
        precision, target = _sums(self.users, cells.users, latent, looked_up)
        more = _counted(cells, latent, counts, np.ones((cells.shape[1], 1)), self.users.means[:, None])
        return replace(self, users=self.users.solved(precision + more[0][:, 0, 0], target + more[1][:, 0]))

    def with_slopes(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> LatentRatings:
        """Solve the users' slopes, and learn their variances."""
        latent = self.means(cells.users, cells.items)
        own = _dots(self.slopes.means[cells.users], self.embeddings[cells.items])
        score, information = _scored(latent, looked_up, own)
        outer = self.embeddings[:, :, None] * self.embeddings[:, None, :]
        precision, target = cells.by_user(information, outer), cells.by_user(score, self.embeddings)
        more = _counted(cells, latent, counts, self.embeddings, self.slopes.means)
        slopes = self.slopes.solved(precision + more[0], target + more[1]).learned()
        return replace(self, slopes=slopes)

    def with_item_factors(self, cells: Cells, looked_up: LookedUp, *, learn: bool) -> LatentRatings:
        """Solve the items' factors; learn their variances if asked to."""
        latent = self.means(cells.users, cells.items)
        score, information = _scored(latent, looked_up, self._products(cells))
        item_factors = self.item_factors.solved(
            cells.by_item(information, self.user_factors.second_moments),
            cells.by_item(score, self.user_factors.means),
        )
        return replace(self, item_factors=item_factors.learned() if learn else item_factors)

    def with_user_factors(
        self, cells: Cells, looked_up: LookedUp, counts: CountLikelihood | None = None
    ) -> LatentRatings:
        """Solve the users' factors, learn their variances, and move their scale to the items' factors."""
        latent = self.means(cells.users, cells.items)
        score, information = _scored(latent, looked_up, self._products(cells))
        precision = cells.by_user(information, self.item_factors.second_moments)
        target = cells.by_user(score, self.item_factors.means)
        more = _counted(cells, latent, counts, self.item_factors.means, self.user_factors.means)
        user_factors = self.user_factors.solved(precision + more[0], target + more[1]).learned()
        scale = np.sqrt(user_factors.spreads + user_factors.regressed.var(axis=0))
        return replace(
            self, user_factors=user_factors.scaled(1 / scale), item_factors=self.item_factors.scaled(scale)
        )

    def _products(self, cells: Cells) -> NDArray[np.float64]:
        return _dots(self.user_factors.means[cells.users], self.item_factors.means[cells.items])


def _sums(
    side: RegressedBiases, owners: NDArray[np.integer], latent: NDArray[np.float64], looked_up: LookedUp
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the precision and the target of each effect of a side."""
    score, information = _scored(latent, looked_up, side.means[owners])
    precision, target = (
        np.bincount(owners, weights=weights, minlength=side.means.size) for weights in (information, score)
    )
    return precision.astype(np.float64), target.astype(np.float64)


def _counted(
    cells: Cells,
    latent: NDArray[np.float64],
    counts: CountLikelihood | None,
    of_items: NDArray[np.float64],
    of_users: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what counts add to the precisions and targets of users' vectors; see `about_users`."""
    if counts is None:
        return np.zeros((*of_users.shape, of_users.shape[1])), np.zeros_like(of_users)
    return counts.about_users(counts.at(latent), of_items[cells.items[counts.counts.cells]], of_users)


def _scored(
    latent: NDArray[np.float64], looked_up: LookedUp, own: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weight times pseudo-observation of one part of each latent rating, and the weights.

    Fisher scoring: the weight is the information of a report, the pseudo-observation ``own`` + slope /
    weight. Their product needs no division.
    """
    slopes, information = looked_up(latent)
    return information * own + slopes, information


def _dots(rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.einsum("cd,cd->c", rows, others)
    return products


def _times(matrices: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = (matrices @ vectors[:, :, None])[:, :, 0]
    return products
