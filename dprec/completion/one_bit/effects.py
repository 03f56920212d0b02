"""User and item effects in addition to the low-rank part: how generous a user is, how well liked an item.

A nuclear ball shrinks what all ratings share as much as what is peculiar to a few, which costs most
when privacy noise leaves room for little else. Effects with a ridge of their own do not compete
with the rest; they are an addition to Li et al. [li2021].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dprec.completion.one_bit.solver import SignLikelihood

_SWEEPS = 3
_ITERATIONS = 300
_SETTLED = 1e-6
"""Relative decrease of the objective at which the fit of the effects ends."""


@dataclass(frozen=True, eq=False)
class Effects:
    """The matrix mean + user effect + item effect.

    Parameters
    ----------
    mean : float
    users, items : ndarray of float64, shapes (users,) and (items,)
    """

    mean: float
    users: NDArray[np.float64]
    items: NDArray[np.float64]

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Effects:
        """Return effects of 0."""
        return cls(0.0, np.zeros(shape[0]), np.zeros(shape[1]))

    def at(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the entries of the given cells, shape (cells,)."""
        entries: NDArray[np.float64] = self.mean + self.users[users] + self.items[items]
        return entries

    def penalty(self, ridge: float) -> float:
        """Return what the ridge adds to an objective."""
        return float(ridge * ((self.users**2).sum() + (self.items**2).sum())) / 2

    def stepped(
        self,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        slopes: NDArray[np.float64],
        curvature: float,
        ridge: float,
    ) -> tuple[Effects, NDArray[np.float64]]:
        """Minimise a quadratic model of the objective in the effects.

        Parameters
        ----------
        users, items : ndarray of int, shape (cells,)
        slopes : ndarray of float64, shape (cells,)
            Derivative of the objective in each cell.
        curvature : float
            Its second derivative, the same in every cell.
        ridge : float

        Returns
        -------
        Effects
        ndarray of float64, shape (cells,)
            The slopes that the model predicts afterwards.
        """
        effects, left = self, slopes.copy()
        if not slopes.size:
            return effects, left
        rated = np.bincount(users, minlength=self.users.size) * curvature + ridge
        raters = np.bincount(items, minlength=self.items.size) * curvature + ridge
        for _ in range(_SWEEPS):
            move = -float(left.mean()) / curvature
            effects = replace(effects, mean=effects.mean + move)
            left += curvature * move
            sums = np.bincount(users, weights=left, minlength=rated.size) + ridge * effects.users
            effects = replace(effects, users=effects.users - sums / rated)
            left -= curvature * (sums / rated)[users]
            sums = np.bincount(items, weights=left, minlength=raters.size) + ridge * effects.items
            effects = replace(effects, items=effects.items - sums / raters)
            left -= curvature * (sums / raters)[items]
        return effects, left


def fit_effects(
    likelihood: SignLikelihood,
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    shape: tuple[int, int],
    ridge: float,
) -> Effects:
    """Return the effects that minimise a likelihood's objective plus ridge / 2 x their squares.

    Parameters
    ----------
    likelihood : SignLikelihood
    users, items : ndarray of int, shape (cells,)
    shape : tuple of int
        Users and items.
    ridge : float
        Above 0; the mean is not penalised.
    """
    effects = Effects.zero(shape)
    value, slopes = likelihood.value_and_slopes(effects.at(users, items))
    if not slopes.size:
        return effects
    curvature = likelihood.information
    for _ in range(_ITERATIONS):
        candidate, _ = effects.stepped(users, items, slopes, curvature, ridge)
        reached, slopes_there = likelihood.value_and_slopes(candidate.at(users, items))
        reached += candidate.penalty(ridge)
        if not reached <= value:
            curvature *= 2  # With enough curvature, the model bounds the objective from above.
            if curvature > 1e6 * likelihood.link.largest_curvature:
                break
            continue
        settled = value - reached <= _SETTLED * max(abs(value), 1.0)
        effects, value, slopes = candidate, reached, slopes_there
        if settled:
            break
    return effects
