"""Noise that a trusted server adds, to the objective that it minimises or to what it found."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Observations
from dprec.completion.one_bit.calibration import (
    CalibratedNoise,
    Calibration,
    objective_noise,
    output_noise,
)
from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.options import Options, option
from dprec.progress import Progress, silent
from dprec.randomness import laplace, words
from dprec.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Perturbation(Options):
    """Base of the perturbations by a trusted server."""

    kind: str
    calibration: Calibration = option(
        "How much noise: as the paper has it, or as much as a proof needs.", "published"
    )

    @abstractmethod
    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise for a completion of a matrix of ``shape`` users x items.

        Raises
        ------
        InputError
            When the calibration cannot keep epsilon.
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

    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise on each observed cell."""
        return objective_noise(
            completion.link_function,
            completion.alpha,
            epsilon,
            self.calibration,
            bounded=completion.bounded,
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
        scale = self.noise(completion, observations.shape, epsilon).scale
        drawn = words(seed, "objective noise", 0, observations.values.size)
        return completion.fit_perturbed(observations, laplace(drawn, scale), seed, progress)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Perturbation):
    """Noise on every entry of the estimate (Li et al. [li2021], Algorithm 4)."""

    kind: Literal["output"] = "output"

    def noise(self, completion: OneBit, shape: tuple[int, int], epsilon: float) -> CalibratedNoise:
        """Return the noise on each entry."""
        # Effects have no nuclear norm to speak of; what bounds them is that entries are clipped.
        radius = None if completion.effects else completion.radius(shape)
        return output_noise(shape, completion.alpha, radius, epsilon, self.calibration)

    def complete(
        self,
        completion: OneBit,
        observations: Observations,
        epsilon: float,
        seed: int,
        progress: Progress = silent,
    ) -> HiddenMatrix:
        """Complete, clip every entry to +-alpha and add the noise."""
        scale = self.noise(completion, observations.shape, epsilon).scale
        found = completion.fit(observations, seed, progress)
        return NoisyMatrix(
            found.link,
            found.effects,
            found.point,
            completion.alpha,
            scale,
            seed,
            diagnostics=found.diagnostics,
            notes=found.notes,
        )


@dataclass(frozen=True, eq=False)
class NoisyMatrix(HiddenMatrix):
    """A hidden matrix whose entries are clipped and hidden under noise.

    The noise of a cell is drawn when it is asked for, from the cell's own place in the matrix: it is
    the same whenever and with whatever others the cell is asked for.

    Parameters
    ----------
    alpha : float
        Bound of the entries before the noise.
    scale : float
        Of the noise.
    seed : int
    """

    alpha: float
    scale: float
    seed: int

    def hidden(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the noisy entries at the given cells, shape (cells,)."""
        entries = np.clip(super().hidden(users, items), -self.alpha, self.alpha)
        n_items = self.effects.items.size
        order = np.argsort(users, kind="stable")
        rows, starts = np.unique(users[order], return_index=True)
        ends = [*starts[1:].tolist(), order.size]
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends, strict=False):
            cells = order[start:end]
            drawn = words(self.seed, "output noise", row * n_items, n_items)
            entries[cells] += laplace(drawn[items[cells]], self.scale)
        return entries


PERTURBATIONS: Registry[Perturbation] = Registry("perturbation", [ObjectivePerturbation, OutputPerturbation])
