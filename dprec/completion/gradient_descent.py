"""Plain factors, r_ui = u_u . v_i without biases, and the steps that descend their gradient.

They are the model of Neera et al. [neera2023], Eq. (1), whose factors carry the level of the ratings as well;
no rank, step size or epochs are given.

The decoder of ISGD (Berlioz et al. [berlioz2015], as compared by Neera et al. [neera2023], Section 5.3.4):
for one rating after the other, u_u and v_i take a step down the gradient of (r_ui - u_u . v_i)^2 + lambda
(|u_u|^2 + |v_i|^2), the factor 2 left to the step size. Every epoch lays a random Latin square over the cells
and visits its symbols in turn: an order drawn from two permutations, of users and of items, rather than one
that is uniform over all orders of the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints
from dprec.completion.base import Completed, Completion
from dprec.completion.factors import BLOCK, inner_products, map_blocks, packed_outer, unpack
from dprec.components import Options, option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

if TYPE_CHECKING:
    import scipy.sparse as sp

_SINGULAR = 1e-10
"""Relative size below which an eigenvalue of a normal matrix counts as 0."""


@dataclass(frozen=True, eq=False)
class PlainFactors(Completed):
    """The model user factors . item factors."""

    mean: float
    """Predicted for the cells of a user or an item without ratings, about which the model says nothing."""
    user_factors: Floats
    item_factors: Floats
    """Shapes (users, rank) and (items, rank)."""
    rated_by: Bools
    rated: Bools
    """Who has ratings, and what has; shapes (users,) and (items,)."""

    @classmethod
    def of(
        cls,
        observations: Observations,
        user_factors: Floats,
        item_factors: Floats,
        **learned: Any,
    ) -> Self:
        """Return the model of what was observed, with the further fields of `Completed`."""
        return cls(
            observations.mean,
            user_factors,
            item_factors,
            np.bincount(observations.users, minlength=observations.shape[0]) > 0,
            np.bincount(observations.items, minlength=observations.shape[1]) > 0,
            **learned,
        )

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the ratings of the given cells, shape (cells,)."""
        products = inner_products(self.user_factors, self.item_factors, users, items)
        return np.where(self.rated_by[users] & self.rated[items], products, self.mean)

    def predict_rows(self, users: AnyInts, n_items: int) -> Floats:
        """Predict the ratings of all items by some users, shape (users, items)."""
        products = self.user_factors[users] @ self.item_factors.T
        return np.where(self.rated_by[users][:, None] & self.rated, products, self.mean)


def initial_factors(observations: Observations, rank: int, seed: int) -> tuple[Floats, Floats]:
    """Draw the factors of both sides at random, shapes (users, rank) and (items, rank).

    Their scale lets the predictions be as large as the ratings, so that the same start, in units of the
    ratings, serves every scale.
    """
    size = float(np.sqrt(np.mean(observations.values**2))) if observations.values.size else 1.0
    random = generator(seed, "initial plain factors")
    users, items = (random.standard_normal((entities, rank)) for entities in observations.shape)
    scale = np.sqrt(size / np.sqrt(rank))
    return scale * users, scale * items


def solve_weighted(
    weights: sp.csr_array, targets: sp.csr_array, other_factors: Floats, ridge: float
) -> Floats:
    """Return the minimum of sum w (r - x . y)^2 + ridge |x|^2 for every entity, shape (entities, rank).

    ``weights``, ``targets``, shape (entities, entities of the other side): ``w`` and ``w r`` of each cell.
    Without a ridge, the smallest of several minima is returned. Raises numpy.linalg.LinAlgError when a
    solution is not finite.
    """
    rank = other_factors.shape[1]
    products = packed_outer(other_factors)
    solved = np.empty((weights.shape[0], rank))

    def solve(rows: slice) -> None:
        normal = unpack(weights[rows] @ products) + ridge * np.eye(rank)
        sides = (targets[rows] @ other_factors)[:, :, None]
        if ridge > 0:
            solved[rows] = np.linalg.solve(normal, sides)[:, :, 0]
        else:
            solved[rows] = (np.linalg.pinv(normal, rcond=_SINGULAR, hermitian=True) @ sides)[:, :, 0]

    map_blocks(solve, len(solved), BLOCK)
    if not np.all(np.isfinite(solved)):
        raise np.linalg.LinAlgError("factors that are not finite")
    return solved


_CHOSEN = "not published, chosen by benchmarks/choosing/settings.py"


@dataclass(frozen=True, kw_only=True)
class SgdMatrixFactorization(Completion):
    """Matrix factorisation by stochastic gradient descent, as in ISGD (Berlioz et al. [berlioz2015])."""

    papers: ClassVar[tuple[str, ...]] = ("berlioz2015", "neera2023")

    kind: Literal["sgd-mf"] = "sgd-mf"
    has_factors: ClassVar[bool] = True
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

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> PlainFactors:
        """Complete the matrix; see `Completion.fit`.

        Diagnostics: ``loss`` after every epoch, the mean over the ratings of what is minimised; ``epochs``.
        """
        from dprec.kernels.descent import descend, losses

        cells = observations.users, observations.items, observations.values
        users, items = initial_factors(observations, self.rank, seed)
        random = generator(seed, "visits")
        lost = np.empty(observations.values.size)
        trace: list[float] = []
        for epoch in range(1, 1 + (self.epochs if lost.size else 0)):
            descend(users, items, visits(observations, random), *cells, self.step, self.regularization)
            losses(lost, users, items, *cells, self.regularization)
            with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
                trace.append(float(lost.mean()))
            if not np.isfinite(trace[-1]):
                raise RunError(f"gradient descent diverged in iteration {epoch}; a smaller step may help")
            progress("completing", epoch, self.epochs)
        return PlainFactors.of(observations, users, items, diagnostics={"epochs": len(trace), "loss": trace})


def visits(observations: Observations, random: np.random.Generator) -> Ints:
    """Return the positions of all ratings in the order of an epoch, shape (ratings,)."""
    from dprec.kernels.descent import order_by_symbol

    size = max(observations.shape)
    rows, columns = random.permutation(size), random.permutation(size)
    symbols = (rows[observations.users] + columns[observations.items]) % size
    order = np.empty_like(symbols)
    order_by_symbol(order, np.zeros(size + 1, dtype=np.int64), symbols)
    return order


Start = Literal["random", "level"]


@dataclass(frozen=True, kw_only=True)
class StepOptions(Options):
    """How far the item factors move in a round."""

    size: float = option("Step size gamma of the first round.", 0.2, gt=0)
    decay: float = option(
        "The step of round t is size / t^decay.",
        1.0,
        published=1.0,
        source="shin2018, Algorithm 1",
        ge=0,
    )
    momentum: float = option(
        "Share of the last step that is repeated.",
        0.0,
        published=0.0,
        source="shin2018, Algorithm 1",
        ge=0,
        lt=1,
    )
    regularization: float = option("Pull lambda of the factors towards their point of rest.", 0.0, ge=0)
    start: Start = option(
        "Initial item factors: 'random', all of them small; 'level', the first is 1, so that a device can "
        "fit the level of its user's ratings from the start.",
        "level",
        published="random",
        source="shin2018, Algorithm 1",
    )
    pull: Literal["zero", "start"] = option(
        "Where the factors rest: at zero, a ridge, or at the mean of the initial factors.",
        "start",
        published="zero",
        source="shin2018, Algorithm 1",
    )


def initial_item_factors(n_items: int, rank: int, seed: int, start: Start = "level") -> Floats:
    """Return the item factors that the first round broadcasts, shape (items, rank)."""
    factors = generator(seed, "item factors").normal(0.0, 0.3, (n_items, rank))
    if start == "level":
        factors[:, 0] = 1.0
    return factors


def step_item_factors(
    factors: Floats,
    velocity: Floats,
    gradient: Floats,
    share_of_raters: Floats | None,
    round_index: int,
    options: StepOptions,
) -> tuple[Floats, Floats]:
    """Take one step: V <- V - gamma_t (G + 2 lambda (V - V_0)), gamma_t = gamma / t^decay.

    Shin et al. [shin2018], Algorithm 1, line 14, where V_0 is 0; here it is the resting point of the options.
    If the reports show how many users rated an item, its row is divided by its curvature in units of u^2, 2
    (share + lambda), so that rarely rated items learn as fast as the others.
    """
    resting_point = np.zeros_like(factors)
    if options.pull == "start" and options.start == "level":
        resting_point[:, 0] = 1.0
    direction = gradient + 2.0 * options.regularization * (factors - resting_point)
    if share_of_raters is not None:
        curvature = 2.0 * (share_of_raters + options.regularization)
        direction = np.divide(
            direction, curvature[:, None], out=np.zeros_like(direction), where=curvature[:, None] > 0
        )
    velocity = options.momentum * velocity + direction
    return factors - options.size / round_index**options.decay * velocity, velocity
