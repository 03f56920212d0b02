"""The convex sets to which the hidden matrix is constrained, and the projections onto them.

Points of the nuclear ball alone are kept as factors, so memory and time grow with the number of
ratings and the rank. Its intersection with the infinity ball needs every entry, and is for matrices
that fit into memory densely.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprec.arrays import Floats, Int32s, offsets
from dprec.completion.spectral import LowRank, SparsePlusLowRank, computed_densely, gram, refined, spanned

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
    right_vectors: Floats | None = None
    """What is known of those that count; None for a whole decomposition."""

    def __call__(self, matrix: Floats, out: Floats | None = None) -> Floats:
        """Return, in ``out``, a matrix of the ball near a matrix; the closest by a whole decomposition.

        Otherwise the leading singular vectors are those of the last matrix after one subspace iteration. The
        whole matrix is decomposed where not all that remain are among them.
        """
        import scipy.linalg

        if self.right_vectors is not None:
            leading = refined(matrix, self.right_vectors)
            threshold = singular_value_threshold(leading.values, self.radius)
            if threshold >= leading.values[-1] and threshold > 0:
                return self._lowered(leading, threshold, out)
        squares, vectors = scipy.linalg.eigh(gram(matrix))
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        threshold = singular_value_threshold(values, self.radius)
        if threshold == 0.0:
            return np.positive(matrix, out=out)
        count = np.count_nonzero(values > threshold) + _SPARE
        leading = spanned(matrix, vectors[:, ::-1][:, :count])
        return self._lowered(leading, singular_value_threshold(leading.values, self.radius), out)

    def whole(self, matrix: Floats, out: Floats | None = None) -> Floats:
        """Return, in ``out``, the closest matrix of the ball."""
        self.right_vectors = None
        return self(matrix, out)

    def _lowered(self, leading: LowRank, threshold: float, out: Floats | None) -> Floats:
        lowered = leading.lowered(threshold)
        self.right_vectors = leading.right[:, : lowered.rank + _SPARE]
        return np.matmul(lowered.left * lowered.values, lowered.right.T, out=out)


def project_bounded(matrix: Floats, radius: float, bound: float) -> Floats:
    """Return the closest matrix of nuclear norm at most ``radius`` and entries within +-``bound``.

    Alternating directions on two copies of the matrix, one in each ball (Boyd et al. [boyd2011],
    sections 5.1 and 3.4.1). Scaling removes the difference that remains at the end, so that both
    constraints hold exactly.
    """
    from dprec.kernels.directions import move_within, weigh

    project = NuclearProjection(radius)
    inside = project(matrix)
    if np.abs(inside).max(initial=0.0) <= bound:
        return inside
    clipped = np.clip(inside, -bound, bound)
    previous, dual, target = np.empty_like(matrix), np.zeros_like(matrix), np.empty_like(matrix)
    penalty, given = _PENALTY, matrix.ravel()
    for iteration in range(1, 1001):
        weigh(target.ravel(), given, clipped.ravel(), dual.ravel(), penalty)
        inside, previous, clipped = project(target, inside), clipped, previous
        move_within(clipped.ravel(), dual.ravel(), previous.ravel(), inside.ravel(), _RELAXATION, bound)
        if iteration % _CHECK_EVERY:
            continue
        gap, movement = np.abs(inside - clipped).max(), np.abs(clipped - previous).max()
        if max(gap, movement) <= _ADMM_TOLERANCE * bound:
            inside = project.whole(target, inside)
            if np.abs(inside - clipped).max() <= _ADMM_TOLERANCE * bound:
                break
        # Long steps lead far out of the box, and no single penalty suits the whole way back.
        if max(gap, movement) > _UNBALANCED * min(gap, movement):
            factor = 2.0 if gap > movement else 0.5
            penalty *= factor
            dual /= factor
    inside *= min(1.0, bound / np.abs(inside).max())
    return inside


@dataclass(frozen=True, eq=False)
class Domain:
    """A convex set of matrices, with the pattern of the observed cells.

    Its points are factors, `LowRank`, where only the nuclear norm is bounded, and else dense.
    """

    rows: Int32s
    columns: Int32s
    """The observed cells, by row; shape (cells,)."""
    shape: tuple[int, int]
    radius: float
    """Of the nuclear ball."""
    bound: float | None = None
    """Of the entries' absolute values."""
    max_rank: int = 1000
    """A projection of larger rank is cut to its leading singular values; bounds the memory."""
    seed: int = 0
    """Seed of the initial Lanczos vector, for large matrices."""

    @property
    def draws(self) -> bool:
        """Whether a projection is not exact, and draws."""
        return self.bound is None and not computed_densely(self.shape, self.rows.size)

    def zero(self) -> Any:
        """Return the zero matrix."""
        return LowRank.zero(self.shape) if self.bound is None else np.zeros(self.shape)

    def cells(self, point: Any) -> Floats:
        """Return the observed entries, shape (cells,)."""
        return point.cells(self.rows, self.columns) if self.bound is None else point[self.rows, self.columns]

    def step(self, point: Any, slopes: Floats, length: float) -> Any:
        """Return the projection of point - length x slopes, the slopes given at the observed cells."""
        import scipy.sparse as sp

        if self.bound is not None:
            moved = point.copy()
            moved[self.rows, self.columns] -= length * slopes
            return project_bounded(moved, self.radius, self.bound)
        indptr = offsets(np.bincount(self.rows, minlength=self.shape[0]))
        sparse = sp.csr_array((-length * slopes, self.columns, indptr), shape=self.shape)
        moved = SparsePlusLowRank(sparse, point.left * point.values, point.right)
        # Most singular values that can be computed: all, or all but one for a large matrix.
        most_values = min(self.max_rank, min(self.shape) - self.draws)
        count = min(point.rank + _SPARE, most_values)
        while True:
            leading = moved.leading(count, self.seed)
            threshold = singular_value_threshold(leading.values, self.radius)
            # The values that were not computed are no larger than the last that was.
            if threshold >= leading.values[-1] or count == most_values:
                break
            count = min(2 * count, most_values)
        return leading.lowered(threshold)


def norm_of(point: Any, other: Any = None) -> float:
    """Return the Frobenius norm of a point, or of its difference from another one of the same kind."""
    if isinstance(point, LowRank):
        return float(np.linalg.norm(point.values)) if other is None else point.distance(other)
    return float(np.linalg.norm(point if other is None else point - other))
