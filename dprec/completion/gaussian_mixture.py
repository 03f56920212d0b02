"""The noise of every cell as a mixture of Gaussians around 0 (Neera et al. [neera2023], Section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.completion.factors import BLOCK, map_blocks
from dprec.randomness import generator

SMALLEST_VARIANCE = 1e-9
"""Least variance of a component, in squared rating units: keeps exact fits finite."""

_FIRST_RATIO = 4.0
"""Initial ratio of the variances of successive components."""

_COLLAPSED = 0.01
"""Relative spread of the weights below which they might as well be equal."""


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Gaussians around 0: their shares (pi) and variances (sigma^2), shapes (components,)."""

    shares: NDArray[np.float64]
    variances: NDArray[np.float64]

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

    def responsibilities(self, squares: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Divide every cell among the components (Neera et al. [neera2023], Eq. 8).

        Parameters
        ----------
        squares : ndarray, shape (cells,)
            Squared residuals, or their expectations.

        Returns
        -------
        ndarray, shape (components, cells)
        float
            The log-likelihood of the cells (Eq. 6, with the sum over components that a mixture has).
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

    def estimated(self, gamma: NDArray[np.float64], squares: NDArray[np.float64]) -> GaussianMixture:
        """Return the mixture that the responsibilities imply (Neera et al. [neera2023], Eq. 9)."""
        cells = gamma.sum(axis=1)
        with np.errstate(invalid="ignore"):
            estimates = np.where(cells > 0, np.einsum("kc,c->k", gamma, squares) / cells, self.variances)
        return GaussianMixture(cells / squares.size, np.maximum(estimates, SMALLEST_VARIANCE))

    def precisions(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_k gamma_k / sigma_k^2 per cell, shape (cells,); half of it weighs Eq. (10)'s squares."""
        precisions: NDArray[np.float64] = np.einsum("k,kc->c", 1 / self.variances, gamma)
        return precisions

    def diagnostics(self, log_likelihood: list[float], weight_spread: float) -> dict[str, Any]:
        """Return what the expectation maximisation learned, components by ascending sigma."""
        order = np.argsort(self.variances)
        return {
            "steps": len(log_likelihood),
            "pi": self.shares[order].tolist(),
            "sigma": np.sqrt(self.variances[order]).tolist(),
            "log_likelihood": log_likelihood,
            "weight_spread": weight_spread,
        }

    def notes(self, weight_spread: float) -> tuple[str, ...]:
        """Note if the mixture does no more than a single Gaussian.

        Parameters
        ----------
        weight_spread : float
            Standard deviation of the cells' weights over their mean.
        """
        components = len(self.shares)
        if components == 1 or weight_spread >= _COLLAPSED:
            return ()
        deviation = float(np.sqrt(self.shares @ self.variances))
        return (
            f"MoG-MF: the mixture of {components} collapsed to one Gaussian of standard "
            f"deviation {deviation:.3f}; every rating has the same weight, as without a mixture.",
        )
