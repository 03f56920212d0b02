"""What a device needs of SciPy, and the same in NumPy for devices on which SciPy is not installed.

SciPy is most of what a device would have to install, and a device uses little of it. Products of sparse
rows add up in the order in which SciPy does, so that whatever leaves a device has the same bits either way.
The normal distribution and systems of equations serve predictions alone, which stay on the device, and
factorials the number of neighbours in a secure sum, an integer: they agree but for rounding. A component
that needs more says so (`needs_scipy`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Floats, Ints, rows_of

if TYPE_CHECKING:
    import scipy.sparse as sp

    from dprec.components import Options


@cache
def has_scipy() -> bool:
    """Return whether SciPy is installed."""
    return find_spec("scipy") is not None


def needing_scipy(settings: Options) -> Iterator[Options]:
    """Yield the components of some settings, themselves among them, that devices cannot use without SciPy."""
    if settings.needs_scipy:
        yield settings
    for value in settings.entries().values():
        if hasattr(value, "needs_scipy"):
            yield from needing_scipy(value)


def sparse_rows(values: AnyArray, items: AnyInts, indptr: Ints, n_items: int) -> sp.csr_array:
    """Return a sparse matrix by rows, shape (rows, n_items).

    ``values`` and ``items``, shape (entries,); ``indptr``, shape (rows + 1,). Without SciPy, a `SparseRows`,
    which has what devices use.
    """
    if not has_scipy():
        return SparseRows(values, items, indptr, n_items)
    import scipy.sparse as sp

    return sp.csr_array((values, items, indptr), shape=(indptr.size - 1, n_items))


@dataclasses.dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix by rows that can be multiplied from the right."""

    data: AnyArray
    """Shape (entries,)."""
    indices: AnyInts
    """The column of each entry, shape (entries,)."""
    indptr: Ints
    """Where the rows begin, shape (rows + 1,)."""
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.indptr.size - 1, self.columns

    def __getitem__(self, key: slice | tuple[slice, AnyInts]) -> SparseRows:
        """Return some consecutive rows, or ``[:, columns]`` for ascending columns."""
        if isinstance(key, slice):
            return self._rows(*key.indices(self.shape[0])[:2])
        chosen = key[1]
        places = np.full(self.columns, -1)
        places[chosen] = np.arange(chosen.size)
        columns = places[self.indices]
        kept = columns >= 0
        indptr = np.append(0, np.cumsum(kept))[self.indptr]
        return SparseRows(self.data[kept], columns[kept], indptr, chosen.size)

    def _rows(self, start: int, stop: int) -> SparseRows:
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return SparseRows(self.data[first:last], self.indices[first:last], indptr, self.columns)

    def __matmul__(self, dense: AnyArray) -> Any:
        """Return the product with an array of shape (columns,) or (columns, numbers).

        Each row's entries are added one after another, as SciPy does.
        """
        values = self.data if dense.ndim == 1 else self.data[:, None]
        products = values * dense[self.indices]
        sums = np.zeros((self.shape[0], *dense.shape[1:]), dtype=products.dtype)
        np.add.at(sums, rows_of(np.diff(self.indptr)), products)
        return sums


def normal_below(values: Floats) -> Floats:
    """Return the probability that a standard normal number is below each value, of the same shape."""
    if has_scipy():
        from scipy.special import ndtr

        below: Floats = ndtr(values)
        return below
    scaled = (-math.sqrt(0.5) * np.asarray(values)).ravel().tolist()
    return 0.5 * np.array([math.erfc(value) for value in scaled]).reshape(np.shape(values))


def normal_quantiles(shares: Floats) -> Floats:
    """Return the numbers below which a standard normal one is with some probabilities, shape (shares,)."""
    if has_scipy():
        from scipy.special import ndtri

        quantiles: Floats = ndtri(shares)
        return quantiles
    inverse = NormalDist().inv_cdf
    ends = {0.0: -math.inf, 1.0: math.inf}
    return np.array([ends[share] if share in ends else inverse(share) for share in shares.tolist()])


def log_factorials(numbers: Ints) -> Floats:
    """Return the logarithms of the factorials of some numbers from 0 on, of the same shape."""
    if has_scipy():
        from scipy.special import gammaln

        logarithms: Floats = gammaln(numbers + 1)
        return logarithms
    return np.array([math.lgamma(number + 1) for number in numbers.ravel().tolist()]).reshape(numbers.shape)


def factor_and_solve(systems: Floats, sides: Floats) -> None:
    """Replace positive definite matrices by Cholesky factors, upper triangles, and sides by solutions.

    ``systems``, shape (batch, n, n), of which nothing below the diagonal is kept; ``sides``, shape
    (batch, n), all contiguous. Raises `numpy.linalg.LinAlgError` when one is not positive definite.
    """
    if not has_scipy():
        solutions = np.linalg.solve(systems, sides[:, :, None])[:, :, 0]
        systems[:] = np.linalg.cholesky(systems).swapaxes(1, 2)
        sides[:] = solutions
        return
    from scipy.linalg.lapack import dposv

    for system, side in zip(systems, sides, strict=True):
        # LAPACK writes in place, as each is contiguous; a transposed lower triangle is an upper one.
        if dposv(system.T, side, lower=True, overwrite_a=True, overwrite_b=True)[2]:
            raise np.linalg.LinAlgError("not positive definite")


def solve_by_factors(factors: Floats, sides: Floats) -> None:
    """Replace each row b of some sides by the x of R^T x = b, for the factors R of `factor_and_solve`.

    ``factors``, shape (batch, n, n); ``sides``, shape (batch, rows, n), contiguous.
    """
    if not has_scipy():
        sides[:] = np.linalg.solve(factors.swapaxes(1, 2), sides.swapaxes(1, 2)).swapaxes(1, 2)
        return
    from scipy.linalg.lapack import dtrtrs

    for factor, rows in zip(factors, sides, strict=True):
        dtrtrs(factor.T, rows.T, lower=True, overwrite_b=True)
