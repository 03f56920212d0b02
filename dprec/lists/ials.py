"""iALS: factors of implicit data by alternating least squares (Hu, Koren and Volinsky [hu2008]).

The loss is sum over a user's items of (1 - w h)^2, plus alpha0 times the sum over all cells of (w h)^2, plus
the regularisation of Rendle et al. [rendle2022]: each user's and item's factors are weighted with
(n + alpha0 N)^nu, for its n pairs and the N of the other side. nu = 0 is the ridge of [hu2008]; nu = 1 the
frequency scaling.

With confidence 1 + alpha on known cells and 1 on all others, the least loss of [hu2008] is this one's for
alpha0 = 1 / alpha and ridge = lambda / (1 + alpha), but for the size of all scores, which orders nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dprec.arrays import Floats
from dprec.progress import Progress, silent
from dprec.randomness import generator

_CELLS_AT_ONCE = 1 << 22
"""Numbers of systems of equations that are solved together; bounds the memory."""


@dataclass(frozen=True)
class ImplicitOptions:
    """The settings of iALS.

    Weight and ridge are the best of ten pairs on validation items of MovieLens 100K and MSWeb
    (benchmarks/choosing/list_references.py).
    """

    rank: int = 64
    sweeps: int = 16
    unobserved: float = 0.3
    """alpha0: weight of a cell about which nothing is known, beside 1 of a pair."""
    ridge: float = 0.02
    frequency_scaling: float = 1.0
    """nu: exponent of the numbers of pairs that the ridge is scaled with."""
    deviation: float = 0.1
    """Standard deviation of the first factors, divided by the root of the rank."""
    seed: int = 0


def ials(sets: sp.csr_array, options: ImplicitOptions, progress: Progress = silent) -> Floats:
    """Return the item factors H, shape (items, rank), after sweeps over users and then items.

    ``sets``: shape (users, items); the factors of any user follow from H by `fold_in`.
    """
    item_factors = first_factors(sets.shape[1], options)
    transposed = sets.T.tocsr()
    for sweep in range(options.sweeps):
        user_factors = fold_in(sets, item_factors, options)
        item_factors = fold_in(transposed, user_factors, options)
        progress("sweeps", sweep + 1, options.sweeps)
    return item_factors


def first_factors(n_items: int, options: ImplicitOptions) -> Floats:
    """Return the item factors that sweeps begin with, shape (items, rank)."""
    drawn = generator(options.seed, "ials").standard_normal((n_items, options.rank))
    return drawn * (options.deviation / np.sqrt(options.rank))


def fold_in(sets: sp.csr_array, factors: Floats, options: ImplicitOptions) -> Floats:
    """Return the factors of the rows of some sets, given those of the columns, shape (rows, rank).

    Each row solves (sum over its columns of h h^T + alpha0 H^T H + ridge (n + alpha0 N)^nu I) w = sum of h.
    """
    rank, counts = factors.shape[1], np.diff(sets.indptr)
    everywhere = options.unobserved * (factors.T @ factors)
    ridges = options.ridge * (counts + options.unobserved * len(factors)) ** options.frequency_scaling
    solved = np.empty((counts.size, rank))
    for start, stop in _blocks(counts, rank):
        systems = np.empty((stop - start, rank, rank))
        for row in range(start, stop):
            own = factors[sets.indices[sets.indptr[row] : sets.indptr[row + 1]]]
            systems[row - start] = own.T @ own
        systems += everywhere
        systems[:, np.arange(rank), np.arange(rank)] += ridges[start:stop, None]
        sums = sets[start:stop] @ factors
        solved[start:stop] = np.linalg.solve(systems, sums[:, :, None])[:, :, 0]
    return solved


def _blocks(counts: Floats, rank: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CELLS_AT_ONCE // rank**2)
    for start in range(0, counts.size, step):
        yield start, min(start + step, counts.size)
