"""Matrix factorisation under a mixture of Gaussians (MoG-MF; Neera et al. [neera2023], Sections 4.2 and 4.3).

The noise of every cell is drawn from one of a few Gaussians around 0. Expectation maximisation divides
each cell among them (E-step); the mixture is then estimated from these shares, and the factors by weighted
least squares (M-step). Everything is a point estimate, and the model is u_u . v_i alone (Algorithm 2). Two
misprints are mended: the likelihood before Eq. (6) has a product where a mixture has a sum over components,
and Eq. (10) puts the root of the weight on the squared residual.

The paper gives no rank, threshold or limit of steps, and does not say which change it compares with the
threshold; here it is that of the log-likelihood. Each M-step sweeps over users and items once. Without a
ridge the likelihood has no bound: from some starts, a component shrinks onto cells that are fitted exactly.

Our form has user and item biases, learned priors and uncertain factors. The steps are the same, but the
factors are solved as in `dprec.completion.matrix_factorization`, so that residuals include the uncertainty of
the factors; otherwise the smallest component would shrink onto cells that the factors have overfitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.completion.base import Completion, FittedMixture
from dprec.completion.factors import BLOCK, BiasedFactors, inner_products, map_blocks
from dprec.completion.gradient_descent import PlainFactors, initial_factors, solve_weighted
from dprec.completion.matrix_factorization import (
    Side,
    WeightedCells,
    expected_squares,
    factors_of,
    naming_iteration,
    solve_in_turn,
)
from dprec.components import option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import generator

if TYPE_CHECKING:
    import scipy.sparse as sp

SMALLEST_VARIANCE = 1e-9
"""Least variance of a component, in squared rating units: keeps exact fits finite."""

_FIRST_RATIO = 4.0
"""Initial ratio of the variances of successive components."""

_COLLAPSED = 0.01
"""Relative spread of the weights below which they might as well be equal."""


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Gaussians around 0: their shares (pi) and variances (sigma^2), shapes (components,)."""

    shares: Floats
    variances: Floats

    @classmethod
    def around(cls, variance: float, components: int) -> GaussianMixture:
        """Spread the components evenly, in logarithms, around a variance."""
        steps = np.arange(components) - (components - 1) / 2
        return cls(np.full(components, 1 / components), variance * np.power(_FIRST_RATIO, steps))

    @classmethod
    def at_random(cls, variance: float, components: int, seed: int) -> GaussianMixture:
        """Draw shares, and variances within a factor of 4 of the given one."""
        random = generator(seed, "initial mixture")
        shares = random.dirichlet(np.ones(components))
        return cls(shares, variance * np.power(_FIRST_RATIO, random.uniform(-1, 1, components)))

    def responsibilities(self, squares: Floats) -> tuple[Floats, float]:
        """Divide every cell among the components (Neera et al. [neera2023], Eq. 8).

        Returns shape (components, cells), and the log-likelihood of the cells (Eq. 6, with the sum over
        components that a mixture has).
        """
        gamma = np.empty((len(self.shares), squares.size))
        with np.errstate(divide="ignore"):  # an extinct component has a share of 0
            log_heights = np.log(self.shares) - np.log(2 * np.pi * self.variances) / 2
        slopes = 0.5 / self.variances

        def fill(cells: slice) -> float:
            logs = log_heights[:, None] - slopes[:, None] * squares[cells]
            top = logs.max(axis=0)
            np.exp(logs - top, out=logs)
            total = logs.sum(axis=0)
            gamma[:, cells] = logs / total
            return float((top + np.log(total)).sum())

        return gamma, sum(map_blocks(fill, squares.size, BLOCK))

    def estimated(self, gamma: Floats, squares: Floats) -> GaussianMixture:
        """Return the mixture that the responsibilities imply (Neera et al. [neera2023], Eq. 9)."""
        cells = gamma.sum(axis=1)
        with np.errstate(invalid="ignore"):
            estimates = np.where(cells > 0, np.einsum("kc,c->k", gamma, squares) / cells, self.variances)
        return GaussianMixture(cells / squares.size, np.maximum(estimates, SMALLEST_VARIANCE))

    def precisions(self, gamma: Floats) -> Floats:
        """Return sum_k gamma_k / sigma_k^2 per cell, shape (cells,); half of it weighs Eq. (10)'s squares."""
        return np.einsum("k,kc->c", 1 / self.variances, gamma)

    def fitted(self, log_likelihood: list[float]) -> FittedMixture:
        """Return what the expectation maximisation learned."""
        order = np.argsort(self.variances)
        shares, deviations = self.shares[order].tolist(), np.sqrt(self.variances[order]).tolist()
        return FittedMixture(tuple(shares), tuple(deviations), tuple(log_likelihood))

    def notes(self, weight_spread: float) -> tuple[str, ...]:
        """Note if the weights of the cells vary so little that the mixture does no more than one Gaussian."""
        components = len(self.shares)
        if components == 1 or weight_spread >= _COLLAPSED:
            return ()
        deviation = float(np.sqrt(self.shares @ self.variances))
        return (
            f"MoG-MF: the mixture of {components} collapsed to one Gaussian of standard "
            f"deviation {deviation:.3f}; every rating has the same weight, as without a mixture.",
        )


@dataclass(frozen=True, kw_only=True)
class MogMatrixFactorization(Completion):
    """Matrix factorisation whose noise is a mixture of Gaussians, as published (Neera et al. [neera2023])."""

    kind: Literal["mog-mf"] = "mog-mf"
    has_factors: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("neera2023",)
    rank: int = option(
        "Number of factors; not published, chosen by benchmarks/choosing/settings.py.", 1, ge=1
    )
    components: int = option("Gaussians in the mixture.", 3, ge=1)
    iterations: int = option("Expectation-maximisation steps, at most.", 100, ge=1)
    tolerance: float = option("Relative gain in log-likelihood that ends the steps.", 1e-7, ge=0)
    ridge: float = option(
        "Penalty on the squares of all factors, in units of log-likelihood.",
        0.0,
        published=0.0,
        source="neera2023, Eqs. 1 and 10",
        ge=0,
    )

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> PlainFactors:
        """Complete the matrix; see `Completion.fit`.

        A step is Eq. (9), then Eq. (10) for the users and for the items in turn, then Eq. (8). Each of them
        raises the log-likelihood less the ridge's penalty, which therefore never falls.

        The log-likelihood of the mixture is less the penalty. Diagnostics: ``steps``; ``weight_spread``, the
        standard deviation of the cells' weights over their mean.
        """
        values = observations.values
        cells = observations.users, observations.items
        users, items = initial_factors(observations, self.rank, seed)
        spread = max(float(values.var()) if values.size else 1.0, SMALLEST_VARIANCE)
        mixture = GaussianMixture.at_random(spread, self.components, seed)
        squares = (values - inner_products(users, items, *cells)) ** 2
        shares, _ = mixture.responsibilities(squares)
        weight_spread = 0.0
        trace: list[float] = []
        for step in range(1, 1 + (self.iterations if values.size else 0)):
            with naming_iteration("MoG-MF", step):
                mixture = mixture.estimated(shares, squares)
                weights = mixture.precisions(shares) / 2
                weighted = weights, weights * values
                users = solve_weighted(*_arranged(observations.by_user, *weighted), items, self.ridge)
                items = solve_weighted(*_arranged(observations.by_item, *weighted), users, self.ridge)
            squares = (values - inner_products(users, items, *cells)) ** 2
            shares, log_likelihood = mixture.responsibilities(squares)
            trace.append(log_likelihood - self.ridge * float((users**2).sum() + (items**2).sum()))
            if not np.isfinite(trace[-1]):
                raise RunError(f"MoG-MF diverged in iteration {step}: log-likelihood {trace[-1]}")
            weight_spread = float(weights.std() / weights.mean())
            progress("completing", step, self.iterations)
            if step > 1 and abs(trace[-1] - trace[-2]) <= self.tolerance * abs(trace[-2]):
                break
        return PlainFactors.of(
            observations,
            users,
            items,
            diagnostics={"steps": len(trace), "weight_spread": weight_spread},
            mixture=mixture.fitted(trace),
            notes=mixture.notes(weight_spread) if values.size else (),
        )


def _arranged(positions: sp.csr_array, weights: Floats, targets: Floats) -> tuple[sp.csr_array, sp.csr_array]:
    """Arrange what belongs to each cell by a pattern whose data are the cells' positions."""
    import scipy.sparse as sp

    structure, shape = (positions.indices, positions.indptr), positions.shape
    first, second = (sp.csr_array((of[positions.data], *structure), shape=shape) for of in (weights, targets))
    return first, second


@dataclass(frozen=True, kw_only=True)
class VariationalMogMatrixFactorization(Completion):
    """MoG-MF with user and item biases, learned priors and a variational E-step."""

    kind: Literal["mog-mf-variational"] = "mog-mf-variational"
    has_factors: ClassVar[bool] = True
    rank: int = option("Number of factors.", 5, ge=1)
    components: int = option("Gaussians in the mixture.", 3, ge=1)
    iterations: int = option("Expectation-maximisation steps, at most.", 100, ge=1)
    tolerance: float = option("Relative gain in log-likelihood that ends the steps.", 1e-7, ge=0)
    ridge: float | None = option(
        "Inverse prior variance of biases and factors; learned from the data when null.", None, gt=0
    )

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        The log-likelihood of the mixture is strictly a lower bound of it, averaged over the uncertain
        factors, which never falls. Diagnostics: ``steps``; ``weight_spread``, the standard deviation of the
        cells' weights over their mean.
        """
        size, mean = observations.values.size, observations.mean
        residuals = observations.values - mean
        spread = max(float(residuals.var()) if size else 1.0, SMALLEST_VARIANCE)
        users = Side.at_zero(observations.shape[0], self.rank, spread, sharing=self.rank)
        items = Side.at_random(observations.shape[1], self.rank, spread, sharing=self.rank, seed=seed)
        if self.ridge is not None:
            prior = np.eye(1 + self.rank) / self.ridge
            users, items = replace(users, prior=prior), replace(items, prior=prior)
        mixture = GaussianMixture.around(spread, self.components)
        weight_spread = 0.0
        trace: list[float] = []
        squares = expected_squares(users, items, observations, residuals)
        responsibilities, _ = mixture.responsibilities(squares)
        for step in range(1, 1 + (self.iterations if size else 0)):
            with naming_iteration("MoG-MF", step):
                mixture = mixture.estimated(responsibilities, squares)
                weights = mixture.precisions(responsibilities)
                cells = WeightedCells.of(observations, residuals, weights)
                users, items, _ = solve_in_turn(users, items, cells)
            if self.ridge is None:
                users, items = users.with_learned_variances(), items.with_learned_variances()
            squares = expected_squares(users, items, observations, residuals)
            responsibilities, fitted = mixture.responsibilities(squares)
            bound = fitted - users.divergence() - items.divergence()
            if not np.isfinite(bound):
                raise RunError(f"MoG-MF diverged in iteration {step}: log-likelihood {bound}")
            trace.append(bound)
            weight_spread = float(weights.std() / weights.mean())
            progress("completing", step, self.iterations)
            if step > 1 and abs(trace[-1] - trace[-2]) <= self.tolerance * abs(trace[-2]):
                break
        return factors_of(
            mean,
            users,
            items,
            diagnostics={"steps": len(trace), "weight_spread": weight_spread},
            mixture=mixture.fitted(trace),
            notes=mixture.notes(weight_spread) if size else (),
        )
