"""The convex sets to which the hidden matrix is constrained, and the projections onto them.

Points of the nuclear ball alone are kept as factors, so memory and time grow with the number of
ratings and the rank. Its intersection with the infinity ball needs every entry, and is for matrices
that fit into memory densely.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from dprec.arrays import Floats, Int32s, offsets
from dprec.completion.spectral import DENSE_CELLS, LowRank, SparsePlusLowRank, gram, refined, spanned

PointT = TypeVar("PointT", LowRank, Floats)

_SPARE = 10
"""Singular values computed beyond the rank of the previous point."""

_PENALTY, _RELAXATION = 3.0, 1.7
"""Initial penalty on the difference of the copies, and the over-relaxation of an update."""

_CHECK_EVERY, _UNBALANCED = 5, 5.0
"""Iterations between checks of penalty and end, and the ratio of the two distances that changes the first."""

_ADMM_TOLERANCE = 1e-5
"""Difference of the two copies, and last change of one, over the bound, at which the iterations end."""


def singular_value_threshold(values: Floats, radius: float) -> float:
    """Return the threshold t at which sum(max(value - t, 0)) = radius; 0 if the sum is never that large."""
    sums = np.cumsum(values) - radius
    if not values.size or sums[-1] <= 0:
        return 0.0
    thresholds = sums / np.arange(1, values.size + 1)
    # Values far above the radius equal their thresholds up to rounding: the first is then taken.
    last = np.append(0, np.flatnonzero(values > thresholds))[-1]
    return float(thresholds[last])


@dataclass(eq=False)
class NuclearProjection:
    """Projections onto a nuclear ball, the closest in the Frobenius norm, of matrices each near the last one.

    The singular values are projected onto the simplex (Duchi et al. [duchi2008]). They come from the
    eigenvalues of the smaller Gram matrix.
    """

    radius: float
    near: Floats | None = None
    """What is known of the right singular vectors that count; None for a whole decomposition."""

    def __call__(self, matrix: Floats) -> Floats:
        """Return a matrix of the ball near a matrix; the closest by a whole decomposition.

        Otherwise the leading singular vectors are those of the last matrix after one subspace iteration. The
        whole matrix is decomposed where not all that remain are among them.
        """
        import scipy.linalg

        if self.near is not None:
            leading = refined(matrix, self.near)
            threshold = singular_value_threshold(leading.values, self.radius)
            if threshold >= leading.values[-1] and threshold > 0:
                return self._lowered(leading, threshold)
        squares, vectors = scipy.linalg.eigh(gram(matrix))
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        threshold = singular_value_threshold(values, self.radius)
        if threshold == 0.0:
            return matrix
        count = np.count_nonzero(values > threshold) + _SPARE
        leading = spanned(matrix, vectors[:, ::-1][:, :count])
        return self._lowered(leading, singular_value_threshold(leading.values, self.radius))

    def whole(self, matrix: Floats) -> Floats:
        """Return the closest matrix of the ball."""
        self.near = None
        return self(matrix)

    def _lowered(self, leading: LowRank, threshold: float) -> Floats:
        lowered = leading.lowered(threshold)
        self.near = leading.right[:, : lowered.rank + _SPARE]
        return (lowered.left * lowered.values) @ lowered.right.T


def project_bounded(matrix: Floats, radius: float, bound: float) -> Floats:
    """Return the closest matrix of nuclear norm at most ``radius`` and entries within +-``bound``.

    Alternating directions on two copies of the matrix, one in each ball (Boyd et al. [boyd2011],
    sections 5.1 and 3.4.1). Scaling removes the difference that remains at the end, so that both
    constraints hold exactly.
    """
    project = NuclearProjection(radius)
    inside = project(matrix)
    if np.abs(inside).max(initial=0.0) <= bound:
        return inside
    clipped = np.clip(inside, -bound, bound)
    dual, penalty = np.zeros_like(matrix), _PENALTY
    for iteration in range(1, 1001):
        target = (matrix + penalty * (clipped - dual)) / (1 + penalty)
        inside, before = project(target), clipped
        relaxed = _RELAXATION * inside + (1 - _RELAXATION) * clipped
        clipped = np.clip(relaxed + dual, -bound, bound)
        dual += relaxed - clipped
        if iteration % _CHECK_EVERY:
            continue
        apart, moved = np.abs(inside - clipped).max(), np.abs(clipped - before).max()
        if max(apart, moved) <= _ADMM_TOLERANCE * bound:
            inside = project.whole(target)
            if np.abs(inside - clipped).max() <= _ADMM_TOLERANCE * bound:
                break
        # Long steps lead far out of the box, and no single penalty suits the whole way back.
        if max(apart, moved) > _UNBALANCED * min(apart, moved):
            factor = 2.0 if apart > moved else 0.5
            penalty *= factor
            dual /= factor
    inside *= min(1.0, bound / np.abs(inside).max())
    return inside


@dataclass(frozen=True, eq=False)
class Domain(ABC, Generic[PointT]):
    """A convex set of matrices, with the pattern of the observed cells."""

    rows: Int32s
    columns: Int32s
    """The observed cells, by row; shape (cells,)."""
    shape: tuple[int, int]
    radius: float
    """Of the nuclear ball."""

    @abstractmethod
    def zero(self) -> PointT:
        """Return the zero matrix."""

    @abstractmethod
    def step(self, point: PointT, slopes: Floats, length: float) -> PointT:
        """Return the projection of point - length x slopes, the slopes given at the observed cells."""

    @abstractmethod
    def cells(self, point: PointT) -> Floats:
        """Return the observed entries, shape (cells,)."""

    @abstractmethod
    def distance(self, point: PointT, other: PointT) -> float:
        """Return the Frobenius norm of the difference."""

    @abstractmethod
    def norm(self, point: PointT) -> float:
        """Return the Frobenius norm."""


@dataclass(frozen=True, eq=False)
class NuclearBall(Domain[LowRank]):
    """Matrices of nuclear norm at most ``radius``, as factors."""

    max_rank: int = 1000
    """A projection of larger rank is cut to its leading singular values; bounds the memory."""
    seed: int = 0
    """Seed of the initial Lanczos vector, for large matrices."""

    def zero(self) -> LowRank:
        """Return the zero matrix."""
        return LowRank.zero(self.shape)

    def step(self, point: LowRank, slopes: Floats, length: float) -> LowRank:
        """Return the projection; see `Domain.step`."""
        import scipy.sparse as sp

        indptr = offsets(np.bincount(self.rows, minlength=self.shape[0]))
        sparse = sp.csr_array((-length * slopes, self.columns, indptr), shape=self.shape)
        moved = SparsePlusLowRank(sparse, point.left * point.values, point.right)
        # Most singular values that can be computed: all, or all but one for a large matrix.
        most = min(self.max_rank, min(self.shape) - (not self.small))
        count = min(point.rank + _SPARE, most)
        while True:
            leading = moved.leading(count, self.seed)
            threshold = singular_value_threshold(leading.values, self.radius)
            # The values that were not computed are no larger than the last that was.
            if threshold >= leading.values[-1] or count == most:
                break
            count = min(2 * count, most)
        return leading.lowered(threshold)

    @property
    def small(self) -> bool:
        """Whether a projection is exact, and draws nothing."""
        users, items = self.shape
        return users * items <= DENSE_CELLS

    def cells(self, point: LowRank) -> Floats:
        """Return the observed entries."""
        return point.cells(self.rows, self.columns)

    def distance(self, point: LowRank, other: LowRank) -> float:
        """Return the Frobenius norm of the difference."""
        return point.distance(other)

    def norm(self, point: LowRank) -> float:
        """Return the Frobenius norm."""
        return float(np.linalg.norm(point.values))


@dataclass(frozen=True, eq=False)
class BoundedNuclearBall(Domain[Floats]):
    """Matrices of nuclear norm at most ``radius`` with entries within +-``bound``, dense."""

    bound: float

    def zero(self) -> Floats:
        """Return the zero matrix."""
        return np.zeros(self.shape)

    def step(self, point: Floats, slopes: Floats, length: float) -> Floats:
        """Return the projection; see `Domain.step`."""
        moved = point.copy()
        moved[self.rows, self.columns] -= length * slopes
        return project_bounded(moved, self.radius, self.bound)

    def cells(self, point: Floats) -> Floats:
        """Return the observed entries."""
        return point[self.rows, self.columns]

    def distance(self, point: Floats, other: Floats) -> float:
        """Return the Frobenius norm of the difference."""
        return float(np.linalg.norm(point - other))

    def norm(self, point: Floats) -> float:
        """Return the Frobenius norm."""
        return float(np.linalg.norm(point))
