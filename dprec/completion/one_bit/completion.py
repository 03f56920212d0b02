"""Completion of a matrix of signs: the hidden low-rank matrix that makes them most likely.

A nuclear ball shrinks what all ratings share as much as what is peculiar to a few, which costs most
when privacy noise leaves room for little else. Biases with a ridge of their own do not compete
with the rest; they are an addition to Li et al. [li2021].

Where devices send true signs, the fit depends on no draw: runs that differ in their seed, or in the noise
that a server adds to the estimate afterwards, have one fit in common.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Floats, Int32s
from dprec.binarization import check_binary
from dprec.completion.base import Completed, Completion
from dprec.completion.factors import inner_products
from dprec.completion.one_bit.projections import Domain
from dprec.completion.one_bit.solver import (
    Link,
    LinkKind,
    SignLikelihood,
    Solution,
    link_of,
    minimise,
    minimise_bounded,
)
from dprec.completion.spectral import LowRank
from dprec.components import option
from dprec.errors import RunError, SettingError
from dprec.observations import Observations
from dprec.predictions import Predict
from dprec.progress import Progress, silent
from dprec.ratings import RatingScale

_SWEEPS = 3
_SETTLED = 1e-6
"""Relative decrease of the objective at which the fit of the biases ends."""


@dataclass(frozen=True, eq=False)
class Biases:
    """The matrix mean + user bias + item bias."""

    mean: float
    users: Floats
    items: Floats
    """Shapes (users,) and (items,)."""

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Self:
        """Return biases of 0."""
        return cls(0.0, np.zeros(shape[0]), np.zeros(shape[1]))

    def at(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the entries of the given cells, shape (cells,)."""
        return self.mean + self.users[users] + self.items[items]

    def penalty(self, ridge: float) -> float:
        """Return what the ridge adds to an objective."""
        return float(ridge * ((self.users**2).sum() + (self.items**2).sum())) / 2

    def stepped(
        self, users: AnyInts, items: AnyInts, slopes: Floats, curvature: float, ridge: float
    ) -> tuple[Self, Floats]:
        """Minimise a quadratic model in the biases; return the slopes that it predicts then."""
        biases, residual_slopes = self, slopes.copy()
        if not slopes.size:
            return biases, residual_slopes
        rated = np.bincount(users, minlength=self.users.size) * curvature + ridge
        raters = np.bincount(items, minlength=self.items.size) * curvature + ridge
        for _ in range(_SWEEPS):
            move = -float(residual_slopes.mean()) / curvature
            biases = replace(biases, mean=biases.mean + move)
            residual_slopes += curvature * move
            sums = np.bincount(users, weights=residual_slopes, minlength=rated.size) + ridge * biases.users
            biases = replace(biases, users=biases.users - sums / rated)
            residual_slopes -= curvature * (sums / rated)[users]
            sums = np.bincount(items, weights=residual_slopes, minlength=raters.size) + ridge * biases.items
            biases = replace(biases, items=biases.items - sums / raters)
            residual_slopes -= curvature * (sums / raters)[items]
        return biases, residual_slopes


def fit_biases(
    likelihood: SignLikelihood, users: AnyInts, items: AnyInts, shape: tuple[int, int], ridge: float
) -> Biases:
    """Return the biases that minimise an objective plus ridge / 2 x their squares but the mean's."""
    biases = Biases.zero(shape)
    value, slopes = likelihood.value_and_slopes(biases.at(users, items))
    if not slopes.size:
        return biases
    curvature = likelihood.information
    for _ in range(300):
        candidate, _ = biases.stepped(users, items, slopes, curvature, ridge)
        candidate_value, candidate_slopes = likelihood.value_and_slopes(candidate.at(users, items))
        candidate_value += candidate.penalty(ridge)
        if not candidate_value <= value:
            curvature *= 2  # With enough curvature, the model bounds the objective from above.
            if curvature > 1e6 * likelihood.link.largest_curvature:
                break
            continue
        settled = value - candidate_value <= _SETTLED * max(abs(value), 1.0)
        biases, value, slopes = candidate, candidate_value, candidate_slopes
        if settled:
            break
    return biases


Fit = tuple[Biases, Solution]

_LAST: dict[bytes, Fit] = {}


def _last_or_new(
    settings: str,
    data: tuple[NDArray[np.generic] | None, ...],
    fit: Callable[[], Fit],
    progress: Progress = silent,
) -> Fit:
    """Return the last fit if it was of the same settings and data, or a new one."""
    digest = hashlib.blake2b(settings.encode())
    for array in data:
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    key = digest.digest()
    fitted = _LAST.get(key)
    if fitted is None:
        _LAST.clear()  # before a new one takes memory
        fitted = _LAST[key] = fit()
    else:
        progress("completing", 1, 1)
    return fitted


_LARGEST = 1e9
"""Largest entry, and largest noise of the link: keeps the solver from overflowing."""

_DENSE_CELLS, _BYTES_OF_A_CELL = 20_000_000, 56.0
"""Most cells of a matrix whose entries are bounded, and bytes of each, in several dense copies."""


@dataclass(frozen=True, eq=False)
class HiddenMatrix(Completed):
    """A hidden matrix: biases plus a matrix of low nuclear norm."""

    link: Link
    biases: Biases
    point: LowRank | Floats
    """Shape (users, items)."""

    @property
    def hidden_entries(self) -> Predict:
        """See `hidden`."""
        return self.hidden

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the mean rating 2 Pr(+1) - 1 of the given cells, from -1 to 1, shape (cells,).

        Its sign is the predicted sign; 0 counts as +1.
        """
        return self.link.expected_sign(self.hidden(users, items))

    def hidden(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the entries of the hidden matrix at the given cells, shape (cells,)."""
        entries = self.biases.at(users, items)
        if isinstance(self.point, LowRank):
            scaled = self.point.left * self.point.values
            return entries + inner_products(scaled, self.point.right, users, items)
        entries += self.point[users, items]
        return entries


@dataclass(frozen=True, kw_only=True)
class OneBit(Completion):
    """Nuclear-norm constrained maximum likelihood of signs (Davenport et al. [davenport2014]).

    Flips of the signs and a linear term are taken into account as in Li et al. [li2021].
    """

    kind: Literal["one-bit"] = "one-bit"
    papers: ClassVar[tuple[str, ...]] = ("davenport2014", "li2021")
    needs_likelihood: ClassVar[bool] = True
    link: LinkKind = option("How an entry makes a +1 likely: logistic, or gaussian (probit).", "logistic")
    sigma: float = option("Standard deviation of the Gaussian link's noise.", 1.0, gt=0, le=_LARGEST)
    alpha: float = option("Largest entry of the hidden matrix, in absolute value.", 1.0, gt=0, le=_LARGEST)
    rank: float = option("Rank r in the nuclear norm's bound tau = alpha sqrt(users items r).", 1.0, gt=0)
    tau: float | None = option(
        "The bound itself, instead of the one that follows from alpha and rank.", None, gt=0
    )
    bounded: bool = option(
        "Hold every entry within alpha while solving; needs the dense matrix in memory.",
        False,
        published=True,
        source="li2021, Eq. 2",
    )
    biases: bool = option(
        "Fit user and item biases first, then the low-rank part to the rest.",
        False,
        published=False,
        source="li2021, Eq. 2",
    )
    ridge: float = option(
        "Ridge of the biases, in observations of the largest curvature x 4; chosen by "
        "benchmarks/choosing/settings.py.",
        2.0,
        gt=0,
    )
    iterations: int = option("Steps of the solver, at most.", 500, ge=1)
    tolerance: float = option("Norm of the projected gradient, over the matrix's, to stop at.", 1e-3, gt=0)
    max_rank: int = option("Largest rank of an iterate, if entries are not bounded.", 1000, ge=1)

    @property
    def shared_fit(self) -> Self:
        """The completion itself, which draws nothing."""
        return self

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounded and self.biases:
            raise SettingError("bounded", "True, with biases", "one of the two: biases are not bounded")

    @property
    def link_function(self) -> Link:
        """The link, as a function."""
        return link_of(self.link, self.sigma)

    @property
    def absolute_ridge(self) -> float:
        """The ridge of the biases, in units of the objective's second derivative."""
        return self.ridge * 4 * self.link_function.largest_curvature

    def radius(self, shape: tuple[int, int]) -> float:
        """Return tau, the bound of the nuclear norm."""
        if self.tau is not None:
            return self.tau
        return self.alpha * math.sqrt(shape[0] * shape[1] * self.rank)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse to hold a large matrix densely."""
        if self.bounded and shape[0] * shape[1] > _DENSE_CELLS:
            raise SettingError(
                "bounded",
                f"True, with {shape[0]} users x {shape[1]} items",
                f"false, or at most {_DENSE_CELLS} cells",
            )

    def model_bytes(self, users: int, items: int) -> float:
        """Return what the dense matrix takes, where there is one."""
        return _BYTES_OF_A_CELL * users * items if self.bounded else 0.0

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse ratings that are not +1 and -1."""
        check_binary(scale)

    def domain(self, users: Int32s, items: Int32s, shape: tuple[int, int], seed: int) -> Domain:
        """Return the set to which the low-rank part is constrained."""
        bound = self.alpha if self.bounded else None
        return Domain(users, items, shape, self.radius(shape), bound, self.max_rank, seed)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> HiddenMatrix:
        """Complete the matrix; see `Completion.fit`.

        If the observations include the likelihood of what was received, as they do for ratings sent
        through a channel, the flips are part of what is maximised (Li et al. [li2021], Eq. 4). A user or
        item without ratings keeps a bias of 0 and a low-rank part of 0: without biases, its entries
        are 0, its predictions undecided, and their sign counts as +1.
        """
        return self.fit_perturbed(observations, None, seed, progress)

    def fit_perturbed(
        self, observations: Observations, linear: Floats | None, seed: int, progress: Progress = silent
    ) -> HiddenMatrix:
        """Complete the matrix with noise per cell added to the objective (Li et al. [li2021], Eq. 5)."""
        check_binary(observations.scale)
        if not np.all(np.isfinite(observations.values)):
            raise RunError("one-bit completion cannot start: values that are not finite")
        link, shape = self.link_function, observations.shape
        users, items = observations.users, observations.items
        likelihood = SignLikelihood.of_signs(link, observations.values, linear)
        if (received := observations.likelihood) is not None:
            likelihood = SignLikelihood(link, received[:, 1], received[:, 0], linear)
        domain = self.domain(users, items, shape, seed)
        limits: Any = {"iterations": self.iterations, "tolerance": self.tolerance, "progress": progress}

        def fit() -> Fit:
            biases = Biases.zero(shape)
            if self.biases:
                biases = fit_biases(likelihood, users, items, shape, self.absolute_ridge)
            beyond = likelihood.beyond(biases.at(users, items))
            return biases, (minimise_bounded if self.bounded else minimise)(beyond, domain, **limits)

        seed_of_draws = seed if domain.draws else None
        data = users, items, likelihood.given_plus, likelihood.given_minus, linear
        biases, solution = _last_or_new(f"{self} {shape} {seed_of_draws}", data, fit, progress)
        point: LowRank | Floats = solution.point
        notes = cold_notes(users, items, shape)
        if solution.reason == "iterations":
            notes += (
                f"one-bit completion stopped after {solution.iterations} iterations at a residual of "
                f"{solution.residual:.3g}; the tolerance is {self.tolerance:g}.",
            )
        diagnostics = {
            "link": self.link,
            "radius": self.radius(shape),
            "iterations": solution.iterations,
            "stopped": solution.reason,
            "residual": solution.residual if math.isfinite(solution.residual) else None,
            "objective": list(solution.objectives),
            "rank": point.rank if isinstance(point, LowRank) else None,
            "mean_effect": biases.mean,
        }
        return HiddenMatrix(link, biases, point, diagnostics=diagnostics, notes=notes)


def cold_notes(users: AnyInts, items: AnyInts, shape: tuple[int, int]) -> tuple[str, ...]:
    """Note how many users and items have no observed rating, if any."""
    cold_users = shape[0] - np.unique(users).size
    cold_items = shape[1] - np.unique(items).size
    if not (cold_users or cold_items):
        return ()
    return (f"{cold_users} users and {cold_items} items without an observed rating keep the prior.",)
