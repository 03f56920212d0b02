"""Matrix factorisation under a mixture of Gaussians (MoG-MF; Neera et al. [neera2023], Sections 4.2 and 4.3).

The noise of every cell is drawn from one of a few Gaussians around 0. Expectation maximisation divides
each cell among them (E-step); the mixture is then estimated from these shares, and the factors by weighted
least squares (M-step). Everything is a point estimate, and the model is u_u . v_i alone (Algorithm 2). Two
misprints are mended: the likelihood before Eq. (6) has a product where a mixture has a sum over components,
and Eq. (10) puts the root of the weight on the squared residual.

The paper gives no rank, threshold or limit of steps, and does not say which change it compares with the
threshold; here it is that of the log-likelihood. Each M-step sweeps over users and items once. Without a
ridge the likelihood has no bound: from some starts, a component shrinks onto cells that are fitted exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.completion.base import Completion
from dprec.completion.factors import inner_products
from dprec.completion.gradient_descent import PlainFactors, initial_factors, solve_weighted
from dprec.completion.mixtures import SMALLEST_VARIANCE, GaussianMixture
from dprec.completion.variational import WeightedCells, check_rank, naming_iteration
from dprec.components import option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent


@dataclass(frozen=True, kw_only=True)
class MogMatrixFactorization(Completion):
    """Matrix factorisation whose noise is a mixture of Gaussians, as published (Neera et al. [neera2023])."""

    kind: Literal["mog-mf"] = "mog-mf"
    papers: ClassVar[tuple[str, ...]] = ("neera2023",)
    rank: int = option(
        "Number of factors; not published, chosen by benchmarks/choose_neera_settings.py.", 1, ge=1
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

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> PlainFactors:
        """Complete the matrix; see `Completion.fit`.

        A step is Eq. (9), then Eq. (10) for the users and for the items in turn, then Eq. (8). Each of them
        raises the log-likelihood less the ridge's penalty, which therefore never falls.

        Diagnostics: ``pi`` and ``sigma`` of the components, by ascending sigma (rating units);
        ``log_likelihood``, less the penalty, after every step; ``steps``; ``weight_spread``, the standard
        deviation of the cells' weights over their mean.
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
                by_user = WeightedCells.of(observations.by_user, values, weights)
                users = solve_weighted(by_user.weights, by_user.targets, items, self.ridge)
                by_item = WeightedCells.of(observations.by_item, values, weights)
                items = solve_weighted(by_item.weights, by_item.targets, users, self.ridge)
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
            diagnostics=mixture.diagnostics(trace, weight_spread),
            notes=mixture.notes(weight_spread) if values.size else (),
        )
