"""Matrix factorisation by stochastic gradient descent, without effects.

The decoder of ISGD (Berlioz et al. [berlioz2015], as compared by Neera et al. [neera2023], Section 5.3.4):
for one rating after the other, u_u and v_i take a step down the gradient of
(r_ui - u_u . v_i)^2 + lambda (|u_u|^2 + |v_i|^2), the factor 2 left to the step size.

Steps of ratings that share neither user nor item commute. Every epoch therefore lays a random Latin square
over the cells and visits its symbols in turn: the ratings under one symbol share nothing and are stepped at
once, which equals stepping them one by one. This is sequential descent, but its order is a random Latin
square's rather than one that is uniform over all orders.

Neera et al. [neera2023] solve their Eq. (1), without effects; they give no rank, step size or epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import offsets
from dprec.completion.base import Completion
from dprec.completion.factors import inner_products
from dprec.completion.gradient_descent import PlainFactors, initial_factors
from dprec.completion.variational import check_rank
from dprec.components import option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

_CHOSEN = "not published, chosen by benchmarks/choose_neera_settings.py"


@dataclass(frozen=True, kw_only=True)
class SgdMatrixFactorization(Completion):
    """Matrix factorisation by stochastic gradient descent, as in ISGD (Berlioz et al. [berlioz2015])."""

    papers: ClassVar[tuple[str, ...]] = ("berlioz2015", "neera2023")

    kind: Literal["sgd-mf"] = "sgd-mf"
    rank: int = option(f"Number of factors; {_CHOSEN}.", 1, ge=1)
    step: float = option(f"Step size gamma; {_CHOSEN}.", 0.003, gt=0)
    regularization: float = option(
        "Penalty lambda on the squares of the factors.",
        0.0,
        published=0.0,
        source="neera2023, Eq. 1",
        ge=0,
    )
    epochs: int = option(f"Times that every rating is visited; {_CHOSEN}.", 80, ge=1)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> PlainFactors:
        """Complete the matrix; see `Completion.fit`.

        Diagnostics: ``loss`` after every epoch, the mean over the ratings of what is minimised; ``epochs``.
        """
        values = observations.values
        cells = observations.users, observations.items
        users, items = initial_factors(observations, self.rank, seed)
        random = generator(seed, "visits")
        trace: list[float] = []
        for epoch in range(1, 1 + (self.epochs if values.size else 0)):
            with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
                for visited in visits(observations, random):
                    self._descend(users, items, observations, visited)
                penalties = (users**2).sum(axis=1)[cells[0]] + (items**2).sum(axis=1)[cells[1]]
                squares = (values - inner_products(users, items, *cells)) ** 2
                trace.append(float((squares + self.regularization * penalties).mean()))
            if not np.isfinite(trace[-1]):
                raise RunError(f"gradient descent diverged in iteration {epoch}; a smaller step may help")
            progress("completing", epoch, self.epochs)
        return PlainFactors.of(observations, users, items, diagnostics={"epochs": len(trace), "loss": trace})

    def _descend(
        self,
        users: NDArray[np.float64],
        items: NDArray[np.float64],
        observations: Observations,
        visited: NDArray[np.int64],
    ) -> None:
        """Step the factors of ratings that share neither user nor item, in place."""
        rows, columns = observations.users[visited], observations.items[visited]
        left, right = users[rows], items[columns]
        errors = (observations.values[visited] - np.einsum("ij,ij->i", left, right))[:, None]
        users[rows] = left + self.step * (errors * right - self.regularization * left)
        items[columns] = right + self.step * (errors * left - self.regularization * right)


def visits(observations: Observations, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Visit every rating once, in groups that share neither user nor item.

    Parameters
    ----------
    random : Generator
        Lays the Latin square.

    Yields
    ------
    ndarray of int64
        Positions of a group's ratings.
    """
    order = max(observations.shape)
    rows, columns = random.permutation(order), random.permutation(order)
    symbols = (rows[observations.users] + columns[observations.items]) % order
    positions = np.argsort(symbols, kind="stable")
    bounds = offsets(np.bincount(symbols))
    for start, stop in pairwise(bounds):
        if start < stop:
            yield positions[start:stop]
