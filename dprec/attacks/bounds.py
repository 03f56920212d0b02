"""What epsilon allows any attack: how often it guesses right, and how well it ranks.

All bounds are exact optima: over the mechanisms whose loss is at most (epsilon, delta), over what an attacker
makes of their reports, and with what it knows before. Of two inputs, every such mechanism follows from one:
with probability delta it tells the input, otherwise it is the randomised response of one bit (Kairouz, Oh and
Viswanath [kairouz2015], section 3). So the bound of an attack that ranks with prior knowledge is the same
attack against that pair, and what is allowed of one pair is a trade-off of false and true positives (Dong,
Roth and Su [dong2022], section 2).

A loss is about one rating, or one user, given all others. Where an attacker learns from a user's other
reports what to expect of a rating, that belongs to its prior knowledge, and not to the loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dprec.accounting import PrivacyAccountant, PrivacyUnit
from dprec.arrays import AnyArray, AnyInts, Floats

_DELTAS = (1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.07, 0.15, 0.25, 0.4)
"""Deltas at which an accountant is asked: each makes two lines that the trade-off is not above."""

_DEVIATIONS = 3.0
"""By how many standard deviations a measured share exceeds its expectation in one of 740 cases."""

_LARGEST = 700.0
"""Epsilon from which on nothing is excluded that floating point can tell."""


def allowed_guess(
    shares: Floats, epsilon: ArrayLike, delta: float = 0.0, truth: AnyInts | None = None
) -> Floats:
    """Return how likely a report is to be guessed right, at most, given the probabilities of its inputs.

    The best mechanism answers by randomised response among the k likeliest inputs, for the best k, and is
    right with probability

        delta + (1 - delta) (sum of the k largest shares) e^epsilon / (e^epsilon + k - 1)

    Parameters
    ----------
    shares : ndarray of float64, shape (cells, inputs)
        Probability of each input of each cell, to one who has not seen the report. Rows sum to 1.
    epsilon : float, or ndarray of shape (cells,)
        From 0 to infinity.
    truth : ndarray of int, shape (cells,), optional
        The input of each cell, from 0. The same mechanism and guess are then judged by what is true, and not
        by what the shares promise.

    Returns
    -------
    ndarray of float64, shape (cells,)
    """
    order = np.argsort(-shares, axis=1, kind="stable")
    ranked = np.take_along_axis(shares, order, axis=1)
    inverse = np.broadcast_to(np.exp(-np.asarray(epsilon, dtype=np.float64)), len(shares))
    rights = 1 / (1 + np.arange(shares.shape[1]) * inverse[:, None])
    chances = ranked.cumsum(axis=1) * rights
    best = chances.argmax(axis=1)
    cells = np.arange(len(shares))
    if truth is None:
        right = chances[cells, best]
    else:
        place = (order == truth[:, None]).argmax(axis=1)
        right = np.where(place <= best, rights[cells, best], 0.0)
    guessed: Floats = delta + (1 - delta) * right
    return guessed


def allowed_by_chance(expected: float, variance: float) -> float:
    """Return what a share that was measured exceeds in one of a thousand cases, at most 1.

    ``expected``, ``variance``: of the share; bounds are of expectations.
    """
    return min(1.0, expected + _DEVIATIONS * math.sqrt(variance))


@dataclass(frozen=True, eq=False)
class Roc:
    """False and true positives of an attack that says yes to whatever scores above a threshold."""

    false_positives: Floats
    true_positives: Floats
    """The corners of the curve, both ascending from 0 to 1, between which it is straight; shape (corners,).
    """

    @classmethod
    def of_scores(cls, scores: Floats, members: AnyArray, others: AnyArray) -> Self:
        """Return the curve of a ranking; equal scores are ordered by chance.

        Parameters
        ----------
        scores : ndarray of float64, shape (kinds,)
        members, others : ndarray, shape (kinds,)
            How many of those with each score are members, and how many are not: numbers, weights, or whether
            one is. Neither may be 0 for all.
        """
        _, places = np.unique(scores, return_inverse=True)
        sides = [
            np.bincount(places, weights=side.astype(np.float64))[::-1].cumsum() for side in (others, members)
        ]
        false, true = (np.concatenate([[0.0], side / side[-1]]) for side in sides)
        return cls(false, true)

    @classmethod
    def allowed(cls, epsilon: float, delta: float = 0.0) -> Self:
        """Return the curve that nothing exceeds which is told of one of two inputs."""
        lies = (1 - delta) * float(expit(-epsilon))
        corners = np.array([0.0, 0.0, lies, 1 - delta, 1.0])
        return cls(corners, 1 - corners[::-1])

    @classmethod
    def allowed_by(
        cls,
        accountant: PrivacyAccountant,
        deltas: Sequence[float] = _DELTAS,
        per: PrivacyUnit = "user",
    ) -> Self:
        """Return the curve that nothing exceeds which is told of the user who loses most.

        The accountant's epsilon at every delta, and by basic composition, is a bound by itself; the curve is
        the least of all. Two profiles are compared as the accountant does.
        """
        lines = [(0.0, 1.0)]
        for delta in (0.0, *deltas):
            epsilon = float(np.nanmax(accountant.get_epsilon(delta, per), initial=0.0))
            if epsilon < _LARGEST:
                grown, shrunk = math.exp(epsilon), math.exp(-epsilon)
                lines += [(grown, delta), (shrunk, 1 - (1 - delta) * shrunk)]
        return cls._below(*np.array(lines).T)

    @classmethod
    def _below(cls, slopes: Floats, heights: Floats) -> Self:
        """Return the curve of the points that are above none of some lines."""
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = np.subtract.outer(heights, heights) / np.subtract.outer(slopes, slopes).T
        corners = np.unique(np.concatenate([[0.0, 1.0], meet[(meet > 0) & (meet < 1)]]))
        least = (slopes * corners[:, None] + heights).min(axis=1)
        return cls(np.append(0.0, corners), np.append(0.0, least))

    @classmethod
    def allowed_with_priors(
        cls,
        log_odds: Floats,
        members: AnyArray,
        others: AnyArray,
        epsilon: ArrayLike,
        delta: float = 0.0,
    ) -> Self:
        """Return the best ranking of many cells by a report on each and prior knowledge, in expectation.

        Cells that are told rank first or last; others move up or down by epsilon.

        Parameters
        ----------
        log_odds : ndarray of float64, shape (kinds,)
            What is known before of being a member; any score of which an epsilon is one.
        members, others : ndarray, shape (kinds,)
            As in `of_scores`.
        epsilon : float, or ndarray of shape (kinds,)
            Of each report, from 0 to infinity.
        """
        losses = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), log_odds.shape)
        lies, before, told = expit(-losses), np.nan_to_num(log_odds), np.full(log_odds.size, np.inf)
        untold = 1 - delta
        return cls.of_scores(
            np.concatenate([before + losses, before - losses, told, -told]),
            np.concatenate(
                [untold * (1 - lies) * members, untold * lies * members, delta * members, 0 * members]
            ),
            np.concatenate(
                [untold * lies * others, untold * (1 - lies) * others, 0 * others, delta * others]
            ),
        )

    def at(self, false_positives: ArrayLike) -> Floats:
        """Return the true positives at shares of false positives, 0 to 1; where it jumps, after the jump."""
        wanted = np.asarray(false_positives, dtype=np.float64)
        after = np.searchsorted(self.false_positives, wanted, side="right")
        before, after = after - 1, np.minimum(after, self.false_positives.size - 1)
        width = self.false_positives[after] - self.false_positives[before]
        way = np.divide(
            wanted - self.false_positives[before], width, out=np.zeros_like(wanted), where=width > 0
        )
        rise = self.true_positives[after] - self.true_positives[before]
        return np.asarray(self.true_positives[before] + way * rise)

    @property
    def auc(self) -> float:
        """The area below: how likely a member is to score above another, half of equal scores counted."""
        return float(np.trapezoid(self.true_positives, self.false_positives))
