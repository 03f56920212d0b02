"""What papers derive of the noise of their mechanisms: its scale, its distribution, how far it moves data.

The bounded Laplace mechanism: Neera et al. [neera2023], Sections 4.1.1 and 4.1.2. The conditional
probabilities printed under Eqs. (4) and (5) lack the scale inside the exponent and the distance from the
rating; here they are integrals of the density of Definition 5. Zheng's mechanisms: [zheng2016], Theorem 3.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dprec.arrays import Floats
from dprec.errors import InputError


def normalisation(ratings: ArrayLike, low: float, high: float, b: float) -> Floats:
    """Return C(r), the mass that Laplace(r, b) has on [low, high] (Neera et al. [neera2023], Lemma 1)."""
    r = np.asarray(ratings, dtype=np.float64)
    mass: Floats = -(np.expm1(-(r - low) / b) + np.expm1(-(high - r) / b)) / 2
    return mass


def normalisation_ratio(low: float, high: float, b: float, sensitivity: float) -> float:
    """Return Delta C = C(low + sensitivity) / C(low) (Neera et al. [neera2023], after Lemma 2)."""
    ends = normalisation([low, low + sensitivity], low, high, b)
    return float(ends[1] / ends[0])


def least_scale(low: float, high: float, epsilon: float, sensitivity: float | None = None) -> float:
    """Return the least b >= sensitivity / (epsilon - log Delta C) (Neera et al. [neera2023], Theorem 1).

    Delta C depends on b, so this is the root of an equation, unless the sensitivity is the whole scale, where
    Delta C = 1. Raises InputError when the budget is not positive or the sensitivity does not fit the scale.
    """
    width = high - low
    distance = width if sensitivity is None else sensitivity
    if not epsilon > 0:
        raise InputError("epsilon", str(epsilon), "greater than 0")
    if not 0 < distance <= width:
        raise InputError("sensitivity", str(distance), f"above 0, at most {width:g}")
    least = distance / epsilon
    if distance == width:
        return least

    def excess(b: float) -> float:
        return distance / b + float(np.log(normalisation_ratio(low, high, b, distance))) - epsilon

    # Delta C <= 2 / (1 + e^(-width / 2b)) <= e^(width / 4b) bounds the root from above.
    return float(brentq(excess, least, (distance + width / 4) / epsilon, xtol=1e-12, rtol=1e-14))


def interval_probabilities(
    edges: ArrayLike, ratings: ArrayLike, shares: ArrayLike, low: float, high: float, b: float
) -> Floats:
    """Return the probability of the noise between adjacent edges (Neera et al. [neera2023], Eqs. 4 and 5).

    The paper's intervals have the differences between levels as their edges.
    """
    r, weights = _mixture(ratings, shares, low, high)
    n = np.clip(np.asarray(edges, dtype=np.float64)[:, None], low - r, high - r)
    # The integral of the density from 0 to n, for n of either sign.
    integral = -np.sign(n) * np.expm1(-np.abs(n) / b) / (2 * normalisation(r, low, high, b))
    probabilities: Floats = np.diff(integral, axis=0) @ weights
    return probabilities


def _mixture(ratings: ArrayLike, shares: ArrayLike, low: float, high: float) -> tuple[Floats, Floats]:
    r = np.asarray(ratings, dtype=np.float64)
    weights = np.asarray(shares, dtype=np.float64)
    if np.any((r < low) | (r > high)):
        raise InputError("ratings", f"{r.min():g} to {r.max():g}", f"{low:g} to {high:g}")
    if r.shape != weights.shape or np.any(weights < 0) or not weights.sum() > 0:
        raise InputError("shares", str(weights.tolist()), "one non-negative share per rating")
    return r, weights / weights.sum()


def modified_laplace_bound(
    users: int, items: int, ratings: int, epsilon: float, tolerance: float, rating_noise: float = 0.0
) -> float:
    """Bound the error of the modified Laplace mechanism's reports (Zheng [zheng2016], Theorem 3, Eq. 6).

    The error is rho = ||P(Theta - Z)||_F over the cells that are shown, with Theta the true ratings of all
    cells, rated or not, and Z what is sent; in the units of ratings scaled to [-1, 1]. ``tolerance``:
    probability with which the bound may fail (gamma); ``rating_noise``: root mean square difference between
    the ratings given and the true ones (rho_0). Raises InputError when an argument is out of range.
    """
    _check(users, items, ratings, epsilon, tolerance)
    m, n, s, gamma = users, items, ratings, tolerance
    truly_rated = 4 / epsilon * math.sqrt(s / gamma)
    made_up = math.sqrt(2 * m * n / ((math.exp(epsilon / 2) + 1) * gamma) * (1 + 8 / epsilon**2))
    return rating_noise * math.sqrt(s) + truly_rated + made_up


def randomized_response_bound(
    users: int,
    items: int,
    ratings: int,
    levels: int,
    epsilon: float,
    tolerance: float,
    rating_noise: float = 0.0,
) -> float:
    """Bound the error of randomized response's reports, in levels (Zheng [zheng2016], Theorem 3, Eq. 7).

    The levels are 1, 2, ..., d; all else is as for `modified_laplace_bound`.
    """
    _check(users, items, ratings, epsilon, tolerance)
    if levels < 2:
        raise InputError("levels", str(levels), "at least 2")
    m, n, s, d, gamma = users, items, ratings, levels, tolerance
    changed = 2 * (d - 1) * math.sqrt(2 * m * n * d / ((math.exp(epsilon) + d) * gamma))
    return rating_noise * math.sqrt(s) + changed


def _check(users: int, items: int, ratings: int, epsilon: float, tolerance: float) -> None:
    if not 0 <= ratings <= users * items:
        raise InputError("ratings", str(ratings), f"0 to {users * items}, users times items")
    if not epsilon > 0:
        raise InputError("epsilon", str(epsilon), "greater than 0")
    if not 0 < tolerance < 1:
        raise InputError("tolerance", str(tolerance), "between 0 and 1")
