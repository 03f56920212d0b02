"""Non-monotone spectral projected gradients on the likelihood of signs.

The steps are those of Barzilai and Borwein [barzilai1988]; a step is shortened until the objective
falls below the largest of its last values by a share of the decrease that the slope predicts (Birgin,
Martínez and Raydan [birgin2000]). Davenport et al. [davenport2014] and Li et al. [li2021] use this method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.one_bit.links import Link
from dprec.completion.one_bit.projections import Domain, PointT
from dprec.errors import RunError
from dprec.progress import Progress, silent

SHORTEST_STEP, LONGEST_STEP = 1e-4, 1e9
_SUFFICIENT = 1e-4
_MEMORY = 3
_HALVINGS = 40
_LEAST_INFORMATION = 1e-6

StopReason = Literal["optimal", "iterations", "line search"]


@dataclass(frozen=True, eq=False)
class SignLikelihood:
    """Minus the log-likelihood of what was received, and a linear term."""

    link: Link
    given_plus: NDArray[np.float64]
    given_minus: NDArray[np.float64]
    """Probability of what was received in each cell if the true rating is +1, and if it is -1; 1 and 0 for a
    +1 that was received unperturbed; shape (cells,).
    """
    linear: NDArray[np.float64] | None = None
    """Added as the sum of linear x entry (the H of Li et al. [li2021], Eq. 5). Shape (cells,)."""
    offset: NDArray[np.float64] | None = None
    """A fixed part of the entries, to which the unknown part is added; shape (cells,)."""

    @classmethod
    def of_signs(
        cls, link: Link, signs: NDArray[np.float64], linear: NDArray[np.float64] | None = None
    ) -> SignLikelihood:
        """Return the likelihood of signs that were received unperturbed (Li et al. [li2021], Eq. 2)."""
        plus = (signs > 0).astype(np.float64)
        return cls(link, plus, 1 - plus, linear)

    def beyond(self, offset: NDArray[np.float64]) -> SignLikelihood:
        """Return the likelihood of what is added to a fixed part of the entries."""
        return replace(self, offset=offset)

    @property
    def information(self) -> float:
        """Mean squared slope of the log-likelihood in a cell at 0: its mean curvature there."""
        if not self.given_plus.size:
            return self.link.largest_curvature
        unperturbed = replace(self, linear=None, offset=None)
        slopes = unperturbed.value_and_slopes(np.zeros(self.given_plus.size))[1]
        return max(float((slopes**2).mean()), _LEAST_INFORMATION * self.link.largest_curvature)

    def value_and_slopes(self, entries: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the objective at the observed entries and its derivative in each of them.

        With a and b the two given probabilities, a cell adds -log(a h(x) + b h(-x)).
        """
        if self.offset is not None:
            entries = entries + self.offset
        with np.errstate(divide="ignore"):
            plus = np.log(self.given_plus) + self.link.log_probability(entries)
            minus = np.log(self.given_minus) + self.link.log_probability(-entries)
        likelihood = np.logaddexp(plus, minus)
        share = np.exp(plus - likelihood)
        slopes = (1 - share) * self.link.hazard(-entries) - share * self.link.hazard(entries)
        value = -likelihood.sum()
        if self.linear is not None:
            slopes += self.linear
            value += (self.linear * entries).sum()
        return float(value), slopes


@dataclass(frozen=True, eq=False)
class Solution(Generic[PointT]):
    """Where a minimisation ended."""

    point: PointT
    """The best iterate."""
    objectives: tuple[float, ...]
    """The objective at the start and after each iteration."""
    residual: float
    """Upper bound of the last projected gradient step of length 1, over the norm of the iterate."""
    reason: StopReason
    """Why it ended: "optimal", the residual met the tolerance; "iterations", the limit was reached; "line
    search", no step, however short, improved the objective beyond rounding.
    """

    @property
    def iterations(self) -> int:
        """Number of steps taken."""
        return len(self.objectives) - 1

    @property
    def objective(self) -> float:
        """The objective at the point."""
        return min(self.objectives)


def minimise(
    likelihood: SignLikelihood,
    domain: Domain[PointT],
    *,
    iterations: int,
    tolerance: float,
    progress: Progress = silent,
) -> Solution[PointT]:
    """Minimise the likelihood's objective over a convex set, from zero.

    Parameters
    ----------
    iterations : int
        Steps at most.
    tolerance : float
        Residual at which the iterate counts as optimal.

    Raises
    ------
    RunError
        When the objective is not finite.
    """
    iterate = best = _Iterate.at(domain.zero(), likelihood, domain)
    objectives = [iterate.value]
    length, residual = 1 / likelihood.link.largest_curvature, np.inf
    reason: StopReason = "iterations"
    while len(objectives) <= iterations:
        ceiling = max(objectives[-_MEMORY:])
        step = iterate.step(likelihood, domain, length, ceiling, len(objectives))
        if step is None:
            reason = "line search"
            break
        following, length = step
        moved = domain.distance(following.point, iterate.point)
        # Projected steps grow with their length, and their ratio to it falls.
        residual = moved / min(1.0, length) / max(1.0, domain.norm(iterate.point))
        curved = float(((following.entries - iterate.entries) * (following.slopes - iterate.slopes)).sum())
        if following.value < min(objectives):
            best = following
        objectives.append(following.value)
        iterate = following
        progress("completing", len(objectives) - 1, iterations)
        if residual <= tolerance:
            reason = "optimal"
            break
        length = np.clip(moved**2 / curved, SHORTEST_STEP, LONGEST_STEP) if curved > 0 else LONGEST_STEP
    return Solution(best.point, tuple(objectives), float(residual), reason)


@dataclass(frozen=True, eq=False)
class _Iterate(Generic[PointT]):
    """A point, its observed entries, and the objective and its slopes there."""

    point: PointT
    entries: NDArray[np.float64]
    value: float
    slopes: NDArray[np.float64]

    @classmethod
    def at(cls, point: PointT, likelihood: SignLikelihood, domain: Domain[PointT]) -> _Iterate[PointT]:
        entries = domain.cells(point)
        return cls(point, entries, *likelihood.value_and_slopes(entries))

    def step(
        self,
        likelihood: SignLikelihood,
        domain: Domain[PointT],
        length: float,
        ceiling: float,
        iteration: int,
    ) -> tuple[_Iterate[PointT], float] | None:
        """Return the next iterate and the length that led to it; None when no length is short enough."""
        for _ in range(_HALVINGS):
            candidate = self.at(domain.step(self.point, self.slopes, length), likelihood, domain)
            if not np.isfinite(candidate.value):
                raise RunError(f"one-bit completion diverged in iteration {iteration}: {candidate.value}")
            promised = float((self.slopes * (candidate.entries - self.entries)).sum())
            if candidate.value <= ceiling + _SUFFICIENT * promised:
                return candidate, length
            length /= 2
        return None
