"""Completion by singular values: matrices that are sparse plus low rank, decomposed, cut or shrunk.

**Decompositions.** Matrices that are small or mostly observed are decomposed exactly, through the symmetric
eigenproblem of their shorter side; others by Lanczos iteration, which only multiplies the matrix by vectors.

**Truncation** is the textbook decoder (Sarwar et al. [sarwar2000]), with which Neera et al. [neera2023]
compare in Figs. 3 and 4: unrated cells are filled with the mean of their item, users' means are subtracted,
and the resulting matrix is cut to its leading singular values.

**The least nuclear norm** within a distance of the data (Zheng [zheng2016], Eq. 4). The problem is min
||M||_* subject to ||P(M - Z)||_F <= rho over the observed cells. Let A have the data Z in the observed cells
and some M' in the others. As ||P(M - Z)|| <= ||M - A||, with equality where M is M' outside of the observed
cells, the matrix of the least nuclear norm within rho of A meets the constraint, its norm is not above that
of an M' that meets it, and only a solution stays where it is. That matrix is A with its singular values
lowered by a multiplier, at most to 0: Soft-Impute (Mazumder et al. [mazumder2010]) with the multiplier that
follows from rho. Steps are accelerated (Toh and Yun [toh2010]) until they turn back (O'Donoghue and Candès
[odonoghue2015]).

The singular vectors of a step start from those of the last one and are refined by one subspace iteration
(Halko et al. [halko2011]), which costs a fraction of a decomposition. They only lead the way: where they
would end the steps, a whole decomposition must agree, and leads from there on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from dprec.arrays import AnyInts, Floats, rows_of
from dprec.completion.base import Completion, means_of
from dprec.completion.factors import BiasedFactors, inner_products
from dprec.completion.matrix_factorization import naming_iteration
from dprec.components import option
from dprec.errors import RunError, SettingError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

if TYPE_CHECKING:
    import scipy.sparse as sp
    from scipy.sparse.linalg import LinearOperator

DENSE_CELLS = 4_000_000
"""A matrix with up to this many cells, rated or not, is dense."""

_CANCELLED = 1e-10
"""Share of the squared norms up to which their difference is not trusted."""


def computed_densely(shape: tuple[int, int], observed: int) -> bool:
    """Return whether a matrix with so many observed cells is dense: a small one, or one mostly observed."""
    return int(shape[0]) * int(shape[1]) <= max(DENSE_CELLS, 2 * observed)


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix left diag(values) right^T: orthonormal columns, and values that descend, shape (rank,)."""

    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Self:
        """Return the zero matrix, of rank 0."""
        return cls(np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0)))

    @property
    def rank(self) -> int:
        """Number of singular values kept."""
        return self.values.size

    def distance(self, other: Self) -> float:
        """Return the Frobenius norm of the difference of two matrices."""
        left, right = self._minus(other)
        # Triangular factors keep the digits that would cancel in a difference of squared norms.
        left_triangle, right_triangle = (np.asarray(np.linalg.qr(side, mode="r")) for side in (left, right))
        return float(np.linalg.norm(left_triangle @ right_triangle.T))

    def is_near(self, other: Self, limit: float) -> bool:
        """Return whether the `distance` is at most a limit, which is quicker to decide."""
        left, right = self._minus(other)
        squared = float(((left.T @ left) * (right.T @ right)).sum())
        # Digits cancel in this sum; where they could decide, the distance itself does.
        uncertain = _CANCELLED * float((self.values**2).sum() + (other.values**2).sum())
        if abs(squared - limit**2) > uncertain:
            return squared < limit**2
        return self.distance(other) <= limit

    def lowered(self, threshold: float) -> LowRank:
        """Return the matrix whose singular values are lower by a threshold, without those below it."""
        above = self.values > threshold
        return LowRank(self.left[:, above], self.values[above] - threshold, self.right[:, above])

    def product(self, other: Self) -> float:
        """Return the inner product of two matrices."""
        turned = (self.left.T @ other.left) * (self.right.T @ other.right)
        return float(self.values @ turned @ other.values)

    def _minus(self, other: Self) -> tuple[Floats, Floats]:
        """Return factors of the difference, shapes (users, ranks) and (items, ranks)."""
        left = np.hstack([self.left * self.values, -other.left * other.values])
        return left, np.hstack([self.right, other.right])

    def cells(self, rows: AnyInts, columns: AnyInts) -> Floats:
        """Return the entries at the given cells, shape (cells,)."""
        scaled = self.left * self.values
        if computed_densely((len(self.left), len(self.right)), rows.size):
            return (scaled @ self.right.T)[rows, columns]
        return inner_products(scaled, self.right, rows, columns)


@dataclass(frozen=True, eq=False)
class SparsePlusLowRank:
    """The matrix sparse + left right^T, with left of shape (users, rank) and right (items, rank)."""

    sparse: sp.csr_array
    left: Floats
    right: Floats

    def leading(self, count: int, seed: int) -> LowRank:
        """Return the ``count`` largest singular values and their vectors."""
        if self.is_dense:
            import scipy.linalg

            side = min(self.sparse.shape)
            eigenvectors = scipy.linalg.eigh(
                self._gram, driver="evr", subset_by_index=[side - count, side - 1]
            )[1]
            return spanned(self._dense, eigenvectors[:, ::-1])
        from scipy.sparse.linalg import ArpackError, svds

        users, items = self.sparse.shape
        start = generator(seed, "lanczos").standard_normal(min(users, items))
        # Of a matrix of zeros the iteration has nowhere to go.
        if not np.any((self._operator if items <= users else self._operator.T) @ start):
            return LowRank(np.eye(users, count), np.zeros(count), np.eye(items, count))
        try:
            left, values, right = svds(self._operator, k=count, v0=start)
        except ArpackError as error:
            raise np.linalg.LinAlgError(f"Lanczos iteration failed: {error}") from error
        return LowRank(left[:, ::-1], values[::-1], right[::-1].T)

    def refined(self, right: Floats) -> LowRank:
        """Return about as many leading singular values and vectors as there are approximate right vectors.

        One subspace iteration (Halko et al. [halko2011], Algorithm 4.4); no value is above the true one.
        """
        return refined(self._dense if self.is_dense else self._operator, right)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm."""
        if self.is_dense:
            return float(np.vdot(self._dense, self._dense))
        sparse = self.sparse.data @ self.sparse.data
        across = 2 * np.vdot(self.left, self.sparse @ self.right)
        return float(sparse + across + np.vdot(self.left.T @ self.left, self.right.T @ self.right))

    @cached_property
    def _dense(self) -> Floats:
        dense: Floats = self.left @ self.right.T
        cells = rows_of(np.diff(self.sparse.indptr)) * dense.shape[1] + self.sparse.indices
        np.add.at(dense.ravel(), cells, self.sparse.data)
        return dense

    @cached_property
    def _operator(self) -> LinearOperator:
        from scipy.sparse.linalg import LinearOperator

        transposed = self.sparse.T.tocsr()

        def times(vectors: Floats) -> Floats:
            return self.sparse @ vectors + self.left @ (self.right.T @ vectors)

        def transposed_times(vectors: Floats) -> Floats:
            return transposed @ vectors + self.right @ (self.left.T @ vectors)

        operator, adjoint = (
            {"matvec": times, "matmat": times},
            {"rmatvec": transposed_times, "rmatmat": transposed_times},
        )
        return LinearOperator(self.sparse.shape, dtype=np.float64, **operator, **adjoint)

    @property
    def is_dense(self) -> bool:
        """Whether it is decomposed densely."""
        return computed_densely(self.sparse.shape, self.sparse.nnz)

    @cached_property
    def _gram(self) -> Floats:
        return gram(self._dense)


def refined(matrix: Floats | LinearOperator, right: Floats) -> LowRank:
    """Return `SparsePlusLowRank.refined` of any matrix."""
    import scipy.linalg

    left = scipy.linalg.qr(matrix @ right, mode="economic", overwrite_a=True, check_finite=False)[0]
    images = matrix.T @ left
    turn = scipy.linalg.eigh(_finite(images.T @ images), overwrite_a=True)[1][:, ::-1]
    images = images @ turn
    values = np.linalg.norm(images, axis=0)
    return LowRank(left @ turn, values, images / np.maximum(values, np.finfo(float).tiny))


def gram(matrix: Floats) -> Floats:
    """Return the inner products of a matrix's rows, or of its columns where these are fewer."""
    shorter = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return _finite(shorter @ shorter.T)


def _finite(products: Floats) -> Floats:
    if not np.all(np.isfinite(products)):
        raise np.linalg.LinAlgError("the squares of the entries are not finite")
    return products


def spanned(matrix: Floats, eigenvectors: Floats) -> LowRank:
    """Return the singular values and vectors of a matrix of which eigenvectors of its `gram` are given."""
    wide = matrix.shape[0] <= matrix.shape[1]
    images = (matrix.T if wide else matrix) @ eigenvectors
    # The lengths of the images are more accurate than roots of eigenvalues.
    values = np.linalg.norm(images, axis=0)
    far = images / np.maximum(values, np.finfo(float).tiny)
    return LowRank(eigenvectors, values, far) if wide else LowRank(far, values, eigenvectors)


@dataclass(frozen=True, kw_only=True)
class TruncatedSvd(Completion):
    """Truncated singular value decomposition of the imputed matrix (Sarwar et al. [sarwar2000])."""

    kind: Literal["svd"] = "svd"
    has_factors: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("neera2023", "sarwar2000")
    rank: int = option("Number of singular values kept.", 5, ge=1)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        The mean of a user or an item without ratings is the overall mean. The imputed matrix is never
        formed: it is the sparse matrix of the ratings' deviations from their items' means, plus a matrix
        of rank 2.
        """
        import scipy.sparse as sp

        users, items = observations.shape
        user_means, _ = means_of(observations, observations.users, users)
        item_means, _ = means_of(observations, observations.items, items)
        by_user = observations.by_user
        deviations = (observations.values - item_means[observations.items])[by_user.data]
        # Deviations from the overall mean on both sides keep the decomposed matrix small.
        imputed = SparsePlusLowRank(
            sp.csr_array((deviations, by_user.indices, by_user.indptr), shape=by_user.shape),
            np.column_stack([np.ones(users), observations.mean - user_means]),
            np.column_stack([item_means - observations.mean, np.ones(items)]),
        )
        with naming_iteration("singular value decomposition", 1):
            leading = imputed.leading(self.rank, seed)
        progress("completing", 1, 1)
        return BiasedFactors(
            observations.mean,
            user_means - observations.mean,
            np.zeros(items),
            leading.left * leading.values,
            leading.right,
            diagnostics={"singular_values": leading.values.tolist()},
        )


_FINE = 1e-2
"""Change of M in a step, over the multiplier, at which the steps end."""

_FIRST, _SPARE = 10, 30
"""Singular values of the first step, and those of the others beyond the rank of the last one."""

_MET = 5e-4
"""Relative distance from rho at which the constraint counts as met; half of the promised 1e-3."""

_CLOSEST = 1e-5
"""Least rho over the norm of the data: Lanczos vectors and rounding do not allow less."""


@dataclass(frozen=True, kw_only=True)
class NuclearNorm(Completion):
    """Least nuclear norm within a distance of the data (Zheng [zheng2016], Eq. 4)."""

    kind: Literal["nuclear-norm"] = "nuclear-norm"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    rho: float | None = option(
        "Distance from the data, a Frobenius norm in rating units over all observed cells; when null, "
        "that of the mechanism's noise or of the rating noise, whichever is larger.",
        None,
        ge=0,
    )
    rating_noise: float = option(
        "Deviation of a rating from any low-rank matrix, as a share of the width of the scale; chosen by "
        "benchmarks/choosing/settings.py.",
        0.15,
        ge=0,
    )
    center: Literal["none", "middle", "mean"] = option(
        "What is subtracted from the values, and added to the predictions: nothing, the middle of the "
        "scale, as if ratings ran from -1 to 1, or the mean of the values.",
        "mean",
        published=("middle", "none"),
        source="zheng2016, Definitions 2 and 3",
    )
    max_rank: int = option("Largest rank of an intermediate matrix; bounds the memory.", 1000, ge=1)
    iterations: int = option("Proximal steps, at most.", 2000, ge=1)

    def model_bytes(self, users: int, items: int) -> float:
        """Return what values take that are not centred, as measured."""
        return 48.0 * users * items if self.center == "none" else 0.0

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        Values are centred first, so M = 0 predicts what they are centred on. The constraint is met to a
        relative 1e-3; a rho below 1e-5 of the norm of the centred data is raised to that.

        The default rho is sqrt(cells max(noise variance, rating noise^2)): roughly Eq. 3 of Zheng
        [zheng2016] on the cells that are truly rated, for the larger of the two kinds of noise. His
        bounds (6) and (7) also count the made-up ratings, and mostly exceed the norm of the data.

        Raises InputError when no matrix up to ``max_rank`` is within rho of the data.
        """
        scale = observations.scale
        middle = (scale.low + scale.high) / 2
        center = {"mean": observations.mean, "middle": middle, "none": 0.0}[self.center]
        residuals = observations.values - center
        norm = float(np.linalg.norm(residuals))
        if not np.isfinite(norm):
            raise RunError(f"nuclear-norm completion cannot start: the data have norm {norm}")
        rho = self._distance(observations)
        solver = _Solver(self, observations, residuals, seed, progress)
        solution, distance, multiplier = LowRank.zero(observations.shape), norm, 0.0
        if norm > rho * (1 + _MET):
            solution, distance, multiplier = solver.solve(max(rho, _CLOSEST * norm))
        users, items = observations.shape
        return BiasedFactors(
            center,
            np.zeros(users),
            np.zeros(items),
            solution.left * solution.values,
            solution.right,
            diagnostics={
                "rho": rho,
                "distance": distance,
                "multiplier": multiplier,
                "rank": solution.rank,
                "largest_rank": solver.largest_rank,
                "nuclear_norm": float(solution.values.sum()),
                "steps": solver.steps,
            },
            notes=self._notes(solver.steps, norm, distance, rho) if observations.values.size else (),
        )

    def _notes(self, steps: int, norm: float, distance: float, rho: float) -> tuple[str, ...]:
        """Note if the constraint is not binding, or was not met in time."""
        if norm <= rho * (1 + _MET):
            center = {"none": "0", "middle": "the middle of the scale", "mean": "their mean"}[self.center]
            return (
                f"nuclear-norm completion: the data deviate from {center} by {norm:.4g}, no more than "
                f"rho = {rho:.4g} allows, so that is predicted everywhere.",
            )
        if steps < self.iterations:
            return ()
        return (
            f"nuclear-norm completion stopped after {steps} steps at a distance of "
            f"{distance:.4g} from the data; rho is {rho:.4g}.",
        )

    def _distance(self, observations: Observations) -> float:
        if self.rho is not None:
            return self.rho
        rating_deviation = self.rating_noise * (observations.scale.high - observations.scale.low)
        variance = max(observations.noise_variance or 0.0, rating_deviation**2)
        return float(np.sqrt(observations.values.size * variance))


class _Solver:
    """The steps, and what is counted across all of them."""

    def __init__(
        self,
        settings: NuclearNorm,
        observations: Observations,
        residuals: Floats,
        seed: int,
        progress: Progress,
    ) -> None:
        self.settings, self.seed, self.progress = settings, seed, progress
        self.rows, self.columns, self.residuals = observations.users, observations.items, residuals
        self.positions = observations.by_user
        self.current = self.previous = LowRank.zero(observations.shape)
        self.fit = self.fit_before = residuals
        # Inner products of the current matrix with the previous one, and with itself.
        self.across = self.squared = 0.0
        self.momentum, self.multiplier = 1.0, 0.0
        self.steps = self.largest_rank = 0
        side = min(observations.shape)
        self.complete = side if self._matrix(0.0).is_dense else side - 1
        self.most_values = min(settings.max_rank + 1, self.complete)
        self.count = min(_FIRST, self.most_values)
        self.right_vectors: Floats | None = None

    def solve(self, rho: float) -> tuple[LowRank, float, float]:
        """Return the solution, its distance from the data and its multiplier, for rho below their norm."""
        checked = False
        while self.steps < self.settings.iterations:
            decomposes = checked or self.right_vectors is None
            ends = self._step(rho, decomposes)
            if ends and decomposes:
                break
            checked |= ends
        return self.current, float(np.linalg.norm(self.fit)), self.multiplier

    def _step(self, rho: float, decomposes: bool) -> bool:
        """Take one step, by a whole decomposition or a refined one; return whether M stays where it is."""
        following = (1 + np.sqrt(1 + 4 * self.momentum**2)) / 2
        extrapolation = (self.momentum - 1) / following
        matrix = self._matrix(extrapolation)
        with naming_iteration("nuclear-norm completion", self.steps + 1):
            start = None if decomposes else self.right_vectors
            leading = matrix.leading(self.count, self.seed) if start is None else matrix.refined(start)
        # Where some values are not known, the multiplier is not below those that are.
        lowest = leading.values[-1] if self.count < self.complete else 0.0
        self.multiplier = max(lowest, multiplier_within(rho, leading.values, matrix.squared_norm))
        moved = leading.lowered(self.multiplier)
        # A step against the direction of the last ones ends their momentum.
        across, squared = moved.product(self.current), moved.product(moved)
        onward = (1 + extrapolation) * across - extrapolation * moved.product(self.previous)
        backward = (1 + extrapolation) * self.squared - extrapolation * self.across
        turns_back = onward - backward > squared - across
        self.across, self.squared = across, squared
        self.momentum = 1.0 if turns_back else following
        self.previous, self.current = self.current, moved
        self.fit_before, self.fit = self.fit, self.residuals - moved.cells(self.rows, self.columns)
        distance = float(np.linalg.norm(self.fit))
        if not np.isfinite(distance):
            raise RunError(f"nuclear-norm completion diverged in step {self.steps + 1}: {distance}")
        self.steps += 1
        self.largest_rank = max(self.largest_rank, moved.rank)
        self.progress("completing", self.steps, self.settings.iterations)
        is_met = abs(distance / rho - 1) <= _MET
        is_cut = self.multiplier == lowest and not is_met
        ends = (is_met or (is_cut and self.count == self.most_values)) and moved.is_near(
            self.previous, _FINE * self.multiplier
        )
        if ends and decomposes and is_cut:
            raise SettingError(
                "rho",
                f"cannot be met within max_rank {self.settings.max_rank}",
                f"at least {(1 + 2 * _MET) * distance:.6g}, which that rank reaches",
            )
        self.count = min(2 * self.count if is_cut else moved.rank + _SPARE, self.most_values)
        self.right_vectors = self._start(leading.right)
        return ends

    def _start(self, right: Floats) -> Floats:
        """Return as many vectors as the next step looks for: the last ones, and any others."""
        more = max(0, self.count - right.shape[1])
        draws = generator(self.seed, f"subspace {self.steps}")
        others = draws.standard_normal((len(right), more)) / np.sqrt(len(right))
        return np.hstack([right[:, : self.count], others])

    def _matrix(self, extrapolation: float) -> SparsePlusLowRank:
        """Return A: the data in the observed cells, and M extrapolated in the others."""
        import scipy.sparse as sp

        current, previous = self.current, self.previous
        fit = (1 + extrapolation) * self.fit - extrapolation * self.fit_before
        return SparsePlusLowRank(
            sp.csr_array(
                (fit[self.positions.data], self.positions.indices, self.positions.indptr),
                shape=self.positions.shape,
            ),
            np.hstack(
                [
                    current.left * (current.values * (1 + extrapolation)),
                    previous.left * (-extrapolation * previous.values),
                ]
            ),
            np.hstack([current.right, previous.right]),
        )


def multiplier_within(rho: float, values: Floats, squared_norm: float) -> float:
    """Return by how much to lower singular values so that a matrix moves by rho.

    ``values``: the leading ones; too little is returned if all of them remain and there are more.
    """
    left_out = squared_norm - np.cumsum(values**2)
    squares = (rho**2 - left_out) / np.arange(1, values.size + 1)
    n_remaining = max(1, int(np.count_nonzero(values**2 > squares)))
    return float(np.sqrt(max(squares[n_remaining - 1], 0.0)))
