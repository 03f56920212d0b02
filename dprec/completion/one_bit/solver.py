"""The likelihood of signs, minimised under one constraint or both.

The steps are those of Barzilai and Borwein [barzilai1988]; a step is shortened until the objective
falls below the largest of its last values by a share of the decrease that the slope predicts (Birgin,
Martínez and Raydan [birgin2000]). Davenport et al. [davenport2014] and Li et al. [li2021] use this method.

Two copies of the matrix are kept: X within +-alpha, Z in the nuclear ball. Every iteration moves X by one
step on the likelihood, linearised with its largest curvature, projects Z, and adds what still separates them
to the dual (Boyd et al. [boyd2011], sections 3.1 to 3.4). That takes part of a decomposition per iteration,
where projected gradients need hundreds for every projection onto the intersection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dprec.arrays import Floats, Uint8s
from dprec.channel import Channel
from dprec.completion.one_bit.projections import Domain, NuclearProjection, norm_of
from dprec.completion.spectral import gram
from dprec.errors import RunError
from dprec.mechanisms.laplace import cell_probabilities, wide_grid
from dprec.progress import Progress, silent

LinkKind = Literal["logistic", "gaussian"]

_GRID = 4001
"""Points at which suprema over an interval are evaluated; its ends and its middle are among them."""

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Link:
    """The probability h(x) of a +1 if the hidden matrix has the entry x (Li et al. [li2021], Eq. 1).

    It is logistic, h(x) = 1 / (1 + e^-x), or probit, h(x) = Phi(x / sigma): a distribution function of
    symmetric noise, so Pr(-1 | x) = h(-x). Everything is computed from log h and from the ratio h'/h, neither
    of which loses precision in the tails.
    """

    sigma: float | None = None
    """Standard deviation of the Gaussian noise from which the signs arise; None for logistic noise."""

    def probability(self, x: Floats) -> Floats:
        """Return h(x)."""
        from scipy.special import expit, ndtr

        chances = expit(x) if self.sigma is None else ndtr(np.asarray(x) / self.sigma)
        return np.asarray(chances, dtype=np.float64)

    def log_probabilities(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log h(x), and log(1 - h(x)), which is the same at -x."""
        from scipy.special import log_ndtr

        if self.sigma is None:
            # What both add to their larger part is the same, and takes long.
            added = np.logaddexp(0.0, -np.abs(x))
            return -(np.maximum(-x, 0.0) + added), -(np.maximum(x, 0.0) + added)
        return log_ndtr(x / self.sigma), log_ndtr(-x / self.sigma)

    def hazard(self, x: Floats) -> Floats:
        """Return h'(x) / h(x), the derivative of log h(x)."""
        from scipy.special import erfcx

        if self.sigma is None:
            return self.probability(-np.asarray(x, dtype=np.float64))
        # exp(-t^2/2) cancels against the scaled complementary error function, which never underflows.
        scaled = erfcx(-np.asarray(x) / (self.sigma * np.sqrt(2)))
        return np.asarray(np.sqrt(2 / np.pi) / (self.sigma * scaled), dtype=np.float64)

    def curvature(self, x: Floats) -> Floats:
        """Return the second derivative of -log h(x); never negative."""
        hazard = self.hazard(x)
        if self.sigma is None:
            return self.probability(x) * hazard
        return np.maximum(hazard * (hazard + np.asarray(x) / self.sigma**2), 0.0)

    @property
    def largest_curvature(self) -> float:
        """Least upper bound of `curvature`: at 0, or where -log h becomes a parabola, at minus infinity."""
        return 0.25 if self.sigma is None else 1 / self.sigma**2

    def expected_sign(self, x: Floats) -> Floats:
        """Return 2 h(x) - 1, the mean rating; its sign is that of x, however small x is."""
        from scipy.special import erf

        if self.sigma is None:
            return np.tanh(np.asarray(x, dtype=np.float64) / 2)
        return np.asarray(erf(np.asarray(x) / (self.sigma * np.sqrt(2))), dtype=np.float64)

    def density(self, x: Floats) -> Floats:
        """Return h'(x)."""
        return self.hazard(x) * self.probability(x)


def link_of(kind: LinkKind, sigma: float) -> Link:
    """Return a link by its name, with sigma as the deviation of a Gaussian one's noise, above 0."""
    return Link(None if kind == "logistic" else sigma)


def steepness(link: Link, alpha: float) -> float:
    """Return L = sup over |x| <= alpha of |h'(x)| / (h(x) (1 - h(x))) (Li et al. [li2021], section 3.1).

    The supremum is attained at alpha; it is 1 for the logistic link.
    """
    x = np.linspace(-alpha, alpha, _GRID)
    chances = link.probability(x) * link.probability(-x)
    return float(np.max(np.abs(link.density(x)) / np.maximum(chances, _TINY)))


_LEVELS = 129
"""Levels C / 64 apart: far below the noise of any budget that protects anything."""


def slope_channel(clamp: float, symbols: int, epsilon: float) -> Channel:
    """Return the channel of one gradient entry at the budget of one round.

    Laplace noise of scale 2 C / epsilon, where epsilon is a K-th of the whole budget: the 2 C K / epsilon of
    Li et al. [li2021], section 4.3, in terms of the whole. Cut into cells, its loss is exactly epsilon.
    """
    levels = np.linspace(-clamp, clamp, _LEVELS)
    b = 2 * clamp / epsilon
    edges, values = wide_grid(-clamp, clamp, b, symbols)
    return Channel.from_probabilities(cell_probabilities(edges, levels, b), levels, values, epsilon)


def levels_of(slopes: Floats, clamp: float) -> Uint8s:
    """Return the input level, from 1, that stands for each entry."""
    inside = np.clip(slopes, -clamp, clamp)
    return (np.rint((inside / clamp + 1) * ((_LEVELS - 1) / 2)) + 1).astype(np.uint8)


SHORTEST_STEP, LONGEST_STEP = 1e-4, 1e9
_HALVINGS = 40
_LEAST_INFORMATION = 1e-6

StopReason = Literal["optimal", "iterations", "line search"]


@dataclass(frozen=True, eq=False)
class SignLikelihood:
    """Minus the log-likelihood of what was received, and a linear term."""

    link: Link
    given_plus: Floats
    given_minus: Floats
    """Probability of what was received in each cell if the true rating is +1, and if it is -1; 1 and 0 for a
    +1 that was received unperturbed; shape (cells,).
    """
    linear: Floats | None = None
    """Added as the sum of linear x entry (the H of Li et al. [li2021], Eq. 5). Shape (cells,)."""
    offset: Floats | None = None
    """A fixed part of the entries, to which the unknown part is added; shape (cells,)."""

    @classmethod
    def of_signs(cls, link: Link, signs: Floats, linear: Floats | None = None) -> SignLikelihood:
        """Return the likelihood of signs that were received unperturbed (Li et al. [li2021], Eq. 2)."""
        plus = (signs > 0).astype(np.float64)
        return cls(link, plus, 1 - plus, linear)

    def beyond(self, offset: Floats) -> SignLikelihood:
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

    def value_and_slopes(self, entries: Floats) -> tuple[float, Floats]:
        """Return the objective at the observed entries and its derivative in each of them.

        With a and b the two given probabilities, a cell adds -log(a h(x) + b h(-x)).
        """
        if self.offset is not None:
            entries = entries + self.offset
        with np.errstate(divide="ignore"):
            plus, minus = self.link.log_probabilities(entries)
            plus += np.log(self.given_plus)
            minus += np.log(self.given_minus)
        likelihood = np.logaddexp(plus, minus)
        share = np.exp(plus - likelihood)
        slopes = (1 - share) * self.link.hazard(-entries) - share * self.link.hazard(entries)
        value = -likelihood.sum()
        if self.linear is not None:
            slopes += self.linear
            value += (self.linear * entries).sum()
        return float(value), slopes


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a minimisation ended."""

    point: Any
    """The best iterate; with both constraints the last, scaled so that both hold exactly."""
    objectives: tuple[float, ...]
    """The objective at the start and after each iteration."""
    residual: float
    """Upper bound of the last projected gradient step of length 1, over the norm of the iterate."""
    reason: StopReason
    """Why it ended: "optimal", the residual met the tolerance; "iterations", the limit was reached; "line
    search", no step, however short, improved the objective beyond rounding.
    """

    objective: float
    """The objective at the point."""

    @property
    def iterations(self) -> int:
        """Number of steps taken."""
        return len(self.objectives) - 1


def minimise(
    likelihood: SignLikelihood,
    domain: Domain,
    *,
    iterations: int,
    tolerance: float,
    progress: Progress = silent,
) -> Solution:
    """Minimise the likelihood's objective over a convex set, from zero, to within ``tolerance``."""
    point = best = domain.zero()
    entries = domain.cells(point)
    value, slopes = likelihood.value_and_slopes(entries)
    objectives, lowest = [value], value
    length, residual = 1 / likelihood.link.largest_curvature, np.inf
    reason: StopReason = "iterations"
    while len(objectives) <= iterations:
        ceiling = max(objectives[-3:])
        for _ in range(_HALVINGS):
            candidate = domain.step(point, slopes, length)
            candidate_entries = domain.cells(candidate)
            value, candidate_slopes = likelihood.value_and_slopes(candidate_entries)
            if not np.isfinite(value):
                raise RunError(f"one-bit completion diverged in iteration {len(objectives)}: {value}")
            if value <= ceiling + 1e-4 * float((slopes * (candidate_entries - entries)).sum()):
                break
            length /= 2
        else:
            reason = "line search"
            break
        movement = norm_of(candidate, point)
        # Projected steps grow with their length, and their ratio to it falls.
        residual = movement / min(1.0, length) / max(1.0, norm_of(point))
        curved = float(((candidate_entries - entries) * (candidate_slopes - slopes)).sum())
        if value < lowest:
            best, lowest = candidate, value
        objectives.append(value)
        point, entries, slopes = candidate, candidate_entries, candidate_slopes
        progress("completing", len(objectives) - 1, iterations)
        if residual <= tolerance:
            reason = "optimal"
            break
        length = np.clip(movement**2 / curved, SHORTEST_STEP, LONGEST_STEP) if curved > 0 else LONGEST_STEP
    return Solution(best, tuple(objectives), float(residual), reason, lowest)


_PENALTY, _RELAXATION = 4.0, 1.7
"""Initial penalty on the difference of the copies, in units of the largest curvature, and over-relaxation."""

_CHECK_EVERY, _UNBALANCED = 5, 2.0
"""Iterations between checks of penalty and end, and the ratio of the two residuals that changes the first."""

_EXCESS = 0.05
"""Largest relative excess of the nuclear norm over its bound at the end, in units of the tolerance."""


def minimise_bounded(
    likelihood: SignLikelihood,
    ball: Domain,
    *,
    iterations: int,
    tolerance: float,
    progress: Progress = silent,
) -> Solution:
    """Minimise the objective from zero; return X, scaled so that both constraints hold exactly.

    ``tolerance``: the copies' distance, and the gradient left, over the matrix's norm, of an optimum.
    Projections start from the last one's singular vectors; an optimum is one by a whole decomposition too.
    """
    from dprec.kernels.directions import relax

    observed, project, bound = (ball.rows, ball.columns), NuclearProjection(ball.radius), ball.bound
    assert bound is not None, "entries without a bound"
    within, inside, previous, dual, target = (ball.zero() for _ in range(5))
    value, slopes = likelihood.value_and_slopes(entries := within[observed])
    objectives, curvature = [value], likelihood.link.largest_curvature
    penalty, residual = _PENALTY * curvature, np.inf
    reason: StopReason = "iterations"
    while reason != "optimal" and len(objectives) <= iterations:
        # The next X: near the other copy, likelier at the observed entries, and within +-alpha.
        np.subtract(inside, dual, out=within)
        pull = penalty * within[observed] + curvature * entries - slopes
        within[observed] = pull / (penalty + curvature)
        relax(target.ravel(), within.ravel(), inside.ravel(), dual.ravel(), _RELAXATION, bound)
        value, slopes = likelihood.value_and_slopes(entries := within[observed])
        if not np.isfinite(value):
            raise RunError(f"one-bit completion diverged in iteration {len(objectives)}: {value}")
        previous, inside = inside, project(target, previous)
        factor = 1.0
        if len(objectives) % _CHECK_EVERY == 0 or len(objectives) == iterations:
            gap, movement, residual = _residuals(within, inside, previous, penalty)
            if residual <= tolerance and _nuclear(within) <= ball.radius * (1 + _EXCESS * tolerance):
                inside = project.whole(target, inside)
                gap, movement, residual = _residuals(within, inside, previous, penalty)
                reason = "optimal" if residual <= tolerance else reason
            # Brings the distance of the copies and the movement of Z nearer to each other.
            if max(gap, movement) > _UNBALANCED * min(gap, movement):
                factor = 2.0 if gap > movement else 0.5
        penalty, dual = penalty * factor, np.divide(np.subtract(target, inside, dual), factor, dual)
        objectives.append(value)
        progress("completing", len(objectives) - 1, iterations)
    norm = float(np.linalg.norm(within, "nuc"))
    point = within * (ball.radius / max(norm, ball.radius))
    objectives[-1] = likelihood.value_and_slopes(point[observed])[0]
    return Solution(point, tuple(objectives), float(residual), reason, objectives[-1])


def _nuclear(matrix: Floats) -> float:
    """Return the nuclear norm, to about 1e-6, quickly."""
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(gram(matrix)), 0.0)).sum())


def _residuals(
    within: Floats, inside: Floats, previous: Floats, penalty: float
) -> tuple[float, float, float]:
    """Return how far the copies are apart, how far Z has moved, and the larger over the norm of Z."""
    gap, movement = norm_of(within, inside), penalty * norm_of(inside, previous)
    return gap, movement, max(gap, movement) / max(1.0, norm_of(inside))
