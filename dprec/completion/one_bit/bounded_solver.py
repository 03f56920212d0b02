"""The likelihood of signs under both constraints of Li et al. [li2021], Eq. 2, by alternating directions.

Two copies of the matrix are kept: X within +-alpha, Z in the nuclear ball. Every iteration moves X by one
step on the likelihood, linearised with its largest curvature, projects Z, and adds what still separates them
to the dual (Boyd et al. [boyd2011], sections 3.1 to 3.4). That takes one decomposition per iteration, where
projected gradients need hundreds for every projection onto the intersection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.completion.one_bit.projections import BoundedNuclearBall, project_nuclear
from dprec.completion.one_bit.solver import SignLikelihood, Solution
from dprec.errors import RunError
from dprec.progress import Progress, silent

_PENALTY, _RELAXATION = 4.0, 1.7
"""Initial penalty on the difference of the copies, in units of the largest curvature, and over-relaxation."""

_BALANCE_EVERY, _UNBALANCED = 5, 5.0
"""Iterations between checks of the penalty, and the ratio of the two residuals at which it is changed."""

_EXCESS = 0.25
"""Largest relative excess of an entry over the bound at the end, in units of the tolerance."""


def minimise_bounded(
    likelihood: SignLikelihood,
    ball: BoundedNuclearBall,
    *,
    iterations: int,
    tolerance: float,
    progress: Progress = silent,
) -> Solution[NDArray[np.float64]]:
    """Minimise the objective from zero; return Z, scaled so that both constraints hold exactly.

    Parameters
    ----------
    iterations : int
        Alternations at most.
    tolerance : float
        The copies' distance, and the gradient that is left, over the matrix's norm, of an optimum.

    Raises
    ------
    RunError
        When the objective is not finite.
    """
    observed = (ball.rows, ball.columns)
    within, inside, dual = ball.zero(), ball.zero(), ball.zero()
    best, objectives = ball.zero(), [likelihood.value_and_slopes(np.zeros(ball.rows.size))[0]]
    penalty, residual = _PENALTY * likelihood.link.largest_curvature, np.inf
    while len(objectives) <= iterations:
        within = _likelier(likelihood, ball, within, inside - dual, penalty)
        relaxed = _RELAXATION * within + (1 - _RELAXATION) * inside
        before, inside = inside, project_nuclear(relaxed + dual, ball.radius)
        dual += relaxed - inside
        largest = float(np.abs(inside).max(initial=0.0))
        feasible = inside * (ball.bound / max(largest, ball.bound))
        value, _ = likelihood.value_and_slopes(feasible[observed])
        if not np.isfinite(value):
            raise RunError(f"one-bit completion diverged in iteration {len(objectives)}: {value}")
        best = feasible if value < min(objectives) else best
        objectives.append(value)
        progress("completing", len(objectives) - 1, iterations)
        apart, moved = ball.distance(within, inside), penalty * ball.distance(inside, before)
        residual = max(apart, moved) / max(1.0, ball.norm(inside))
        if residual <= tolerance and largest <= ball.bound * (1 + _EXCESS * tolerance):
            return Solution(best, tuple(objectives), float(residual), "optimal")
        if len(objectives) % _BALANCE_EVERY == 0:
            factor = _balance(apart, moved)
            penalty, dual = penalty * factor, dual / factor
    return Solution(best, tuple(objectives), float(residual), "iterations")


def _likelier(
    likelihood: SignLikelihood,
    ball: BoundedNuclearBall,
    within: NDArray[np.float64],
    target: NDArray[np.float64],
    penalty: float,
) -> NDArray[np.float64]:
    """Return the next X: near the target, likelier at the observed entries, and within +-alpha."""
    observed, curvature = (ball.rows, ball.columns), likelihood.link.largest_curvature
    entries = within[observed]
    slopes = likelihood.value_and_slopes(entries)[1]
    moved = target.copy()
    moved[observed] = (penalty * target[observed] + curvature * entries - slopes) / (penalty + curvature)
    return np.clip(moved, -ball.bound, ball.bound, out=moved)


def _balance(apart: float, moved: float) -> float:
    """Return the factor that brings the distance of the copies and the movement of Z nearer to each other."""
    if max(apart, moved) <= _UNBALANCED * min(apart, moved):
        return 1.0
    return 2.0 if apart > moved else 0.5
