"""Singular value decompositions of matrices that are sparse plus low rank, and the completion by one.

Small matrices are decomposed exactly, through the symmetric eigenproblem of their shorter side;
large ones by Lanczos iteration, which only multiplies the matrix by vectors.

The textbook decoder (Sarwar et al. [sarwar2000]), with which Neera et al. [neera2023] compare in
Figs. 3 and 4: unrated cells are filled with the mean of their item, users' means are subtracted, and the
resulting matrix is cut to its leading singular values.

Completion by the least nuclear norm within a distance of the data (Zheng [zheng2016], Eq. 4).

The problem is min ||M||_* subject to ||P(M - Z)||_F <= rho over the observed cells. Its solutions are
those of min ||P(M - Z)||_F^2 / 2 + multiplier ||M||_*, whose distance from the data grows with the
multiplier. The multiplier is lowered from the value at which M = 0 until the constraint holds, each
problem starting from the solution of the previous one; the multiplier that meets the constraint is then
found between the last two. Each problem is solved by accelerated proximal gradient steps, each of which
decomposes a matrix that is sparse plus low rank (Toh and Yun [toh2010]).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, svds

from dprec.arrays import AnyInts, Floats, Int32s
from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors, inner_products
from dprec.completion.matrix_factorization import check_rank, naming_iteration
from dprec.components import option
from dprec.errors import RunError, SettingError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

DENSE_CELLS = 4_000_000
"""A matrix with up to this many cells, rated or not, is small."""

_CANCELLED = 1e-10
"""Share of the squared norms up to which their difference is not trusted."""

_SPARE = 5
"""Singular values computed beyond those expected, to see whether more lie above a threshold."""


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

    def _minus(self, other: Self) -> tuple[Floats, Floats]:
        """Return factors of the difference, shapes (users, ranks) and (items, ranks)."""
        left = np.hstack([self.left * self.values, -other.left * other.values])
        return left, np.hstack([self.right, other.right])

    def cells(self, rows: AnyInts, columns: AnyInts) -> Floats:
        """Return the entries at the given cells, shape (cells,)."""
        scaled = self.left * self.values
        if len(self.left) * len(self.right) <= DENSE_CELLS:
            entries: Floats = (scaled @ self.right.T)[rows, columns]
            return entries
        return inner_products(scaled, self.right, rows, columns)


@dataclass(frozen=True, eq=False)
class SparsePlusLowRank:
    """The matrix sparse + left right^T, with left of shape (users, rank) and right (items, rank)."""

    sparse: sp.csr_array
    left: Floats
    right: Floats

    def leading(self, count: int, seed: int) -> LowRank:
        """Return the ``count`` largest singular values and their vectors."""
        if self._small:
            sides = min(self.sparse.shape)
            return self._exact(subset_by_index=[sides - count, sides - 1])
        return self._truncated(count, seed)

    def above(self, threshold: float, expected: int, most: int, seed: int) -> LowRank | None:
        """Return the singular values above a threshold and their vectors; None for more than ``most``.

        About ``expected`` of them. Raises numpy.linalg.LinAlgError when the algebra fails.
        """
        if self._small:
            leading = self._exact(subset_by_value=[threshold**2, np.inf])
            return leading if leading.rank <= most else None
        limit = min(most + 1, min(self.sparse.shape) - 1)
        count = min(expected + _SPARE, limit)
        while True:
            leading = self._truncated(count, seed)
            rank = int((leading.values > threshold).sum())
            if rank > most:
                return None
            if rank < count or count == limit:
                return LowRank(leading.left[:, :rank], leading.values[:rank], leading.right[:, :rank])
            count = min(2 * count, limit)

    @property
    def _small(self) -> bool:
        users, items = self.sparse.shape
        return int(users) * int(items) <= DENSE_CELLS

    def _exact(self, **subset: list[float]) -> LowRank:
        dense = self.left @ self.right.T
        dense += self.sparse.toarray()
        wide = dense.shape[0] <= dense.shape[1]
        shorter = dense if wide else dense.T
        gram = shorter @ shorter.T
        if not np.all(np.isfinite(gram)):
            raise np.linalg.LinAlgError("the squares of the entries are not finite")
        _, near = scipy.linalg.eigh(gram, driver="evr", **subset)
        near = near[:, ::-1]
        # The lengths of the images are more accurate than roots of eigenvalues.
        images = shorter.T @ near
        values = np.linalg.norm(images, axis=0)
        far = images / np.maximum(values, np.finfo(float).tiny)
        return LowRank(near, values, far) if wide else LowRank(far, values, near)

    def _truncated(self, count: int, seed: int) -> LowRank:
        transposed = self.sparse.T.tocsr()
        operator = LinearOperator(
            self.sparse.shape,
            matvec=lambda vector: self.sparse @ vector + self.left @ (self.right.T @ vector),
            rmatvec=lambda vector: transposed @ vector + self.right @ (self.left.T @ vector),
            dtype=np.float64,
        )
        start = generator(seed, "lanczos").standard_normal(min(self.sparse.shape))
        try:
            left, values, right = svds(operator, k=count, v0=start)
        except ArpackError as error:
            raise np.linalg.LinAlgError(f"Lanczos iteration failed: {error}") from error
        return LowRank(left[:, ::-1], values[::-1], right[::-1].T)


@dataclass(frozen=True, kw_only=True)
class TruncatedSvd(Completion):
    """Truncated singular value decomposition of the imputed matrix (Sarwar et al. [sarwar2000])."""

    kind: Literal["svd"] = "svd"
    papers: ClassVar[tuple[str, ...]] = ("neera2023", "sarwar2000")
    rank: int = option("Number of singular values kept.", 5, ge=1)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        The mean of a user or an item without ratings is the overall mean. The imputed matrix is never
        formed: it is the sparse matrix of the ratings' deviations from their items' means, plus a matrix
        of rank 2.
        """
        users, items = observations.shape
        user_means = _means(observations.users, observations, users)
        item_means = _means(observations.items, observations, items)
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


def _means(entities: Int32s, observations: Observations, count: int) -> Floats:
    """Return the mean value of every user or item; the overall mean for one without values."""
    seen = np.bincount(entities, minlength=count)
    sums = np.bincount(entities, weights=observations.values, minlength=count)
    return np.where(seen > 0, sums / np.maximum(seen, 1), observations.mean)


_CONTINUATION = 0.5
"""Factor from one multiplier of the continuation to the next."""

_COARSE, _FINE = 0.3, 1e-2
"""Change of M, over the multiplier, at which the steps for a multiplier end, along the way and at the
end: what remains must stay below the threshold, or it adds to the rank of the next decomposition."""

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
        "benchmarks/choose_nuclear_norm_noise.py.",
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

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        Values are centred first, so M = 0 predicts what they are centred on. The constraint is met to a
        relative 1e-3; a rho below 1e-5 of the norm of the centred data is raised to that.

        The default rho is sqrt(cells max(noise variance, rating noise^2)): roughly Eq. 3 of Zheng
        [zheng2016] on the cells that are truly rated, for the larger of the two kinds of noise. His
        bounds (6) and (7) also count the made-up ratings, and mostly exceed the norm of the data.

        Raises InputError when no matrix up to ``max_rank`` is within rho of the data.
        """
        center = self._center(observations)
        residuals = observations.values - center
        norm = float(np.linalg.norm(residuals))
        if not np.isfinite(norm):
            raise RunError(f"nuclear-norm completion cannot start: the data have norm {norm}")
        rho = self._distance(observations)
        solver = _Solver(self, observations, residuals, seed, progress)
        solution, distance, multiplier = LowRank.zero(observations.shape), norm, 0.0
        if norm > rho * (1 + _MET):
            solution, distance, multiplier = solver.solve(max(rho, _CLOSEST * norm), norm)
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
            return (
                f"nuclear-norm completion: the data deviate from {self._center_in_words} by {norm:.4g}, no "
                f"more than rho = {rho:.4g} allows, so that is predicted everywhere.",
            )
        if steps < self.iterations:
            return ()
        return (
            f"nuclear-norm completion stopped after {steps} steps at a distance of "
            f"{distance:.4g} from the data; rho is {rho:.4g}.",
        )

    def _center(self, observations: Observations) -> float:
        if self.center == "mean":
            return observations.mean
        scale = observations.scale
        return (scale.low + scale.high) / 2 if self.center == "middle" else 0.0

    @property
    def _center_in_words(self) -> str:
        return {"none": "0", "middle": "the middle of the scale", "mean": "their mean"}[self.center]

    def _distance(self, observations: Observations) -> float:
        if self.rho is not None:
            return self.rho
        own = self.rating_noise * (observations.scale.high - observations.scale.low)
        variance = max(observations.noise_variance or 0.0, own**2)
        return float(np.sqrt(observations.values.size * variance))


class _Solver:
    """The proximal steps, and what is counted across all of them."""

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
        self.steps = self.largest_rank = 0
        # The distance of a matrix of zeros from the data.
        self.nearest = float(np.linalg.norm(residuals))

    def solve(self, rho: float, norm: float) -> tuple[LowRank, float, float]:
        """Return the solution, its distance from the data and its multiplier, for rho below the norm."""
        zero = LowRank.zero(self.positions.shape)
        with naming_iteration("nuclear-norm completion", 1):
            largest = self._operator(zero, zero, 0.0, self.residuals).leading(1, self.seed).values[0]
        multiplier, solution, distance = float(largest), zero, norm
        while distance > rho and not self._exhausted:
            multiplier *= _CONTINUATION
            solution, distance = self._at(multiplier, solution, _COARSE)
        # The distance is close to a power of the multiplier, so both are interpolated in logarithms;
        # if an end of the bracket does not move, its gap is halved (the Illinois rule).
        below: tuple[float, float] | None = None
        above: tuple[float, float] | None = None
        last = 0
        while not self._exhausted:
            solution, distance = self._at(multiplier, solution, _FINE)
            gap = float(np.log(distance / rho))
            if abs(gap) <= _MET:
                break
            if gap < 0:
                below = float(np.log(multiplier)), gap
                above = (above[0], above[1] / 2) if above and last < 0 else above
            else:
                above = float(np.log(multiplier)), gap
                below = (below[0], below[1] / 2) if below and last > 0 else below
            last = int(np.sign(gap))
            if below is None:
                multiplier *= _CONTINUATION
            elif above is None:
                multiplier /= _CONTINUATION
            else:
                share = below[1] / (below[1] - above[1])
                multiplier = float(np.exp(below[0] + share * (above[0] - below[0])))
        return solution, distance, multiplier

    @property
    def _exhausted(self) -> bool:
        return self.steps >= self.settings.iterations

    def _at(self, multiplier: float, start: LowRank, tolerance: float) -> tuple[LowRank, float]:
        """Solve the problem for one multiplier; return its solution and the distance from the data."""
        current = previous = start
        fit = fit_before = self.residuals - start.cells(self.rows, self.columns)
        objective = np.inf
        momentum = 1.0
        while not self._exhausted:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = (momentum - 1) / following
            operator = self._operator(current, previous, ahead, (1 + ahead) * fit - ahead * fit_before)
            with naming_iteration("nuclear-norm completion", self.steps + 1):
                leading = operator.above(multiplier, current.rank, self.settings.max_rank, self.seed)
            if leading is None:
                raise SettingError(
                    "rho",
                    f"cannot be met within max_rank {self.settings.max_rank}",
                    f"at least {self.nearest:.6g}, which that rank reaches",
                )
            previous, current = current, LowRank(leading.left, leading.values - multiplier, leading.right)
            fit_before, fit = fit, self.residuals - current.cells(self.rows, self.columns)
            self.steps += 1
            self.largest_rank = max(self.largest_rank, current.rank)
            self.nearest = min(self.nearest, float(np.linalg.norm(fit)))
            self.progress("completing", self.steps, self.settings.iterations)
            before, objective = objective, float(fit @ fit) / 2 + multiplier * float(current.values.sum())
            if not np.isfinite(objective):
                raise RunError(f"nuclear-norm completion diverged in step {self.steps}: {objective}")
            if current.is_near(previous, tolerance * multiplier):
                break
            momentum = 1.0 if objective > before else following
        return current, float(np.linalg.norm(fit))

    def _operator(self, current: LowRank, previous: LowRank, ahead: float, fit: Floats) -> SparsePlusLowRank:
        """Return the argument of the proximal step: M extrapolated, plus its residuals on the cells."""
        return SparsePlusLowRank(
            sp.csr_array(
                (fit[self.positions.data], self.positions.indices, self.positions.indptr),
                shape=self.positions.shape,
            ),
            np.hstack(
                [current.left * (current.values * (1 + ahead)), previous.left * (-ahead * previous.values)]
            ),
            np.hstack([current.right, previous.right]),
        )
