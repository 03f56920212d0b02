"""Biased matrix factorisation by alternating least squares, with learned ridges.

The model is r_ui = mean + b_u + c_i + p_u . q_i + noise. The ridge of each least-squares problem is
the noise variance times the inverse of a prior covariance; both are re-estimated after every sweep. Priors
under which factors are correlated do not change the model, since there are axes along which the factors are
not (`PrincipalAxes`); but they spare the sweeps that would turn the factors towards these
axes (the transformations of Luttinen and Ilin [luttinen2010]). The prior variance of an axis that the data do
not support shrinks to nothing, and the axis is then dropped, so that a rank above what the data support
costs little time and no accuracy. The iteration is described below.

Principal axes of a low-rank model, along which the factors of both sides are uncorrelated.

Factors p_u and q_i predict the same as A^T p_u and A^-1 q_i, for every invertible A. One choice of A
makes the prior covariances of both sides diagonal, and equal. Along these axes, a factor that the data do not
support is one axis of small variance, rather than a part of every factor.

Alternating least squares that accounts for uncertainty, with a weight for every cell.

The model is r_ui = mean + b_u + c_i + p_u . q_i + noise, with every parameter normal around 0, and the
noise of each cell normal with its own precision (one over variance). A half step solves the least-squares
problems of one side for all users (or all items) at once. It keeps the covariance of the solution, over
which the Gram matrices of the other side are then averaged; the prior variances are re-estimated from the
same posterior. The iteration therefore suits both clean ratings and ratings drowned in privacy noise,
with nothing to tune. This is the variational Bayesian form of alternating least squares (Lim and Teh
[lim2007]), with user and item biases as a factor whose other half is fixed to 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import block_diag

from dprec.arrays import Bools, Floats
from dprec.completion import factors
from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors
from dprec.components import option
from dprec.errors import InputError, RunError, SettingError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

SMALLEST_VARIANCE = 1e-9
"""Least estimate of a variance, in squared rating units: keeps exact fits finite."""

_ROWS = 1 << 10
"""Entities that are solved together: enough blocks for every processor, small enough for its cache."""

_CELL_BLOCK = 1 << 12
"""Cells whose moments are gathered at once; a block's tables fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class WeightedCells:
    """The observed cells of one side: ``w`` and ``w r`` of each cell, and the sum of ``w r^2``."""

    weights: sp.csr_array
    targets: sp.csr_array
    square_sum: float

    @classmethod
    def of(cls, positions: sp.csr_array, residuals: Floats, weights: NDArray[np.floating]) -> WeightedCells:
        """Arrange cells by the pattern whose data are their positions (`Observations.by_user`)."""
        structure, shape = (positions.indices, positions.indptr), positions.shape
        targets = weights * residuals
        # Not a dot product: at this length BLAS uses threads, and the order of its sums is not fixed.
        square_sum = float((targets * residuals).sum())
        return cls(
            sp.csr_array((weights[positions.data], *structure), shape=shape),
            sp.csr_array((targets[positions.data], *structure), shape=shape),
            square_sum,
        )


@dataclass(frozen=True, eq=False)
class Side:
    """Posterior of one side: column 0 is the bias, the others are the factors.

    ``means`` have shape (entities, 1 + rank), ``covariances`` (entities, packed), upper triangles; ``prior``
    is the prior covariance of every entity.
    """

    means: Floats
    covariances: Floats
    prior: Floats

    @classmethod
    def at_zero(cls, entities: int, rank: int, spread: float, sharing: int) -> Side:
        """Start at zero, where ``sharing`` factors together have the prior variance of a bias."""
        width = 1 + rank
        # A fifth of the spread per side is the right order of magnitude; the sweeps learn the rest.
        variances = np.full(width, max(0.2 * spread, SMALLEST_VARIANCE))
        variances[1:] = np.sqrt(variances[1:] / sharing)
        packed = width * (width + 1) // 2
        return cls(np.zeros((entities, width)), np.zeros((entities, packed)), np.diag(variances))

    @classmethod
    def at_random(cls, entities: int, rank: int, spread: float, sharing: int, seed: int) -> Side:
        """Start with factors drawn from their prior, biases at zero; see `at_zero`."""
        side = cls.at_zero(entities, rank, spread, sharing)
        draws = generator(seed, "initial factors").standard_normal((entities, rank))
        side.means[:, 1:] = draws * np.sqrt(np.diag(side.prior)[1:])
        return side

    def solve(self, cells: WeightedCells, other: Side, noise: float = 1.0) -> tuple[Side, float]:
        """Solve this side given the other.

        With x the other side's factors, a constant 1 in place of its bias c, and w the weights, the normal
        equations of an entity are (sum w E[x x^T] / noise + prior^-1) mean = sum w E[x (r - c)] / noise.
        """
        summed, reaching = other.seen_from_the_other_side(cells.weights.dtype)
        prior_precision = np.linalg.inv(self.prior)
        width, packed = self.means.shape[1], self.covariances.shape[1]
        means = np.empty_like(self.means)
        covariances = np.empty_like(self.covariances)

        def solve_rows(rows: slice) -> float:
            sums = factors.sparse_product(cells.weights[rows], summed)
            reached = cells.targets[rows] @ reaching
            gram = factors.unpack(sums[:, :packed])
            target = reached[:, :width] - sums[:, packed : packed + width]
            inverse = np.linalg.inv(gram / noise + prior_precision).astype(np.float64, copy=False)
            means[rows] = np.einsum("ijk,ik->ij", inverse, target) / noise
            covariances[rows] = factors.pack(inverse)
            second = means[rows, :, None] * means[rows, None, :] + inverse
            misfit = sums[:, -1].sum() - 2 * reached[:, -1].sum()
            return float(
                misfit + np.einsum("ijk,ijk->", gram, second) - 2 * np.einsum("ij,ij->", means[rows], target)
            )

        misfit = cells.square_sum + sum(factors.map_blocks(solve_rows, len(means), _ROWS))
        if not np.isfinite(misfit):
            raise np.linalg.LinAlgError(f"sum of squared residuals {misfit}")
        return Side(means, covariances, self.prior), misfit

    def seen_from_the_other_side(self, precision: np.dtype[Any]) -> tuple[list[NDArray[np.floating]], Floats]:
        """Return the terms that the other side's problems sum over their cells, one row per entity.

        ``precision``: of what is summed with the weights: theirs, since SciPy would convert it in every
        product. Returns ``summed``, shape (entities, packed + width + 1): column blocks, summed with the
        cells' weights: E[x x^T] as a packed triangle, E[x c], E[c^2]. One product over the pattern serves the
        Gram matrices, the right-hand sides and the misfit; ``reaching``, shape (entities, width + 1): summed
        with weight times residual: E[x] and E[c].
        """
        width, packed = self.means.shape[1], self.covariances.shape[1]
        reaching = np.hstack([self.means, self.means[:, :1]])
        reaching[:, 0] = 1.0
        summed = np.empty((len(self.means), packed + width + 1), dtype=precision)

        def fill(rows: slice) -> None:
            design, biases, uncertain = reaching[rows, :width], self.means[rows, :1], self.covariances[rows]
            summed[rows, :packed] = factors.packed_outer(design)
            summed[rows, width:packed] += uncertain[:, width:]
            summed[rows, packed:-1] = design * biases
            summed[rows, packed + 1 : -1] += uncertain[:, 1:width]
            summed[rows, -1:] = biases**2 + uncertain[:, :1]

        factors.map_blocks(fill, len(summed), _ROWS)
        return factors.column_blocks(summed), reaching

    def with_learned_variances(self) -> Side:
        """Re-estimate the prior variances from the posterior (empirical Bayes), without correlations."""
        width = self.means.shape[1]
        diagonal = np.cumsum(np.r_[0, np.arange(width, 1, -1)])
        variances = (self.means**2 + self.covariances[:, diagonal]).mean(axis=0)
        return replace(self, prior=np.diag(np.maximum(variances, SMALLEST_VARIANCE)))

    def with_learned_covariance(self) -> Side:
        """Re-estimate the prior from the posterior; factors may be correlated, with each other only."""
        prior = self.second_moments() + SMALLEST_VARIANCE * np.eye(self.means.shape[1])
        prior[0, 1:] = prior[1:, 0] = 0.0
        return replace(self, prior=prior)

    def transformed(self, matrix: Floats) -> Side:
        """Return the side whose factors are ``matrix @ factors``."""
        whole = block_diag(1.0, matrix)
        means = np.empty((len(self.means), len(whole)))
        covariances = np.empty((len(means), factors.packed_places(len(whole)).max() + 1))

        def transform(rows: slice) -> None:
            means[rows] = self.means[rows] @ whole.T
            covariances[rows] = factors.pack(whole @ factors.unpack(self.covariances[rows]) @ whole.T)

        factors.map_blocks(transform, len(means), _ROWS)
        return Side(means, covariances, whole @ self.prior @ whole.T)

    def second_moments(self) -> Floats:
        """Return the mean of E[x x^T] over the entities, shape (1 + rank, 1 + rank)."""

        def moments(rows: slice) -> Floats:
            total: Floats = (factors.packed_outer(self.means[rows]) + self.covariances[rows]).sum(axis=0)
            return total

        total = np.sum(factors.map_blocks(moments, len(self.means), _ROWS), axis=0, keepdims=True)
        mean: Floats = factors.unpack(total / len(self.means))[0]
        return mean

    def divergence(self) -> float:
        """Return the Kullback-Leibler divergence of the posterior from the prior, over all entities."""

        def log_determinants(rows: slice) -> float:
            return float(np.linalg.slogdet(factors.unpack(self.covariances[rows]))[1].sum())

        log_determinant = sum(factors.map_blocks(log_determinants, len(self.means), factors.BLOCK))
        entities, width = self.means.shape
        spread = np.trace(np.linalg.solve(self.prior, self.second_moments())) - width
        return float(entities * (spread + np.linalg.slogdet(self.prior)[1]) - log_determinant) / 2

    def extended(self, one: int) -> tuple[Floats, Floats]:
        """Return means and packed second moments with a constant 1 inserted at column ``one``.

        Users extended at 1 are (bias, 1, factors) and items at 0 are (1, bias, factors), so the
        expected rating is their inner product.
        """
        width = self.means.shape[1]
        means = np.insert(self.means, one, 1.0, axis=1)
        upper, lower = np.triu_indices(width + 1)
        uncertain = np.flatnonzero((upper != one) & (lower != one))
        moments = factors.packed_outer(means)
        moments[:, uncertain] += self.covariances
        return means, moments


def expected_squares(users: Side, items: Side, observations: Observations, residuals: Floats) -> Floats:
    """Return E[(r_ui - b_u - c_i - p_u . q_i)^2] of every cell under the posterior, shape (cells,)."""
    user_means, user_moments = users.extended(1)
    item_means, item_moments = items.extended(0)
    width = user_means.shape[1]
    upper, lower = np.triu_indices(width)
    # An off-diagonal entry of a packed triangle counts twice.
    user_table = np.hstack([user_moments * np.where(upper == lower, 1.0, 2.0), user_means])
    item_table = np.hstack([item_moments, item_means])
    squares = np.empty_like(residuals)

    def fill(cells: slice) -> None:
        left, right = user_table[observations.users[cells]], item_table[observations.items[cells]]
        expected = np.einsum("ij,ij->i", left[:, -width:], right[:, -width:])
        second = np.einsum("ij,ij->i", left[:, :-width], right[:, :-width])
        squares[cells] = second + residuals[cells] * (residuals[cells] - 2 * expected)

    for _ in factors.map_blocks(fill, residuals.size, _CELL_BLOCK):
        pass
    return np.maximum(squares, 0.0)


def factors_of(
    mean: float, users: Side, items: Side, *, diagnostics: dict[str, Any], notes: tuple[str, ...] = ()
) -> factors.BiasedFactors:
    """Return the model at the posterior means."""
    return factors.BiasedFactors(
        mean,
        users.means[:, 0],
        items.means[:, 0],
        users.means[:, 1:],
        items.means[:, 1:],
        diagnostics=diagnostics,
        notes=notes,
    )


@contextmanager
def naming_iteration(method: str, iteration: int) -> Iterator[None]:
    """Turn a failure of the algebra into a `RunError` that states where and why."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise RunError(f"{method} failed in iteration {iteration}: {error}") from error


def check_rank(rank: int, shape: tuple[int, int]) -> None:
    """Refuse a rank that is too large for a catalogue of ``shape`` users x items, or one without factors."""
    if min(shape) < 2:
        found = f"users x items = {shape[0]} x {shape[1]}"
        raise InputError("ratings", found, "at least 2 of each, for a completion with factors")
    if rank >= min(shape):
        accepted = f"less than {min(shape)}, the smaller of the numbers of users and items"
        raise SettingError("rank", str(rank), accepted)


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
