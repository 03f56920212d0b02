"""Noise that the server adds in the central model, to the objective that it minimises or to its estimate.

``published`` follows Li et al. [li2021] to the letter. ``sound`` adds what a proof needs:

*Output.* Theorem 4 takes 2 alpha as the L1 sensitivity of the whole estimate. That is the most by which
one entry can move, but one changed rating may move all entries. The estimates lie in a set of L1
diameter at most 2 alpha m n, and at most 2 tau sqrt(m n) because the Frobenius norm never exceeds the
nuclear one. Noise for the smaller of the two protects against any change of the ratings, even of whole
profiles.

*Objective.* The proof of Theorem 2 sets the gradient to zero, which need not hold for an optimum on the
boundary of the constraints, and it omits the Jacobian of the map between the noise matrices.

- With the logistic link the ratings enter the objective only through the sum of (H - Y) X, with Y being 1
  or 0. The solution is therefore a function of Y - H, the Laplace mechanism on the bits, and the
  published scale 1 / epsilon suffices, with or without constraints, however the problem is solved.
- With the Gaussian link, the H' that gives the same minimiser for a neighbouring Y' differs from H
  only in the changed cell, by at most Delta if entries stay within +-alpha. The determinant of
  H -> H' lies between 1 and l''(x) / l''(-x), with l = -log h. With J the largest absolute logarithm of
  that ratio, noise of scale Delta / (epsilon - J) guarantees epsilon, for the exact minimiser over the
  ball that bounds the entries.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyInts, Floats
from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.completion.one_bit.solver import Link, steepness
from dprec.components import Options, Registry, option
from dprec.errors import SettingError
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import NoiseGrid

Calibration = Literal["published", "sound"]

SlopeBound = Literal["published", "tight"]

BIT = 1.0
"""By how much a changed rating moves Y - H with the logistic link; Delta is the same."""

_WIDEST = "the noise covers the largest L1 distance between any two estimates, so it hides whole profiles"
_ONE_ENTRY = "one changed rating can move every entry of the estimate, and the noise is that of one entry"
_ON_BITS = "the ratings enter the objective only together with the noise, a Laplace mechanism on the bits"
_BOUNDARY = "the paper's proof needs a gradient of zero at the optimum, and omits a Jacobian"
_EXACT_MINIMISER = "the exact minimiser would keep {:.6g}, and a solver only approximates it"


@dataclass(frozen=True)
class CalibratedNoise:
    """Laplace noise and its guarantee."""

    grid: NoiseGrid
    """Of the noise, in units of the hidden matrix (output) or of its inverse (objective)."""
    per_rating: float
    """Loss when one rating changes its value, as far as there is a proof; infinite if there is none."""
    reason: str
    """What the proof rests on, or what is missing from one of the epsilon that was asked for."""
    whole_profile: bool = False
    """Whether the same loss is proven when all of a user's ratings change their values."""
    exact_minimiser: bool = False
    """Whether the proof is for the exact minimiser alone, which a solver only approximates."""

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of the grid's."""
        return self.grid.scale

    @property
    def proved(self) -> float:
        """Loss per rating that is proved of what is released; infinite if nothing is."""
        return math.inf if self.exact_minimiser else self.per_rating


def output_sensitivity(shape: tuple[int, int], alpha: float, radius: float | None) -> float:
    """Return an upper bound on the L1 distance between any two estimates with entries within +-alpha."""
    m, n = shape
    bound = 2 * alpha * m * n
    return bound if radius is None else min(bound, 2 * radius * math.sqrt(m * n))


def output_noise(
    shape: tuple[int, int], alpha: float, radius: float | None, epsilon: float, calibration: Calibration
) -> CalibratedNoise:
    """Return the noise of output perturbation (Li et al. [li2021], Algorithm 4); see `output_sensitivity`."""
    sensitivity, cells = output_sensitivity(shape, alpha, radius), shape[0] * shape[1]
    sound = calibration == "sound"
    grid = _grid(sensitivity, epsilon, cells) if sound else _grid(2 * alpha, epsilon, 1)
    reason = _WIDEST if sound else _ONE_ENTRY
    return CalibratedNoise(grid, grid.loss(sensitivity, cells), reason, whole_profile=True)


def _grid(sensitivity: float, epsilon: float, rounded: int) -> NoiseGrid:
    """Return the grid of the noise; see `NoiseGrid.of`."""
    try:
        return NoiseGrid.of(sensitivity, epsilon, rounded)
    except ValueError as error:
        raise SettingError("privacy.epsilon", str(error), "a larger epsilon") from None


def curvature_ratio(link: Link, alpha: float) -> float:
    """Return J, the largest |log(l''(x) / l''(-x))| over |x| <= alpha, with l = -log h; 0 for logistic."""
    x = np.linspace(0.0, alpha, 2001)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(link.curvature(x) / link.curvature(-x)))
    # If both curvatures underflow, nothing is known about their ratio.
    return float(np.nan_to_num(ratios, nan=np.inf).max())


def slope_bound_of(link: Link, alpha: float, slope_bound: SlopeBound) -> float:
    """Return Delta, a bound of h' / (h (1 - h)) on [-alpha, alpha] (Li et al. [li2021], section 4.2)."""
    if slope_bound == "tight":
        return steepness(link, alpha)
    if link.sigma is None:
        return 1.0
    slope, chance = link.density(np.zeros(1)), link.probability(np.array([-alpha]))
    # As in `steepness`: a chance that underflows must not divide by zero.
    return float((2 * slope / np.maximum(chance, np.finfo(np.float64).tiny))[0])


def objective_noise(
    link: Link,
    alpha: float,
    epsilon: float,
    calibration: Calibration,
    *,
    bounded: bool,
    slope_bound: SlopeBound = "published",
) -> CalibratedNoise:
    """Return the noise of objective perturbation (Li et al. [li2021], Theorem 2).

    ``bounded``: whether only the constrained problem is solved, with entries held within +-alpha. Raises
    SettingError when the sound calibration has no proof, or epsilon is too small for it; its keys are
    relative to the owner of both the perturbation and the budget.
    """
    delta = slope_bound_of(link, alpha, slope_bound)
    if link.sigma is None:
        grid = _grid(BIT, epsilon, 1)
        return CalibratedNoise(grid, grid.loss(BIT, 1), _ON_BITS)
    jacobian = curvature_ratio(link, alpha)
    if calibration == "published":
        grid = _grid(delta, epsilon, 0)
        if not bounded:
            return CalibratedNoise(grid, math.inf, _BOUNDARY)
        proved_epsilon = steepness(link, alpha) / grid.scale + jacobian
        return CalibratedNoise(
            grid, proved_epsilon, _EXACT_MINIMISER.format(proved_epsilon), exact_minimiser=True
        )
    if not bounded:
        raise SettingError(
            "perturbation.calibration",
            "'sound', with a Gaussian link and entries that are not held within alpha",
            "--set protocol.completion.bounded=true --set protocol.completion.biases=false, or "
            "--set protocol.completion.link=logistic",
        )
    if epsilon <= jacobian:
        accepted = f"more than {jacobian:.4g}, which the Gaussian link costs at alpha = {alpha:g}"
        raise SettingError("privacy.epsilon", f"{epsilon:g}", accepted)
    grid = _grid(delta, epsilon - jacobian, 0)
    return CalibratedNoise(grid, epsilon, _EXACT_MINIMISER.format(epsilon), exact_minimiser=True)


@dataclass(frozen=True, kw_only=True)
class Perturbation(Options):
    """Base of the perturbations in the central model."""

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers", "fits_without_noise"})
    fits_without_noise: ClassVar[bool] = False
    """Whether the matrix is estimated without noise, which is added to the estimate."""
    calibration: Calibration = option(
        "How much noise: as in the paper, or as much as a proof needs.",
        "published",
        published="published",
        source="li2021, Theorems 2 and 4",
    )

    @abstractmethod
    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise for a matrix of ``shape``; raises InputError when it cannot guarantee epsilon."""

    @abstractmethod
    def complete(
        self,
        completion: OneBit,
        observations: Observations,
        epsilon: float,
        seed: int,
        progress: Progress = silent,
    ) -> HiddenMatrix:
        """Complete the matrix with noise; see `Completion.fit`."""


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(Perturbation):
    """A random linear term in the objective (Li et al. [li2021], Algorithm 2)."""

    kind: Literal["objective"] = "objective"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    slope_bound: SlopeBound = option(
        "Bound of h' / (h (1 - h)) that the noise is scaled by: the paper's, or its maximum within alpha. "
        "They differ with the Gaussian link.",
        "published",
        published="published",
        source="li2021, section 4.2",
    )

    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise on each observed cell."""
        return objective_noise(
            completion.link_function,
            completion.alpha,
            epsilon,
            self.calibration,
            bounded=completion.bounded,
            slope_bound=self.slope_bound,
        )

    def complete(
        self,
        completion: OneBit,
        observations: Observations,
        epsilon: float,
        seed: int,
        progress: Progress = silent,
    ) -> HiddenMatrix:
        """Minimise the perturbed objective."""
        grid = self.noise(completion, observations.shape, epsilon).grid
        linear = grid.noise(seed, "objective noise", np.arange(observations.values.size))
        if completion.link_function.sigma is None:
            # A -1 is a +1 with 1 added to H: what is solved is a function of integers, the noisy bits.
            linear += (observations.values < 0) * grid.on_grid(np.array(BIT))
            ones = np.ones(observations.items.size)
            observations = replace(observations, read=lambda: [ones])
        return completion.fit_perturbed(observations, grid.values(linear), seed, progress)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Perturbation):
    """Noise on every entry of the estimate (Li et al. [li2021], Algorithm 4)."""

    kind: Literal["output"] = "output"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    fits_without_noise: ClassVar[bool] = True

    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise on each entry."""
        # No nuclear norm bounds the biases; only the clipping of the entries does.
        radius = None if completion.biases else completion.radius(shape)
        return output_noise(shape, completion.alpha, radius, epsilon, self.calibration)

    def complete(
        self,
        completion: OneBit,
        observations: Observations,
        epsilon: float,
        seed: int,
        progress: Progress = silent,
    ) -> HiddenMatrix:
        """Complete the matrix, clip every entry to +-alpha and add the noise."""
        grid = self.noise(completion, observations.shape, epsilon).grid
        estimate = completion.fit(observations, seed, progress)
        return NoisyMatrix(
            estimate.link,
            estimate.biases,
            estimate.point,
            completion.alpha,
            grid,
            seed,
            diagnostics=estimate.diagnostics,
            notes=estimate.notes,
        )


@dataclass(frozen=True, eq=False)
class NoisyMatrix(HiddenMatrix):
    """A hidden matrix with clipped entries, rounded to a grid, and noise on each of them.

    The noise of a cell is drawn on demand and depends only on the seed and the cell's place in the
    matrix: it is the same whenever, and together with whichever other cells, the cell is asked for.
    """

    alpha: float
    """Bound of the entries before the noise."""
    grid: NoiseGrid
    seed: int

    def hidden(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return the noisy entries at the given cells, shape (cells,)."""
        entries = np.clip(super().hidden(users, items), -self.alpha, self.alpha)
        steps, n_items = self.grid.on_grid(entries), self.biases.items.size
        places = users.astype(np.int64) * n_items + items
        order = np.argsort(places, kind="stable")
        # Cells that lie close together share a stretch of words.
        stretches = np.flatnonzero(np.diff(places[order] // _STRETCH)) + 1
        for cells in np.split(order, stretches):
            steps[cells] += self.grid.noise(self.seed, "output noise", places[cells])
        return self.grid.values(steps)


_STRETCH = 1 << 18
"""Cells of the matrix whose random words are in memory together."""


PERTURBATIONS: Registry[Perturbation] = Registry(
    "perturbation", Perturbation, [ObjectivePerturbation, OutputPerturbation]
)
