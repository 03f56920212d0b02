"""How far the mechanisms of Zheng [zheng2016] move the data: the bounds of his Theorem 3."""

from __future__ import annotations

import math

from dprec.errors import InputError


def modified_laplace_bound(
    users: int, items: int, ratings: int, epsilon: float, tolerance: float, rating_noise: float = 0.0
) -> float:
    """Bound the error of the modified Laplace mechanism's reports (Zheng [zheng2016], Theorem 3, Eq. 6).

    The error is rho = ||P(Theta - Z)||_F over the cells that are shown, with Theta the true ratings of
    all cells, rated or not, and Z what is sent.

    Parameters
    ----------
    users, items, ratings : int
        Size of the catalogue and number of cells that are rated.
    epsilon : float
        Budget per cell.
    tolerance : float
        Probability with which the bound may fail, between 0 and 1 (gamma in the paper).
    rating_noise : float
        Root mean square difference between the ratings given and the true ones (rho_0).

    Returns
    -------
    float
        In the units of ratings scaled to [-1, 1]; multiply by half the width of a scale for others.

    Raises
    ------
    InputError
        When an argument is out of range.
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
    """Bound the error of randomized response's reports (Zheng [zheng2016], Theorem 3, Eq. 7).

    Parameters
    ----------
    levels : int
        Number of levels of the scale, d; they are 1, 2, ..., d.
    users, items, ratings, epsilon, tolerance, rating_noise
        As for `modified_laplace_bound`.

    Returns
    -------
    float
        In levels; multiply by the step of an evenly spaced scale for rating units.

    Raises
    ------
    InputError
        When an argument is out of range.
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
