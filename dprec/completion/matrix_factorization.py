"""Biased matrix factorisation by alternating least squares, with learned ridges.

The model is r_ui = mean + b_u + c_i + p_u . q_i + noise. The ridge of each least-squares problem is
the noise variance times the inverse of a prior covariance; both are re-estimated after every sweep. Priors
under which factors are correlated do not change the model, since there are axes along which the factors are
not (`PrincipalAxes`); but they spare the sweeps that would turn the factors towards these
axes (the transformations of Luttinen and Ilin [luttinen2010]). The prior variance of an axis that the data do
not support shrinks to nothing, and the axis is then dropped, so that a rank above what the data support
costs little time and no accuracy. See `dprec.completion.variational` for the iteration.

Principal axes of a low-rank model, along which the factors of both sides are uncorrelated.

Factors p_u and q_i predict the same as A^T p_u and A^-1 q_i, for every invertible A. One choice of A
makes the prior covariances of both sides diagonal, and equal. Along these axes, a factor that the data do not
support is one axis of small variance, rather than a part of every factor.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from dprec.arrays import Bools, Floats
from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors
from dprec.completion.variational import (
    SMALLEST_VARIANCE,
    Side,
    WeightedCells,
    check_rank,
    factors_of,
    naming_iteration,
)
from dprec.components import option
from dprec.observations import Observations
from dprec.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The axes of two sides, by descending variance.

    ``of_users`` and ``of_items``, shape (rank, rank), turn the factors of a side into those along the axes,
    one row per axis; ``variances`` are of what each axis adds to a rating, in squared rating units.
    """

    of_users: Floats
    of_items: Floats
    variances: Floats

    @classmethod
    def between(cls, users: Side, items: Side) -> Self:
        """Find the axes of the priors of both sides."""
        root = np.linalg.cholesky(users.prior[1:, 1:])
        variances, directions = np.linalg.eigh(root.T @ items.prior[1:, 1:] @ root)
        variances, directions = variances[::-1], directions[:, ::-1]
        scales = variances**0.25
        of_users = scales[:, None] * np.linalg.solve(root.T, directions).T
        of_items = (root @ directions / scales).T
        return cls(of_users, of_items, variances)

    def explained_variances(self, users: Side, items: Side) -> Floats:
        """Return the variance, in squared ratings, that each axis adds to all cells, shape (rank,)."""
        along = users.means[:, 1:] @ self.of_users.T, items.means[:, 1:] @ self.of_items.T
        variances: Floats = np.mean(along[0] ** 2, axis=0) * np.mean(along[1] ** 2, axis=0)
        return variances

    def kept(self, kept: Bools, users: Side, items: Side) -> tuple[Side, Side]:
        """Return both sides along some of the axes, as if the factors along the others were known to be 0."""
        return users.transformed(self.of_users[kept]), items.transformed(self.of_items[kept])


_DEFAULT_RANK = 20
"""Enough for any ratings seen so far; the priors drop what is too much."""

_FEWEST_SWEEPS = 10
"""The noise variance hardly changes for a few sweeps, until the factors have left their random start."""

_CALM_SWEEPS = 2
"""Where the noise variance turns to rising, as factors vanish, it hardly changes for one sweep."""

_SWEEPS_BEFORE_DROPPING = 5
"""What an axis explains may fall at first, until it has found its direction, and rise from then on."""

_NEGLIGIBLE = 1e-5
"""Share of the noise variance below which an axis that explains less and less has vanished."""


@dataclass(frozen=True, kw_only=True)
class MatrixFactorization(Completion):
    """Biased matrix factorisation by alternating least squares, ridges learned from the data."""

    kind: Literal["mf"] = "mf"
    rank: int | None = option(
        f"Number of factors, at most; by default {_DEFAULT_RANK}, or as many as the catalogue allows.",
        None,
        ge=1,
    )
    iterations: int = option("Sweeps over users and items, at most.", 60, ge=1)
    tolerance: float = option("Relative change of the noise variance that ends the sweeps.", 1e-4, ge=0)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank or 1, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`."""
        mean, size = observations.mean, observations.values.size
        residuals = observations.values - mean
        spread = float(residuals.var()) if size else 1.0
        noise = max(spread, SMALLEST_VARIANCE)
        rank = self.rank or min(_DEFAULT_RANK, min(observations.shape) - 1)
        # From a narrower start, some factors that the data support would vanish.
        users = Side.at_zero(observations.shape[0], rank, spread, sharing=1)
        items = Side.at_random(observations.shape[1], rank, spread, sharing=1, seed=seed)
        # Half of the memory and of the time; the sums of a sweep need no more digits.
        ones = np.ones(size, dtype=np.float32)
        by_user = WeightedCells.of(observations.by_user, residuals, ones)
        by_item = WeightedCells.of(observations.by_item, residuals, ones)
        explained = np.zeros(rank)
        done = calm = 0
        for sweep in range(self.iterations if size else 0):
            with naming_iteration("matrix factorisation", sweep + 1):
                users, _ = users.solve(by_user, items, noise)
                items, misfit = items.solve(by_item, users, noise)
            previous, noise = noise, max(misfit / size, SMALLEST_VARIANCE)
            users, items = users.with_learned_covariance(), items.with_learned_covariance()
            done = sweep + 1
            if done >= _SWEEPS_BEFORE_DROPPING:
                users, items, explained = _without_vanished(users, items, noise, explained)
            progress("completing", done, self.iterations)
            calm = calm + 1 if abs(previous - noise) <= self.tolerance * previous else 0
            if calm >= _CALM_SWEEPS and done >= _FEWEST_SWEEPS:
                break
        return factors_of(
            mean,
            users,
            items,
            diagnostics={
                "sweeps": done,
                "noise_variance": noise,
                "ridge_user_effect": noise / users.prior[0, 0],
                "ridge_item_effect": noise / items.prior[0, 0],
                "ridge_factors": (noise / PrincipalAxes.between(users, items).variances).tolist(),
            },
        )


def _without_vanished(users: Side, items: Side, noise: float, before: Floats) -> tuple[Side, Side, Floats]:
    """Drop the axes that have vanished, which a learned prior shrinks to nothing, faster and faster."""
    axes = PrincipalAxes.between(users, items)
    explained = axes.explained_variances(users, items)
    kept = (explained >= _NEGLIGIBLE * noise) | (explained >= before)
    if not kept.all():
        users, items = axes.kept(kept, users, items)
    return users, items, explained[kept]
