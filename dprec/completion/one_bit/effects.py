"""User and item biases in addition to the low-rank part: how generous a user is, how well liked an item.

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
class Biases:
    """The matrix mean + user bias + item bias."""

    mean: float
    users: NDArray[np.float64]
    items: NDArray[np.float64]
    """Shapes (users,) and (items,)."""

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Biases:
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
    ) -> tuple[Biases, NDArray[np.float64]]:
        """Minimise a quadratic model of the objective in the effects.

        Parameters
        ----------
        users, items : ndarray of int, shape (cells,)
        slopes : ndarray of float64, shape (cells,)
            Derivative of the objective in each cell.
        curvature : float
            Its second derivative, the same in every cell.

        Returns
        -------
        Effects
        ndarray of float64, shape (cells,)
            The slopes that the model predicts afterwards.
        """
        biases, left = self, slopes.copy()
        if not slopes.size:
            return biases, left
        rated = np.bincount(users, minlength=self.users.size) * curvature + ridge
        raters = np.bincount(items, minlength=self.items.size) * curvature + ridge
        for _ in range(_SWEEPS):
            move = -float(left.mean()) / curvature
            biases = replace(biases, mean=biases.mean + move)
            left += curvature * move
            sums = np.bincount(users, weights=left, minlength=rated.size) + ridge * biases.users
            biases = replace(biases, users=biases.users - sums / rated)
            left -= curvature * (sums / rated)[users]
            sums = np.bincount(items, weights=left, minlength=raters.size) + ridge * biases.items
            biases = replace(biases, items=biases.items - sums / raters)
            left -= curvature * (sums / raters)[items]
        return biases, left


def fit_biases(
    likelihood: SignLikelihood,
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    shape: tuple[int, int],
    ridge: float,
) -> Biases:
    """Return the effects that minimise a likelihood's objective plus ridge / 2 x their squares.

    Parameters
    ----------
    users, items : ndarray of int, shape (cells,)
    shape : tuple of int
        Users and items.
    ridge : float
        Above 0; the mean is not penalised.
    """
    biases = Biases.zero(shape)
    value, slopes = likelihood.value_and_slopes(biases.at(users, items))
    if not slopes.size:
        return biases
    curvature = likelihood.information
    for _ in range(_ITERATIONS):
        candidate, _ = biases.stepped(users, items, slopes, curvature, ridge)
        reached, slopes_there = likelihood.value_and_slopes(candidate.at(users, items))
        reached += candidate.penalty(ridge)
        if not reached <= value:
            curvature *= 2  # With enough curvature, the model bounds the objective from above.
            if curvature > 1e6 * likelihood.link.largest_curvature:
                break
            continue
        settled = value - reached <= _SETTLED * max(abs(value), 1.0)
        biases, value, slopes = candidate, reached, slopes_there
        if settled:
            break
    return biases
