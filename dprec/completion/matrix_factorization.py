"""Biased matrix factorisation by alternating least squares that account for uncertainty.

The model is r_ui = mean + b_u + c_i + p_u . q_i + noise, with every parameter normal around 0, and the noise
of each cell normal with its own precision. A half step solves the least-squares problems of one side for all
users (or all items). It keeps the covariance of the solution, over which the Gram matrices of the other side
are then averaged; noise and prior covariances are re-estimated from the same posterior. The iteration
therefore suits both clean ratings and ratings drowned in privacy noise, with nothing to tune. This is the
variational Bayesian form of alternating least squares (Lim and Teh [lim2007]), with user and item biases as a
factor whose other half is fixed to 1.

Where clean ratings are sparse, sweeps beyond the first ten or so take the noise for smaller than it is and
fit chance. A few ratings are therefore held out; when these are predicted no better, one last sweep over all
ratings ends the fit.

Factors p_u and q_i predict the same as A^T p_u and A^-1 q_i, for every invertible A. So priors under which
factors are correlated do not change the model; but they spare the sweeps that would turn the factors towards
principal axes (the transformations of Luttinen and Ilin [luttinen2010]). Along these, the factors of both
sides are uncorrelated and a factor that the data do not support is one axis of small variance, rather than a
part of every factor. Its prior variance shrinks to nothing, and it is then dropped, so that a rank above
what the data support costs little time and no accuracy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Bools, Float32s, Floats, Int32s, Ints, offsets
from dprec.completion import factors
from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors, FloatT, ResultT
from dprec.components import option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

SMALLEST_VARIANCE = 1e-9
"""Least estimate of a variance, in squared rating units: keeps exact fits finite."""

_MOMENTS = 1 << 16
"""Moments of entities that are taken together: half a megabyte, which a processor's cache holds."""

_LANES = 64
"""Of so many entities, the kernel that solves takes each step at once."""

_RANGES = 16
"""Ranges of users whose sums by item are apart, so that processors share the users of one pass."""

_ONE_PASS = 8
"""From how many users per item on the items' sums are taken in the users' pass: their table is much smaller
than the users', and nothing is arranged by item.
"""


@dataclass(frozen=True, eq=False)
class CellsOfRows:
    """The cells of one side's entities, one after the other: the other entity, ``w`` and ``w r`` of each."""

    indptr: Ints
    others: Int32s
    weights: Float32s
    targets: Float32s

    def sums(self, rows: slice, moments: Float32s, linear: int) -> tuple[Floats, Floats]:
        """Return what the normal equations of some rows sum, of the other side's moments; see the kernels.

        The first are summed by weight, and ``linear`` of them by target.
        """
        from dprec.kernels.least_squares import gather

        sums, target_sums = (np.empty((rows.stop - rows.start, n)) for n in (moments.shape[1], linear))
        gather(sums, target_sums, rows.start, self.indptr, self.others, self.weights, self.targets, moments)
        return sums, target_sums


@dataclass(frozen=True, eq=False)
class WeightedCells:
    """The observed cells of both sides, by item unless there are many users; the sum of ``w r^2``."""

    by_user: CellsOfRows
    by_item: CellsOfRows | None
    square_sum: float

    @classmethod
    def of(
        cls, observations: Observations, residuals: Floats, weights: NDArray[np.floating]
    ) -> WeightedCells:
        """Arrange cells. Weights and residuals are rounded to single precision; sums are not."""
        targets = weights * residuals
        # Not a dot product: at this length BLAS uses threads, and the order of its sums is not fixed.
        square_sum = float((targets * residuals).sum())
        values = weights.astype(np.float32, copy=False), targets.astype(np.float32)
        users, items = observations.shape
        indptr = offsets(np.bincount(observations.users, minlength=users))
        by_user = CellsOfRows(indptr, observations.items, *values)
        if users > _ONE_PASS * items:
            return cls(by_user, None, square_sum)
        order = observations.by_item
        indptr, others = order.indptr.astype(np.int64), order.indices.astype(np.int32, copy=False)
        by_item = CellsOfRows(indptr, others, *(value[order.data] for value in values))
        return cls(by_user, by_item, square_sum)


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

    def moments(self, rows: slice) -> Floats:
        """Return the packed second moments of (1, bias, factors) of some entities; see the kernels."""
        from dprec.kernels.least_squares import write_moments

        means, covariances = self.means[rows], self.covariances[rows]
        moments = np.empty((len(means), 1 + means.shape[1] + covariances.shape[1]))
        write_moments(moments, means, covariances)
        return moments

    def all_moments(self, dtype: type[FloatT]) -> NDArray[FloatT]:
        """Return the moments of all entities, shape (entities, 1 + width + packed)."""
        entities, width = self.means.shape
        moments = np.empty((entities, 1 + width + self.covariances.shape[1]), dtype=dtype)

        def fill(rows: slice) -> None:
            moments[rows] = self.moments(rows)

        self.map(fill)
        return moments

    def map(self, function: Callable[[slice], ResultT]) -> list[ResultT]:
        """Apply a function to blocks of entities; see `factors.map_blocks`."""
        if 0 < len(self.means) <= self.block:
            return [function(slice(0, len(self.means)))]
        return factors.map_blocks(function, len(self.means), self.block)

    @property
    def block(self) -> int:
        """How many entities are taken together."""
        columns = int(self.means.shape[1] + self.covariances.shape[1])
        return _LANES * max(1, _MOMENTS // (_LANES * columns))

    def with_learned_variances(self) -> Side:
        """Re-estimate the prior variances from the posterior (empirical Bayes), without correlations."""
        return replace(self, prior=np.diag(np.maximum(np.diag(self.second_moments), SMALLEST_VARIANCE)))

    def with_learned_covariance(self) -> Side:
        """Re-estimate the prior from the posterior; factors may be correlated, with each other only."""
        prior = self.second_moments + SMALLEST_VARIANCE * np.eye(self.means.shape[1])
        prior[0, 1:] = prior[1:, 0] = 0.0
        return replace(self, prior=prior)

    def transformed(self, matrix: Floats) -> Side:
        """Return the side whose factors are ``matrix @ factors``."""
        from scipy.linalg import block_diag

        with_bias = block_diag(1.0, matrix)
        means = np.empty((len(self.means), len(with_bias)))
        covariances = np.empty((len(means), factors.packed_places(len(with_bias)).max() + 1))

        def transform(rows: slice) -> None:
            means[rows] = self.means[rows] @ with_bias.T
            covariances[rows] = factors.pack(with_bias @ factors.unpack(self.covariances[rows]) @ with_bias.T)

        self.map(transform)
        return Side(means, covariances, with_bias @ self.prior @ with_bias.T)

    @functools.cached_property
    def second_moments(self) -> Floats:
        """The mean of E[x x^T] over the entities, shape (1 + rank, 1 + rank)."""
        sums = self.map(lambda rows: self.moments(rows).sum(axis=0))
        total = np.sum(sums, axis=0, keepdims=True)[:, 1 + self.means.shape[1] :]
        upper, packed = np.triu_indices(self.means.shape[1]), total[0] / len(self.means)
        moments = np.empty((self.means.shape[1],) * 2)
        moments[upper] = moments.T[upper] = packed
        return moments

    def divergence(self) -> float:
        """Return the Kullback-Leibler divergence of the posterior from the prior, over all entities."""

        def log_determinants(rows: slice) -> float:
            return float(np.linalg.slogdet(factors.unpack(self.covariances[rows]))[1].sum())

        log_determinant = sum(self.map(log_determinants))
        entities, width = self.means.shape
        spread = np.trace(np.linalg.solve(self.prior, self.second_moments)) - width
        return float(entities * (spread + np.linalg.slogdet(self.prior)[1]) - log_determinant) / 2


class _Solution:
    """A side that is solved, block after block, where the one before stands.

    With x the other side's factors, a constant 1 in place of its bias c, and w the weights, the normal
    equations of an entity are (sum w E[x x^T] / noise + prior^-1) mean = sum w E[x (r - c)] / noise.
    """

    def __init__(self, side: Side, noise: float) -> None:
        self.side, self.linear = replace(side), 1 + side.means.shape[1]
        self._noise = noise
        self._precision = np.linalg.inv(side.prior).astype(np.float64, copy=False)
        self._packed = self._precision[np.triu_indices(len(self._precision))]
        self._pivots = np.diag(np.linalg.cholesky(self._precision)) ** 2

    def fill(self, rows: slice, sums: Floats, target_sums: Floats) -> float:
        """Solve some rows, given their sums; return their share of the misfit; see `misfit`."""
        from dprec.kernels.least_squares import solve

        means, covariances = self.side.means[rows], self.side.covariances[rows]
        return float(solve(means, covariances, sums, target_sums, self._packed, self._pivots, self._noise))

    def solve(self, cells: CellsOfRows, moments: Float32s) -> list[float]:
        """Solve all rows; return the shares of the misfit."""
        return self.side.map(lambda rows: self.fill(rows, *cells.sums(rows, moments, self.linear)))

    def misfit(self, shares: list[float]) -> float:
        """Return the expected sum of w (r - prediction)^2, less that of w r^2.

        The sums of w E[x x^T] are the noise times what the posterior's precision has more than the prior's.
        """
        entities, width = self.side.means.shape
        determined = width - float((self._precision * self.side.second_moments).sum())
        return float(sum(shares) + self._noise * entities * determined)


def solve_in_turn(
    users: Side, items: Side, cells: WeightedCells, noise: float = 1.0
) -> tuple[Side, Side, float]:
    """Solve the users given the items, then the items given these; return both, and the misfit.

    The misfit is the expected sum of w (r - prediction)^2. The arrays of both sides are written over.
    """
    new_users, new_items = _Solution(users, noise), _Solution(items, noise)
    moments = items.all_moments(np.float32)
    if cells.by_item is None:
        sums, target_sums = _sums_by_item(new_users, cells.by_user, moments)
        shares = items.map(lambda rows: new_items.fill(rows, sums[rows], target_sums[rows]))
    else:
        new_users.solve(cells.by_user, moments)
        shares = new_items.solve(cells.by_item, new_users.side.all_moments(np.float32))
    misfit = cells.square_sum + new_items.misfit(shares)
    if not np.isfinite(misfit):
        raise np.linalg.LinAlgError(f"sum of squared residuals {misfit}")
    return new_users.side, new_items.side, misfit


def _sums_by_item(users: _Solution, cells: CellsOfRows, moments: Float32s) -> list[Floats]:
    """Solve the users; return what the items' normal equations sum, as `CellsOfRows.sums` does.

    Sums of ranges of users, which depend on their number alone, are added up in order.
    """
    from dprec.kernels.least_squares import scatter

    def take(rows: slice) -> tuple[Floats, Floats]:
        sums, target_sums = np.zeros(moments.shape), np.zeros((len(moments), users.linear))
        for start in range(rows.start, rows.stop, users.side.block):
            block = slice(start, min(start + users.side.block, rows.stop))
            users.fill(block, *cells.sums(block, moments, users.linear))
            user_moments = users.side.moments(block)
            scatter(
                sums,
                target_sums,
                start,
                cells.indptr,
                cells.others,
                cells.weights,
                cells.targets,
                user_moments,
            )
        return sums, target_sums

    entities = len(users.side.means)
    parts = factors.map_blocks(take, entities, -(-entities // _RANGES))
    return [functools.reduce(np.add, sums_of_ranges) for sums_of_ranges in zip(*parts, strict=True)]


def expected_squares(users: Side, items: Side, observations: Observations, residuals: Floats) -> Floats:
    """Return E[(r_ui - b_u - c_i - p_u . q_i)^2] of every cell under the posterior, shape (cells,)."""
    user_moments, item_moments = users.all_moments(np.float64), items.all_moments(np.float64)
    width = 1 + users.means.shape[1]
    # Users are (1, bias, factors) and items (bias, 1, factors): what is expected is their inner product.
    swapped = np.r_[1, 0, 2:width]
    upper, lower = np.triu_indices(width)
    places = factors.packed_places(width)[swapped[upper], swapped[lower]]
    cells = observations.users, observations.items
    expected = factors.inner_products(user_moments[:, :width], item_moments[:, swapped], *cells)
    # An off-diagonal entry of a packed triangle counts twice.
    user_moments *= np.where(upper == lower, 1.0, 2.0)
    squares = factors.inner_products(user_moments, item_moments[:, places], *cells)
    squares += residuals * (residuals - 2 * expected)
    return np.maximum(squares, 0.0)


def factors_of(mean: float, users: Side, items: Side, **learned: Any) -> factors.BiasedFactors:
    """Return the model at the posterior means, with the further fields of `Completed`."""
    return factors.BiasedFactors(
        mean,
        users.means[:, 0],
        items.means[:, 0],
        users.means[:, 1:],
        items.means[:, 1:],
        **learned,
    )


@contextmanager
def naming_iteration(method: str, iteration: int) -> Iterator[None]:
    """Turn a failure of the algebra into a `RunError` that states where and why."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise RunError(f"{method} failed in iteration {iteration}: {error}") from error


def principal_axes(users: Side, items: Side) -> tuple[Floats, Floats, Floats]:
    """Return the axes of two sides, by descending variance, and the variances.

    Two matrices, shape (rank, rank), turn the factors of users and of items into those along the axes, one
    row per axis; the variances are of what each axis adds to a rating, in squared rating units.
    """
    root = np.linalg.cholesky(users.prior[1:, 1:])
    variances, directions = np.linalg.eigh(root.T @ items.prior[1:, 1:] @ root)
    variances, directions = variances[::-1], directions[:, ::-1]
    scales = variances**0.25
    of_users = scales[:, None] * np.linalg.solve(root.T, directions).T
    return of_users, (root @ directions / scales).T, variances


_DEFAULT_RANK = 20
"""Enough for any ratings seen so far; the priors drop what is too much."""

_FEWEST_SWEEPS = 10
"""The noise variance hardly changes for a few sweeps, until the factors have left their random start."""

_CALM_SWEEPS = 2
"""Where the noise variance turns to rising, as factors vanish, it hardly changes for one sweep."""

_SWEEPS_BEFORE_DROPPING = 2
"""What an axis explains may fall at first, until it has found its direction, and rise from then on."""

_NEGLIGIBLE = 1e-4
"""Share of the noise variance below which an axis that explains less and less has vanished: without it, the
RMSE is larger by less than half this share.
"""

_HELD_OUT = 0.05
"""Share of the ratings that say when to stop; chosen, with the sweeps before dropping and those below, by
benchmarks/choosing/sweeps.py.
"""

_WORSE_SWEEPS = 2
"""In so many sweeps in a row, ratings that are held out are predicted no better than before."""

_FEWEST_RATINGS = 4000
"""Of fewer, what is held out says too little."""


@dataclass(eq=False)
class _HeldOut:
    """Ratings that are not learned from: when they are predicted no better, the sweeps fit chance."""

    users: Int32s
    items: Int32s
    residuals: Floats
    least: float = np.inf
    """Least sum of squared errors so far."""
    worse: int = 0
    """Sweeps since then."""

    def worsen(self, users: Side, items: Side) -> bool:
        """Take a sweep's result; return whether the sweeps should end."""
        errors = self.residuals - factors_of(0.0, users, items).predict(self.users, self.items)
        # Not a dot product; see `WeightedCells.of`.
        squares = float((errors**2).sum())
        self.worse = 0 if squares < self.least else self.worse + bool(errors.size)
        self.least = min(self.least, squares)
        return self.worse >= _WORSE_SWEEPS


def _held_out(observations: Observations, seed: int) -> Bools:
    """Return which ratings are held out, shape (cells,): of reports with noise, none.

    Their errors would be those of the noise.
    """
    cells = observations.items.size
    if observations.noise_variance or cells < _FEWEST_RATINGS:
        return np.zeros(cells, dtype=np.bool_)
    return generator(seed, "ratings held out").random(cells) < _HELD_OUT


def _swept(
    users: Side, items: Side, cells: WeightedCells, noise: float, size: int, done: int
) -> tuple[Side, Side, float]:
    """Solve both sides and learn their priors; return them, and the noise variance of ``size`` ratings."""
    with naming_iteration("matrix factorisation", done + 1):
        users, items, misfit = solve_in_turn(users, items, cells, noise)
    noise = max(misfit / size, SMALLEST_VARIANCE)
    return users.with_learned_covariance(), items.with_learned_covariance(), noise


def _without_vanished(users: Side, items: Side, before: Floats, noise: float) -> tuple[Side, Side, Floats]:
    """Drop the axes that explain little, and less than ``before``; return also what the others explain."""
    # A learned prior shrinks axes that have vanished to nothing, faster and faster.
    of_users, of_items, _ = principal_axes(users, items)
    along = users.means[:, 1:] @ of_users.T, items.means[:, 1:] @ of_items.T
    explained = np.mean(along[0] ** 2, axis=0) * np.mean(along[1] ** 2, axis=0)
    lasting = (explained >= _NEGLIGIBLE * noise) | (explained >= before)
    if lasting.all():
        return users, items, explained
    # As if the factors along the other axes were known to be 0.
    return users.transformed(of_users[lasting]), items.transformed(of_items[lasting]), explained[lasting]


@dataclass(frozen=True, kw_only=True)
class MatrixFactorization(Completion):
    """Biased matrix factorisation by alternating least squares, ridges learned from the data."""

    kind: Literal["mf"] = "mf"
    has_factors: ClassVar[bool] = True
    rank: int | None = option(
        f"Number of factors, at most; by default {_DEFAULT_RANK}, or as many as the catalogue allows.",
        None,
        ge=1,
    )
    iterations: int = option("Sweeps over users and items, at most.", 60, ge=1)
    tolerance: float = option("Relative change of the noise variance that ends the sweeps.", 1e-4, ge=0)

    def model_bytes(self, users: int, items: int) -> float:
        """Return the size of both sides, and of the sums by item or the moments of all users."""
        width = 1 + self._rank((users, items))
        packed = width * (width + 1) // 2
        taken = _RANGES * items if users > _ONE_PASS * items else users / 2
        return 8.0 * ((width + packed) * (users + items) + (1 + width + packed) * taken)

    def _rank(self, shape: tuple[int, int]) -> int:
        return self.rank or min(_DEFAULT_RANK, min(shape) - 1)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`."""
        size, mean = observations.values.size, observations.mean
        residuals = observations.values - mean
        spread = float(residuals.var()) if size else 1.0
        noise = max(spread, SMALLEST_VARIANCE)
        rank = self._rank(observations.shape)
        # From a narrower start, some factors that the data support would vanish.
        users = Side.at_zero(observations.shape[0], rank, spread, sharing=1)
        items = Side.at_random(observations.shape[1], rank, spread, sharing=1, seed=seed)
        is_held_out = _held_out(observations, seed)
        held_out = _HeldOut(
            observations.users[is_held_out], observations.items[is_held_out], residuals[is_held_out]
        )
        cells = WeightedCells.of(observations, residuals, (~is_held_out).astype(np.float32))
        explained = np.zeros(rank)
        done = calm = 0
        while size and done < self.iterations - is_held_out.any():
            previous = noise
            users, items, noise = _swept(users, items, cells, noise, int((~is_held_out).sum()), done)
            done += 1
            if done >= _SWEEPS_BEFORE_DROPPING:
                users, items, explained = _without_vanished(users, items, explained, noise)
            progress("completing", done, self.iterations)
            calm = calm + 1 if abs(previous - noise) <= self.tolerance * previous else 0
            if held_out.worsen(users, items) or (calm >= _CALM_SWEEPS and done >= _FEWEST_SWEEPS):
                break
        if is_held_out.any():
            # At last, they are learned from as well.
            cells = WeightedCells.of(observations, residuals, np.ones(size, dtype=np.float32))
            users, items, noise = _swept(users, items, cells, noise, size, done)
            done += 1
        return factors_of(
            mean,
            users,
            items,
            diagnostics={
                "sweeps": done,
                "noise_variance": noise,
                "ridge_user_effect": noise / users.prior[0, 0],
                "ridge_item_effect": noise / items.prior[0, 0],
                "ridge_factors": (noise / principal_axes(users, items)[2]).tolist(),
            },
        )
