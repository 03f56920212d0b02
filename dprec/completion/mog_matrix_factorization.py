"""Matrix factorisation under a mixture of Gaussians (MoG-MF; Neera et al. [neera2023], Sections 4.2 and 4.3).

The noise of every cell is drawn from one of a few Gaussians around 0. Expectation maximisation
divides each cell among them, and the factors are then solved with the cell weights that follow from
these shares. The steps are the published ones, except that Eq. (6) is read with the sum over components
that a mixture has, and Eq. (10) with the weight, not its root, on the squared residual. The factors are
solved as in `dprec.completion.variational`, so that residuals include the uncertainty of the factors;
otherwise the smallest component would shrink onto cells that the factors have overfitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Completion, Observations
from dprec.completion.factors import BLOCK, BiasedFactors, map_blocks
from dprec.completion.variational import (
    SMALLEST_VARIANCE,
    Side,
    WeightedCells,
    check_rank,
    expected_squares,
    factors_of,
    naming_iteration,
)
from dprec.errors import RunError
from dprec.options import option
from dprec.progress import Progress, silent

_FIRST_RATIO = 4.0
"""Initial ratio of the variances of successive components."""

_COLLAPSED = 0.01
"""Relative spread of the weights below which they might as well be equal."""


@dataclass(frozen=True, kw_only=True)
class MogMatrixFactorization(Completion):
    """Matrix factorisation whose noise is a mixture of Gaussians (Neera et al. [neera2023], Section 4.3)."""

    kind: Literal["mog-mf"] = "mog-mf"
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
        mixture = _Mixture.around(spread, self.components)
        weight_spread = 0.0
        trace: list[float] = []
        squares = expected_squares(users, items, observations, residuals)
        responsibilities, _ = mixture.responsibilities(squares)
        for step in range(1, 1 + (self.iterations if size else 0)):
            with naming_iteration("MoG-MF", step):
                mixture = mixture.estimated(responsibilities, squares)
                weights = mixture.weights(responsibilities)
                users, _ = users.solve(WeightedCells.of(observations.by_user, residuals, weights), items)
                items, _ = items.solve(WeightedCells.of(observations.by_item, residuals, weights), users)
            if self.ridge is None:
                users, items = users.with_learned_prior(), items.with_learned_prior()
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
        order = np.argsort(mixture.variances)
        return factors_of(
            mean,
            users,
            items,
            diagnostics={
                "steps": len(trace),
                "pi": mixture.shares[order].tolist(),
                "sigma": np.sqrt(mixture.variances[order]).tolist(),
                "log_likelihood": trace,
                "weight_spread": weight_spread,
            },
            notes=self._notes(mixture, weight_spread) if size else (),
        )

    def _first_sides(self, shape: tuple[int, int], spread: float, seed: int) -> tuple[Side, Side]:
        """Return the initial users and items; with a fixed ridge, under the prior that it implies."""
        users = Side.at_zero(shape[0], self.rank, spread)
        items = Side.at_random(shape[1], self.rank, spread, seed)
        if self.ridge is None:
            return users, items
        prior = np.full(1 + self.rank, 1 / self.ridge)
        return replace(users, prior=prior), replace(items, prior=prior)

    def _notes(self, mixture: _Mixture, weight_spread: float) -> tuple[str, ...]:
        """Note if the mixture does no more than a single Gaussian."""
        if self.components == 1 or weight_spread >= _COLLAPSED:
            return ()
        deviation = float(np.sqrt(mixture.shares @ mixture.variances))
        return (
            f"MoG-MF: the mixture of {self.components} collapsed to one Gaussian of standard "
            f"deviation {deviation:.3f}; every rating has the same weight, as in matrix factorisation "
            "with a ridge.",
        )


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Gaussians around 0: their shares (pi) and variances (sigma^2), shapes (components,)."""

    shares: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def around(cls, variance: float, components: int) -> _Mixture:
        """Spread the components evenly, in logarithms, around a variance."""
        steps = np.arange(components) - (components - 1) / 2
        return cls(np.full(components, 1 / components), variance * np.power(_FIRST_RATIO, steps))

    def responsibilities(self, squares: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Divide every cell among the components (Neera et al. [neera2023], Eq. 8).

        Parameters
        ----------
        squares : ndarray, shape (cells,)
            Expected squared residuals.

        Returns
        -------
        ndarray, shape (components, cells)
        float
            The log-likelihood of the cells.
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

    def estimated(self, gamma: NDArray[np.float64], squares: NDArray[np.float64]) -> _Mixture:
        """Return the mixture that the responsibilities imply (Neera et al. [neera2023], Eq. 9)."""
        cells = gamma.sum(axis=1)
        with np.errstate(invalid="ignore"):
            estimates = np.where(cells > 0, np.einsum("kc,c->k", gamma, squares) / cells, self.variances)
        return _Mixture(cells / squares.size, np.maximum(estimates, SMALLEST_VARIANCE))

    def weights(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_k gamma_k / sigma_k^2 per cell, shape (cells,).

        Twice the weight of Neera et al. [neera2023], Eq. (10), so that the ridge counts once.
        """
        precisions: NDArray[np.float64] = np.einsum("k,kc->c", 1 / self.variances, gamma)
        return precisions
