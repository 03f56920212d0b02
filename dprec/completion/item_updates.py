"""The server's part of iterative factorisation: a step of the item factors along a gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.randomness import generator

Start = Literal["random", "level"]


@dataclass(frozen=True, kw_only=True)
class StepOptions(Options):
    """How far the item factors move in a round."""

    size: float = option("Step size gamma of the first round.", 0.2, gt=0)
    decay: float = option(
        "The step of round t is size / t^decay.",
        1.0,
        published=1.0,
        source="shin2018, Algorithm 1",
        ge=0,
    )
    momentum: float = option(
        "Share of the last step that is repeated.",
        0.0,
        published=0.0,
        source="shin2018, Algorithm 1",
        ge=0,
        lt=1,
    )
    regularization: float = option("Pull lambda of the factors towards their point of rest.", 0.0, ge=0)
    start: Start = option(
        "Initial item factors: 'random', all of them small; 'level', the first is 1, so that a device can "
        "fit the level of its user's ratings from the start.",
        "level",
        published="random",
        source="shin2018, Algorithm 1",
    )
    pull: Literal["zero", "start"] = option(
        "Where the factors rest: at zero, a ridge, or at the mean of the initial factors.",
        "start",
        published="zero",
        source="shin2018, Algorithm 1",
    )

    def resting_point(self, n_items: int, rank: int) -> NDArray[np.float64]:
        """Return the point towards which regularisation pulls, shape (items, rank)."""
        factors = np.zeros((n_items, rank))
        if self.pull == "start" and self.start == "level":
            factors[:, 0] = 1.0
        return factors


def initial_item_factors(n_items: int, rank: int, seed: int, start: Start = "level") -> NDArray[np.float64]:
    """Return the item factors that the first round broadcasts, shape (items, rank).

    Parameters
    ----------
    start : {"random", "level"}
        As `StepOptions`.
    """
    factors = generator(seed, "item factors").normal(0.0, 0.3, (n_items, rank))
    if start == "level":
        factors[:, 0] = 1.0
    return factors


def step_item_factors(
    factors: NDArray[np.float64],
    velocity: NDArray[np.float64],
    gradient: NDArray[np.float64],
    share_of_raters: NDArray[np.float64] | None,
    round_index: int,
    options: StepOptions,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Take one step: V <- V - gamma_t (G + 2 lambda (V - V_0)), gamma_t = gamma / t^decay.

    Shin et al. [shin2018], Algorithm 1, line 14, where V_0 is 0; here it is the resting point of the
    options. If the reports show how many users rated an item, its row is divided by its curvature in
    units of u^2, 2 (share + lambda), so that rarely rated items learn as fast as the others.

    Parameters
    ----------
    factors, velocity, gradient : ndarray of float64, shape (items, rank)
        The gradient is the mean per user.
    share_of_raters : ndarray of float64, shape (items,), or None
    round_index : int
        From 1.

    Returns
    -------
    factors, velocity : ndarray of float64, shape (items, rank)
    """
    pull = factors - options.resting_point(*factors.shape)
    direction = gradient + 2.0 * options.regularization * pull
    if share_of_raters is not None:
        curvature = 2.0 * (share_of_raters + options.regularization)
        direction = np.divide(
            direction, curvature[:, None], out=np.zeros_like(direction), where=curvature[:, None] > 0
        )
    velocity = options.momentum * velocity + direction
    return factors - options.size / round_index**options.decay * velocity, velocity
