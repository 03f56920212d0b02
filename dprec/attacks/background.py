"""What an adversary knows of ratings before it sees a report: how others rate, and the user's other reports.

Each item, and each user, tilts the shares that the levels have among all ratings: p(x) exp(a x + b x^2), up
to a factor. A posterior over a and b on a grid, whose prior is fitted to all items or users by expectation
maximisation, says what the other ratings of an item tell of one, and what the other reports of a user do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from dprec.arrays import AnyInts, Floats, Ints, blocks, offsets, rows_of
from dprec.ratings import Ratings

_SLOPES, _CURVATURES = np.linspace(-3.0, 3.0, 21), np.linspace(-1.0, 1.0, 7)
"""The grid of a and b, for levels in standard deviations from the mean."""

_FIRST_SPREADS = 0.6, 0.2
"""Standard deviations of a and b before they are fitted."""

TOLD_BY_OTHERS = 0.5
"""What the evidence of a user's other reports is multiplied by: tilts are not all that a
user's ratings have in common. benchmarks/choosing/attack_background.py holds it against others.
"""

_STEPS = 30
_AT_ONCE = 1 << 14
_FITTED_TO = 1 << 18
"""Ratings, at most and about, to which the prior of users is fitted."""


@dataclass(frozen=True, eq=False)
class Tilts:
    """Ways to rate, and how likely each is."""

    factors: Floats
    """exp(a x + b x^2) of every way and level; shape (ways, levels)."""
    log_weights: Floats
    """Log probability of each way; shape (ways,)."""

    @classmethod
    def unfitted(cls, shares: Floats) -> Self:
        """Return all ways, small tilts likelier, for levels with some shares; shape (levels,)."""
        levels = np.arange(shares.size)
        centred = levels - shares @ levels
        scores = centred / np.sqrt(shares @ centred**2)
        slopes, curvatures = (grid.ravel() for grid in np.meshgrid(_SLOPES, _CURVATURES))
        exponents = np.outer(slopes, scores) + np.outer(curvatures, scores**2 - 1)
        log_prior = -((slopes / _FIRST_SPREADS[0]) ** 2 + (curvatures / _FIRST_SPREADS[1]) ** 2) / 2
        return cls(np.exp(exponents), log_prior - scipy.special.logsumexp(log_prior))

    def evidence(self, shares: Floats, likelihoods: Floats) -> Floats:
        """Return the log probability of what is said of each rating in each way, shape (ratings, ways).

        ``shares``, ``likelihoods``, shape (ratings, levels): of each level, before the way is known, and of
        what is said given each.
        """
        return np.log((shares * likelihoods) @ self.factors.T) - np.log(shares @ self.factors.T)

    def fitted(self, evidence: Floats) -> Self:
        """Return the ways with the weights that fit everything said of each who rates, shape (some, ways)."""
        log_weights = self.log_weights
        for _ in range(_STEPS):
            weights = scipy.special.softmax(evidence + log_weights, axis=1).mean(axis=0)
            log_weights = np.log(np.maximum(weights, 1e-300))
        return type(self)(self.factors, log_weights)

    def shares(self, shares: Floats, evidence: Floats) -> Floats:
        """Return the shares of each rating's levels given the evidence on the way, shape (ratings, levels).

        ``shares``, shape (ratings, levels): before the way is known; ``evidence``, shape (ratings, ways).
        """
        weights = scipy.special.softmax(evidence + self.log_weights, axis=1)
        tilted = shares * ((weights / (shares @ self.factors.T)) @ self.factors)
        return tilted / tilted.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Background:
    """How all users but one rate, which is public: the worst case of statistics."""

    ratings: Ratings
    """Of everybody."""
    unfitted: Tilts
    """Ways to rate, before they are fitted to anybody."""
    among_others: Floats
    """Shares of the levels given an item's ratings but one, by item, level of that one, and level; shape
    (items, levels, levels).
    """
    of_items: Floats
    """Shares given all ratings of an item; shape (items, levels)."""

    @classmethod
    def of(cls, ratings: Ratings) -> Self:
        """Learn from ratings on a scale of two levels or more, of which there is at least one."""
        levels, n_items = ratings.scale.levels, ratings.n_items
        cells = ratings.items.astype(np.int64) * levels + ratings.levels - 1
        counts = np.bincount(cells, minlength=n_items * levels).reshape(n_items, levels).astype(np.float64)
        overall = counts.sum(axis=0) + 1 / levels
        overall /= overall.sum()
        unfitted = Tilts.unfitted(overall)
        logs = unfitted.evidence(np.tile(overall, (levels, 1)), np.eye(levels))
        ways = unfitted.fitted(counts[counts.any(axis=1)] @ logs)
        among_others, of_items = np.empty((n_items, levels, levels)), np.empty((n_items, levels))
        for items in blocks(np.full(n_items, levels), _AT_ONCE):
            evidence = counts[items] @ logs
            without = (evidence[:, None] - logs).reshape(-1, len(ways.factors))
            of_items[items] = ways.shares(np.tile(overall, (len(evidence), 1)), evidence)
            shares = ways.shares(np.tile(overall, (len(without), 1)), without)
            among_others[items] = shares.reshape(-1, levels, levels)
        return cls(ratings, unfitted, among_others, of_items)

    @cached_property
    def of_users(self) -> Tilts:
        """How users rate, which takes longer to fit than what is known of items."""
        ratings, of_users = self.ratings, []
        for users, part in parts_by_user(ratings):
            if part.start >= _FITTED_TO:
                break
            likelihoods = np.eye(ratings.scale.levels)[ratings.levels[part].astype(np.int64) - 1]
            of_others = self.of_ratings(ratings.items[part], ratings.levels[part])
            of_users.append(summed(self.unfitted.evidence(of_others, likelihoods), ratings.counts[users]))
        return self.unfitted.fitted(np.concatenate(of_users))

    def given_others(
        self, shares: Floats, likelihoods: Floats, counts: Ints, weight: float = TOLD_BY_OTHERS
    ) -> Floats:
        """Return the shares of levels given the user's other reports as well, shape (ratings, levels).

        ``shares``, ``likelihoods``, shape (ratings, levels): by user, of whom each has so many ratings;
        ``weight``: what the evidence of the other reports is multiplied by.
        """
        evidence = self.of_users.evidence(shares, likelihoods)
        evidence_of_others = summed(evidence, counts)[rows_of(counts)] - evidence
        return self.of_users.shares(shares, weight * evidence_of_others)

    def of_ratings(self, items: AnyInts, levels: AnyInts) -> Floats:
        """Return the shares of the levels given all ratings but each, shape (ratings, levels).

        ``items``, ``levels``: of the ratings that are left out; levels from 1.
        """
        return self.among_others[items, levels.astype(np.int64) - 1]


def parts_by_user(ratings: Ratings) -> Iterator[tuple[slice, slice]]:
    """Yield consecutive users with their ratings, a part at a time, which takes little memory."""
    for users in blocks(ratings.counts, _AT_ONCE):
        yield users, slice(int(ratings.indptr[users.start]), int(ratings.indptr[users.stop]))


def summed(values: Floats, counts: Ints) -> Floats:
    """Return the sums of consecutive rows, so many for each user, shape (users, columns)."""
    sums = np.zeros((counts.size, values.shape[1]))
    filled = np.flatnonzero(counts)
    if filled.size:
        sums[filled] = np.add.reduceat(values, offsets(counts)[:-1][filled], axis=0)
    return sums
