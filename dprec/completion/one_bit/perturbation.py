"""Noise that a trusted server adds, to the objective that it minimises or to its estimate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.completion.one_bit.links import Logistic
from dprec.completion.one_bit.perturbation import (
    BIT,
    CalibratedNoise,
    Calibration,
    SlopeBound,
    objective_noise,
    output_noise,
)
from dprec.components import Options, Registry, option
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.randomness import NoiseGrid


@dataclass(frozen=True, kw_only=True)
class Perturbation(Options):
    """Base of the perturbations by a trusted server."""

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers"})
    calibration: Calibration = option(
        "How much noise: as in the paper, or as much as a proof needs.",
        "published",
        published="published",
        source="li2021, Theorems 2 and 4",
    )

    @abstractmethod
    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise for a completion of a matrix of ``shape`` users x items.

        Raises
        ------
        InputError
            When the calibration cannot guarantee epsilon.
        """

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
        if isinstance(completion.link_function, Logistic):
            # A -1 is a +1 with 1 added to H: what is solved is a function of integers, the noisy bits.
            linear += (observations.values < 0) * grid.on_grid(np.array(BIT))
            observations = replace(observations, values=np.ones_like(observations.values))
        return completion.fit_perturbed(observations, grid.values(linear), seed, progress)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Perturbation):
    """Noise on every entry of the estimate (Li et al. [li2021], Algorithm 4)."""

    kind: Literal["output"] = "output"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)

    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise on each entry."""
        # No nuclear norm bounds the effects; only the clipping of the entries does.
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

    def hidden(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
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
