"""Factors of a low-rank model, and the batched algebra shared by their least-squares updates.

A side of the model (the users, or the items) is one vector per entity. Gram matrices are stored
packed, upper triangle only, so that sums over a sparse pattern are one sparse-dense product.

Shin et al. [shin2018] keep every user's factors on the device. Given the item factors that the server
broadcasts, a user's factors solve a small ridge regression; whole partitions are solved at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    numbered,
    offsets,
    rows_of,
    segments,
    true_of_rows,
)
from dprec.completion.base import Completed

if TYPE_CHECKING:
    import scipy.sparse as sp

FloatT = TypeVar("FloatT", bound=np.floating)
ResultT = TypeVar("ResultT")

BLOCK = 1 << 15
"""Rows that are solved together: bounds the dense temporaries for any number of users."""

_WORTH_A_THREAD = 1 << 17
"""Products that take longer than to start a thread."""

_MATRIX_NUMBERS = 1 << 18
"""Numbers in the matrices of users that are solved together, of which a user has rank x rank."""


@dataclass(frozen=True, eq=False)
class BiasedFactors(Completed):
    """The model mean + user bias + item bias + user factors . item factors."""

    mean: float
    user_biases: Floats
    item_biases: Floats
    """Shapes (users,) and (items,)."""
    user_factors: Floats
    item_factors: Floats
    """Shapes (users, rank) and (items, rank)."""

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the ratings of the given cells, shape (cells,)."""
        predictions = inner_products(self.user_factors, self.item_factors, users, items)
        predictions += self.mean + self.user_biases[users] + self.item_biases[items]
        return predictions

    def predict_rows(self, users: AnyInts, n_items: int) -> Floats:
        """Predict the ratings of all items by some users, shape (users, items)."""
        predictions: Floats = self.user_factors[users] @ self.item_factors.T
        predictions += self.mean + self.user_biases[users][:, None]
        predictions += self.item_biases
        return predictions


def inner_products(left: Floats, right: Floats, rows: AnyInts, columns: AnyInts) -> Floats:
    """Return left[rows] . right[columns], shape (cells,)."""
    from dprec.kernels.effects import inner_products as write

    if left.shape[1] != right.shape[1]:
        raise ValueError(f"vectors of {left.shape[1]} and of {right.shape[1]} dimensions")
    for places, table in ((rows, left), (columns, right)):
        if places.size and not 0 <= places.min() <= places.max() < len(table):
            raise IndexError(f"{places.min()} to {places.max()}; accepted: 0 to {len(table) - 1}")
    products = np.empty(rows.size)
    users, items = (np.ascontiguousarray(places, dtype=np.int32) for places in (rows, columns))
    tables = np.ascontiguousarray(left), np.ascontiguousarray(right)
    map_blocks(lambda at: write(products[at], users[at], items[at], *tables), rows.size, BLOCK)
    return products


def packed_outer(vectors: Floats) -> Floats:
    """Return the upper triangle of x x^T for every row x, shape (rows, k (k + 1) / 2)."""
    upper, lower = np.triu_indices(vectors.shape[1])
    return vectors[:, upper] * vectors[:, lower]


def unpack(packed: NDArray[FloatT]) -> NDArray[FloatT]:
    """Return the symmetric matrices of packed upper triangles, shape (rows, k, k)."""
    k = (math.isqrt(8 * packed.shape[1] + 1) - 1) // 2
    return np.take(packed, packed_places(k).ravel(), axis=1).reshape(-1, k, k)


@cache
def packed_places(k: int) -> Ints:
    """Return where a packed triangle holds each entry of its symmetric matrix, to read: shape (k, k)."""
    upper, lower = np.triu_indices(k)
    places = np.empty((k, k), dtype=np.int64)
    places[upper, lower] = places[lower, upper] = np.arange(upper.size)
    places.setflags(write=False)
    return places


def pack(matrices: Floats) -> Floats:
    """Return the upper triangles of symmetric matrices, the inverse of `unpack`."""
    upper, lower = np.triu_indices(matrices.shape[1])
    return matrices[:, upper, lower]


def map_blocks(function: Callable[[slice], ResultT], rows: int, size: int) -> list[ResultT]:
    """Apply a function to blocks of rows, on all of its own processors, and return its results in order.

    The blocks depend only on the number of rows and the results keep their order, so a sum over them does not
    depend on the number of processors.
    """
    slices = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    at_once = min(len(slices), _processors())
    if at_once < 2:
        return [function(block) for block in slices]
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(function, slices))


def _processors() -> int:
    """Return how many processors are its own: OMP_NUM_THREADS, which Ray sets for tasks, or all."""
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(limit) if limit.isdecimal() and int(limit) else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class Profiles:
    """The ratings that the devices of a partition hold."""

    indptr: Ints
    """Shape (users + 1,)."""
    items: Int32s
    """Ascending within a user; shape (ratings,)."""
    values: Floats
    """Shape (ratings,)."""
    n_items: int

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    @property
    def users(self) -> Ints:
        """The user of each rating, shape (ratings,)."""
        return rows_of(np.diff(self.indptr))

    def of_users(self, users: AnyInts) -> Self:
        """Return the ratings of some users, in the order given."""
        counts = np.diff(self.indptr)[users]
        cells = segments(self.indptr[users], counts)
        return type(self)(offsets(counts), self.items[cells], self.values[cells], self.n_items)

    def select(self, keep: Bools) -> Self:
        """Return the ratings where ``keep`` is true, of the same users."""
        counts = true_of_rows(keep, self.indptr)
        return type(self)(offsets(counts), self.items[keep], self.values[keep], self.n_items)

    @classmethod
    def joined(cls, parts: Sequence[Profiles]) -> Self:
        """Return the ratings of the users of several parts of a catalogue, one part after the other."""
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        items, values = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("items", "values")
        )
        return cls(offsets(counts), items, values, parts[0].n_items)

    def to_sets(self) -> sp.csr_array:
        """Return which items each user has, as a users x items CSR array of ones."""
        import scipy.sparse as sp

        shape = self.indptr.size - 1, self.n_items
        return sp.csr_array((np.ones(self.items.size), self.items, self.indptr), shape=shape)

    def residuals(self, user_factors: Floats, item_factors: Floats) -> Floats:
        """Return rating - prediction for every rating, shape (ratings,)."""
        return self.values - inner_products(user_factors, item_factors, self.users, self.items)


def solve_user_factors(profiles: Profiles, item_factors: Floats, ridge: float | Floats) -> Floats:
    """Return the factors that fit each user's ratings best, shape (users, rank).

    Minimises sum (r_ui - u_u . v_i)^2 + ridge |u_u|^2 for every user (Shin et al. [shin2018], section 3); a
    ridge that is a matrix P, shape (rank, rank), adds u_u . P u_u instead. A user without ratings gets zeros.
    Each user's result depends only on its own ratings, not on the partition in which it is solved. If the
    item factors are so large that the ridge is lost in rounding, a user may have no solution; that user gets
    zeros too, since a failure would reveal what it has rated.
    """
    import scipy.sparse as sp

    rank = item_factors.shape[1]
    # Of a large catalogue, a few profiles hold little.
    rated_items, places = numbered(profiles.items)
    own_factors, ones = item_factors[rated_items], np.ones(places.size)
    products = packed_outer(own_factors)
    penalty = ridge if isinstance(ridge, np.ndarray) else ridge * np.eye(rank)
    factors = np.empty((profiles.n_users, rank))

    def solve(rows: slice) -> None:
        bounds = profiles.indptr[rows.start : rows.stop + 1]
        cells, shape = slice(bounds[0], bounds[-1]), (bounds.size - 1, rated_items.size)
        pattern, ratings = (
            sp.csr_array((values[cells], places[cells], bounds - bounds[0]), shape=shape)
            for values in (ones, profiles.values)
        )
        factors[rows] = _solutions(unpack(pattern @ products) + penalty, ratings @ own_factors)

    map_blocks(solve, profiles.n_users, max(1, _MATRIX_NUMBERS // max(1, rank) ** 2))
    return factors


def confident_user_factors(
    profiles: Profiles, item_factors: Floats, confidence: float, ridge: float
) -> Floats:
    """Return the factors that fit each user's set best, shape (users, rank).

    Minimises the sum over all items of c (p - u . v)^2, and ridge u . u, where p is 1 for a user's own items
    and 0 for all others, and c is 1 + ``confidence`` and 1 (Hu, Koren and Volinsky [hu2008]).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        penalty = (item_factors.T @ item_factors + ridge * np.eye(item_factors.shape[1])) / confidence
    sets = replace(profiles, values=np.full(profiles.items.size, 1 + 1 / confidence))
    return solve_user_factors(sets, item_factors, penalty)


def predicted_rows(profiles: Profiles, item_factors: Floats, ridge: float | Floats, base: Floats) -> Floats:
    """Return what devices predict of every item with the factors that fit their users, shape (users, items).

    Parameters
    ----------
    ridge : float or ndarray of float64, shape (rank, rank)
        As for `solve_user_factors`.
    base : ndarray of float64, shape (items,)
        What is predicted without factors.
    """
    residuals = replace(profiles, values=profiles.values - base[profiles.items])
    return products_of_rows(solve_user_factors(residuals, item_factors, ridge), item_factors) + base


def products_of_rows(left: Floats, right: Floats) -> Floats:
    """Return the inner products of every row with every row, shape (left's rows, right's rows)."""
    from dprec.kernels.effects import row_products

    left, by_factor = np.ascontiguousarray(left), np.ascontiguousarray(right.T)
    products = np.empty((len(left), len(right)))
    rows = max(1, _WORTH_A_THREAD // max(1, len(right)))
    map_blocks(lambda at: row_products(products[at], left[at], by_factor), len(left), rows)
    return products


def _solutions(matrices: Floats, sides: Floats) -> Floats:
    """Solve every system; the solution is zero if the matrix is singular."""
    try:
        return np.linalg.solve(matrices, sides[:, :, None])[:, :, 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros_like(sides)
    # One user's singular matrix must not affect the others.
    solutions = [_solutions(matrices[row : row + 1], sides[row : row + 1]) for row in range(len(matrices))]
    return np.concatenate(solutions)
