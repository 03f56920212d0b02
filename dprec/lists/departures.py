"""How far pairs of items depart from what popularity explains, and what is made of a table by that.

Without tastes, a pair is the product of a number for each of its items. What pairs vary by around such
products, beyond noise and sampling, are tastes: a table that shows none is no reason to rank otherwise than
by popularity, and one in which sampling hides them wants more of a ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dprec.arrays import Floats
from dprec.lists.gram import items_of, off_diagonal, symmetric_table

_UNEVEN = 0.02
"""What sets without tastes depart by: those with many items have more of the unpopular ones."""

_MOST_HAVING = 0.95
"""Of the users, who have an item at most."""

_LEAST = 0.1
"""Least factor of an item, of the mean."""

_STEPS_OF_FACTORS, _STEPS_OF_NEWTON = 60, 20

_SMALLEST_TOTAL = 1e-6
"""Least that users add to pairs, in the mean."""

_TINY = 1e-300

_ERRORS, _UNSURE = 0.25, 0.2
"""Standard errors, and part of `Departure.sampling`, that are no reason to rank by a table: sampling may be
another than is told, as where popularity is known by few users.
"""

_RIDGE_OF_SAMPLING = 0.06
"""A ridge over the users, where pairs vary by sampling as they do by tastes."""

_MOST_RIDGE = 30.0
"""What sampling makes of a ridge at most."""

_LEAST_RIDGE = 4.5e-4
"""Least ridge without noise, over the geometric mean of the users and of what they add to the table."""

_RIDGE_OF_NOISE = 7.0
"""What a ridge has besides, over the deviation of a cell's noise."""


@dataclass(frozen=True)
class Departure:
    """How far pairs depart from what popularity explains."""

    variance: float
    """Of the ratios of pairs to it, less that of noise and sampling: about 0, or below, without tastes."""
    error: float
    """Standard error of that variance where there are no tastes."""
    sampling: float
    """What sampling alone would have ratios vary by, which is no part of the variance."""

    @property
    def lower_bound(self) -> float:
        """What of the variance is beyond a part of its error, and beyond what may be more of sampling.

        It is below 0 for most tables without tastes.
        """
        return self.variance - _ERRORS * self.error - _UNSURE * self.sampling


def departure_of_sum(noisy: Floats, deviation: float, users: int, most: float = 1.0) -> Departure:
    """Return the departure of a noisy sum of pairs, less what uneven sets make of its variance.

    For ``noisy`` and ``deviation`` see `dprec.lists.gram.denoised_table`; ``users`` contributed to it, with
    norm 1 at most, and ``most`` to a pair.
    """
    items = items_of(noisy.size)
    cells = noisy[off_diagonal(items)]
    # Who has several items of the table adds about the root of 2 to the cells of each with all others.
    having = symmetric_table(cells, items).sum(axis=1) / (math.sqrt(2) * users)
    weight = min(_weight_of_pairs(float(cells.sum()), users), most)
    departed = departure(cells, deviation**2, weight, having)
    # Sets of all sizes weigh alike as far as small ones add more to a pair.
    return replace(departed, variance=departed.variance - _UNEVEN * most)


def _weight_of_pairs(total: float, users: int) -> float:
    """Return what a user adds to a pair, in the mean, given what all users add to all of them; at most 1.

    The squares of it add up to the users who have a pair. So many would if numbers of items had a Poisson
    distribution, of which about the root of 2 times the total is what is beyond the first item; they are
    fewer where some have many more items than others.
    """
    total = max(total, _SMALLEST_TOTAL * users)
    beyond = math.sqrt(2) * total / users
    mean = beyond + 1
    for _ in range(_STEPS_OF_NEWTON):
        mean -= (mean - 1 + math.exp(-mean) - beyond) / (1 - math.exp(-mean))
    with_pairs = 1 - (1 + mean) * math.exp(-mean)
    return min(users * with_pairs / total, 1.0)


def departure(cells: Floats, noise: Floats | float, weight: float, having: Floats) -> Departure:
    """Return how far pairs depart from what popularity explains.

    Pairs count by the inverse of the variance with which they tell it.

    Parameters
    ----------
    cells : ndarray, shape (pairs,)
        Noisy sums over the users who have both items: the upper triangle by rows, without the diagonal.
    noise : ndarray, shape (pairs,), or float
        The variance of their noise, above 0.
    weight : float
        What a user adds to a cell, in the mean, above 0.
    having : ndarray, shape (items,)
        Part of the users who have an item; clipped.
    """
    rows, columns = np.triu_indices(having.size, 1)
    factors = _factors(np.maximum(symmetric_table(cells, having.size).sum(axis=1), 0.0))
    expected = factors[rows] * factors[columns]
    # Who has an item hardly varies where nearly all have it, and neither do its pairs.
    lacking = 1 - np.clip(having, 0.0, _MOST_HAVING)
    varying = weight * lacking[rows] * lacking[columns]
    variances = noise + varying * expected
    precisions = (expected / variances) ** 2
    total = max(float(precisions @ expected**2), _TINY)
    variance = float(precisions @ ((cells - expected) ** 2 - variances)) / total
    # Ratios count as they would without noise, by the squares of these.
    weights = expected / varying
    sampling = float(weights.sum()) / max(float(weights @ weights), _TINY)
    return Departure(variance, math.sqrt(2 / total), sampling)


def _factors(sums: Floats) -> Floats:
    """Return a number for each item, whose products with those of all others add up to given sums.

    They have a least, a part of their mean. Shape (items,).
    """
    factors = sums / math.sqrt(max(float(sums.sum()), _TINY))
    for _ in range(_STEPS_OF_FACTORS):
        others = np.maximum(factors.sum() - factors, _LEAST * factors.mean() + _TINY)
        factors = (factors + sums / others) / 2
        factors = np.maximum(factors, _LEAST * factors.mean())
    return factors


def ridge_of(noisy: Floats, deviation: float, users: int, departed: Departure) -> float:
    """Return the ridge of the regression of items on items, for contributions of norm 1.

    Weights between items vary as ratios of pairs do, and the more sampling there is beside tastes, the more
    of a ridge they want; twice the users have half the sampling, and want the same. Few pairs, and very many
    users, set it bounds. `benchmarks/choosing/list_settings.py` judges it; for the arguments see
    `departure_of_sum`.
    """
    by_sampling = _RIDGE_OF_SAMPLING * users * departed.sampling / max(departed.variance, _TINY)
    least = _LEAST_RIDGE * math.sqrt(users * max(float(noisy.sum()), users))
    return max(min(by_sampling, _MOST_RIDGE), least) + _RIDGE_OF_NOISE * deviation
