"""iALS: factors of implicit data by alternating least squares (Hu, Koren and Volinsky [hu2008]).

The loss is sum over a user's items of (1 - w h)^2, plus alpha0 times the sum over all cells of (w h)^2, plus
the regularisation of Rendle et al. [rendle2022]: each user's and item's factors are weighted with
(n + alpha0 N)^nu, for its n pairs and the N of the other side. nu = 0 is the ridge of [hu2008]; nu = 1 the
frequency scaling.

With confidence 1 + alpha on known cells and 1 on all others, the least loss of [hu2008] is this one's for
alpha0 = 1 / alpha and ridge = lambda / (1 + alpha), but for the size of all scores, which orders nothing.

A half sweep takes a few steps of conjugate gradients from the factors of the sweep before, where it could
solve for them (Takacs, Pilaszy and Tikk [takacs2011]). Ours are along axes on which H^T H is diagonal: with
the ridge it is most of every row's system, and then the preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

from dprec.arrays import Floats
from dprec.completion import map_blocks
from dprec.progress import Progress, silent
from dprec.randomness import generator

UNOBSERVED, RIDGE = 8.0, 0.2
"""What the rule of `ImplicitOptions.of` multiplies; `benchmarks/choosing/list_references.py` judges both."""

_ROWS_AT_ONCE = 1 << 12
"""Rows whose factors are found together; bounds the memory."""


@dataclass(frozen=True)
class ImplicitOptions:
    """The settings of iALS."""

    unobserved: float
    """alpha0: weight of a cell about which nothing is known, beside 1 of a pair."""
    ridge: float
    rank: int = 128
    sweeps: int = 16
    steps: int = 2
    """Of conjugate gradients in a half sweep; as many as the rank solve, but for rounding. With 1, 2 or 3 of
    them the mean NDCG@10 on validation items is the same to three digits.
    """
    frequency_scaling: float = 1.0
    """nu: exponent of the numbers of pairs that the ridge is scaled with."""
    deviation: float = 0.1
    """Standard deviation of the first factors, divided by the root of the rank."""
    seed: int = 0

    @classmethod
    def of(
        cls,
        sets: scipy.sparse.csr_array,
        *,
        unobserved: float | None = None,
        ridge: float | None = None,
        **others: Any,
    ) -> Self:
        """Return settings that suit sets, shape (users, items): None follows from their sizes.

        Of n items a set, and d in all, unknown cells have 8 times the weight of all pairs together, and the
        ridge is .2 (n^2 d)^(-1/6) for a frequency scaling of 1; for another one it is as strong for a user
        and an item with as many pairs as the mean. The weight of .3 that suits MovieLens would let the ridge
        leave nothing but popularity of 25,000 items. Copies of all users change neither.
        """
        n_items, users = sets.shape[1], max(int(np.count_nonzero(np.diff(sets.indptr))), 1)
        of_user, of_item = max(sets.nnz, 1) / users, max(sets.nnz, 1) / n_items
        scaling: float = others.get("frequency_scaling", cls.frequency_scaling)
        if unobserved is None:
            unobserved = UNOBSERVED * of_user / n_items
        if ridge is None:
            weights = (of_user + unobserved * n_items) * (of_item + unobserved * users)
            ridge = RIDGE * (of_user**2 * n_items) ** (-1 / 6) * weights ** ((1 - scaling) / 2)
        return cls(unobserved=float(unobserved), ridge=float(ridge), **others)


def ials(sets: scipy.sparse.csr_array, options: ImplicitOptions, progress: Progress = silent) -> Floats:
    """Return the item factors H, shape (items, rank), after sweeps over users and then items.

    ``sets``: shape (users, items); the factors of any user follow from H by `fold_in`.
    """
    item_factors = first_factors(sets.shape[1], options)
    user_factors = np.zeros((sets.shape[0], options.rank))
    transposed = sets.T.tocsr()
    for sweep in range(options.sweeps):
        user_factors = approached(sets, item_factors, user_factors, options)
        item_factors = approached(transposed, user_factors, item_factors, options)
        progress("sweeps", sweep + 1, options.sweeps)
    return item_factors


def first_factors(n_items: int, options: ImplicitOptions) -> Floats:
    """Return the item factors that sweeps begin with, shape (items, rank)."""
    normals = generator(options.seed, "ials").standard_normal((n_items, options.rank))
    return normals * (options.deviation / np.sqrt(options.rank))


def approached(
    sets: scipy.sparse.csr_array, factors: Floats, start: Floats, options: ImplicitOptions
) -> Floats:
    """Return what `options.steps` make of the factors of the rows, from ``start``; see `fold_in`."""
    from dprec.kernels.conjugate_gradients import approach

    everywhere, axes = np.linalg.eigh(options.unobserved * (factors.T @ factors))
    turned, solved, ridges = factors @ axes, start @ axes, _ridges(sets, factors, options)
    indptr, columns = sets.indptr.astype(np.int64), sets.indices.astype(np.int32)

    def step(rows: slice) -> None:
        ends = indptr[rows.start : rows.stop + 1]
        approach(
            solved[rows], ends, columns, turned, np.maximum(everywhere, 0.0), ridges[rows], options.steps
        )

    map_blocks(step, len(solved), _ROWS_AT_ONCE)
    approached: Floats = solved @ axes.T
    return approached


def fold_in(
    sets: scipy.sparse.csr_array, factors: Floats, options: ImplicitOptions, gramian: Floats | None = None
) -> Floats:
    """Return the factors of the rows of some sets, given those of the columns, shape (rows, rank).

    Each row solves (sum over its columns of h h^T + alpha0 H^T H + ridge (n + alpha0 N)^nu I) w = sum of h.
    ``gramian``: H^T H, where it is known.
    """
    everywhere, axes = np.linalg.eigh(
        options.unobserved * (factors.T @ factors if gramian is None else gramian)
    )
    everywhere, ridges = np.maximum(everywhere, 0.0), _ridges(sets, factors, options)
    nonempty, solved = np.flatnonzero(np.diff(sets.indptr)), np.zeros((sets.shape[0], factors.shape[1]))
    for start in range(0, nonempty.size, _ROWS_AT_ONCE):
        block = sets[nonempty[start : start + _ROWS_AT_ONCE]]
        turned = factors[block.indices] @ axes
        for row, first, last in zip(nonempty[start:], block.indptr, block.indptr[1:], strict=False):
            solved[row] = _solution(turned[first:last], everywhere + ridges[row])
    return solved @ axes.T


def _solution(factors: Floats, diagonal: Floats) -> Floats:
    """Return x of (D + H^T H) x = H^T 1, shape (rank,); ``factors``: H, shape (cells, rank)."""
    cells, rank = factors.shape
    solution: Floats
    if cells < rank:
        # x = D^-1 H^T (I + H D^-1 H^T)^-1 1: sets are smaller than the rank, mostly.
        scaled = factors / diagonal
        solution = np.linalg.solve(np.eye(cells) + factors @ scaled.T, np.ones(cells)) @ scaled
    else:
        solution = np.linalg.solve(np.diag(diagonal) + factors.T @ factors, factors.sum(axis=0))
    return solution


def _ridges(sets: scipy.sparse.csr_array, factors: Floats, options: ImplicitOptions) -> Floats:
    """Return the ridge of every row, shape (rows,)."""
    pairs: Floats = np.diff(sets.indptr) + options.unobserved * len(factors)
    return options.ridge * pairs**options.frequency_scaling
