"""MoG-MF with user and item biases, learned priors and uncertain factors: our form of it.

The steps are those of Neera et al. [neera2023], Section 4.3 (`dprec.completion.mixtures`),
but the factors are solved as in `dprec.completion.variational`, so that residuals include the uncertainty
of the factors; otherwise the smallest component would shrink onto cells that the factors have overfitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors
from dprec.completion.mixtures import SMALLEST_VARIANCE, GaussianMixture
from dprec.completion.variational import (
    Side,
    WeightedCells,
    check_rank,
    expected_squares,
    factors_of,
    naming_iteration,
)
from dprec.components import option
from dprec.errors import RunError
from dprec.observations import Observations
from dprec.progress import Progress, silent


@dataclass(frozen=True, kw_only=True)
class VariationalMogMatrixFactorization(Completion):
    """MoG-MF with user and item biases, learned priors and a variational E-step."""

    kind: Literal["mog-mf-variational"] = "mog-mf-variational"
    rank: int = option("Number of factors.", 5, ge=1)
    components: int = option("Gaussians in the mixture.", 3, ge=1)
    iterations: int = option("Expectation-maximisation steps, at most.", 100, ge=1)
    tolerance: float = option("Relative gain in log-likelihood that ends the steps.", 1e-7, ge=0)
    ridge: float | None = option(
        "Inverse prior variance of effects and factors; learned from the data when null.", None, gt=0
    )

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        Diagnostics: ``pi`` and ``sigma`` of the components, by ascending sigma (rating units);
        ``log_likelihood`` after every step, strictly a lower bound of it, averaged over the uncertain
        factors, which never falls; ``steps``; ``weight_spread``, the standard deviation of the cells'
        weights over their mean.
        """
        mean, size = observations.mean, observations.values.size
        residuals = observations.values - mean
        spread = max(float(residuals.var()) if size else 1.0, SMALLEST_VARIANCE)
        users, items = self._first_sides(observations.shape, spread, seed)
        mixture = GaussianMixture.around(spread, self.components)
        weight_spread = 0.0
        trace: list[float] = []
        squares = expected_squares(users, items, observations, residuals)
        responsibilities, _ = mixture.responsibilities(squares)
        for step in range(1, 1 + (self.iterations if size else 0)):
            with naming_iteration("MoG-MF", step):
                mixture = mixture.estimated(responsibilities, squares)
                weights = mixture.precisions(responsibilities)
                users, _ = users.solve(WeightedCells.of(observations.by_user, residuals, weights), items)
                items, _ = items.solve(WeightedCells.of(observations.by_item, residuals, weights), users)
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
            diagnostics=mixture.diagnostics(trace, weight_spread),
            notes=mixture.notes(weight_spread) if size else (),
        )

    def _first_sides(self, shape: tuple[int, int], spread: float, seed: int) -> tuple[Side, Side]:
        """Return the initial users and items; with a fixed ridge, under the prior that it implies."""
        users = Side.at_zero(shape[0], self.rank, spread, sharing=self.rank)
        items = Side.at_random(shape[1], self.rank, spread, sharing=self.rank, seed=seed)
        if self.ridge is None:
            return users, items
        prior = np.eye(1 + self.rank) / self.ridge
        return replace(users, prior=prior), replace(items, prior=prior)
