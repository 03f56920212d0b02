"""Singular value decompositions of matrices that are sparse plus low rank, and the completion by one.

Small matrices are decomposed exactly, through the symmetric eigenproblem of their shorter side;
large ones by Lanczos iteration, which only multiplies the matrix by vectors.

The textbook decoder (Sarwar et al. [sarwar2000]), with which Neera et al. [neera2023] compare in
Figs. 3 and 4: unrated cells are filled with the mean of their item, users' means are subtracted, and the
resulting matrix is cut to its leading singular values.
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
from dprec.completion.variational import check_rank, naming_iteration
from dprec.components import option
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
