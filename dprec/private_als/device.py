"""The device's part of a round: which ratings it chooses, and what it contributes for them.

A device fits its user's level and factors to all its ratings, for itself and for whoever adds up. All that
others see are sums with noise; what a device predicts from its own ratings, nobody else sees, so the privacy
is joint: of each user against all the others (Chien et al. [chien2021], section 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import offsets, places_of
from dprec.completion import Profiles, solve_user_factors
from dprec.private_als.device import FactorizationOptions, ItemModel
from dprec.private_als.statistics import TARGET_BITS, Contributions, StatisticsLayout
from dprec.randomness import uniforms

_BELOW_ONE = 1 - 1e-6
"""What factors are clipped to, so that their norm is below 1 in single precision too."""


def contributions_of(
    profiles: Profiles,
    model: ItemModel,
    options: FactorizationOptions,
    layout: StatisticsLayout,
    round_index: int,
    random_words: NDArray[np.uint64],
) -> Contributions:
    """Return what the users of a partition contribute to a round.

    Parameters
    ----------
    model : ItemModel
        What the devices were sent.
    layout : StatisticsLayout
        Of the round.
    round_index : int
        From 1.
    random_words : ndarray of uint64, shape (ratings,)
        The devices' own, by which they choose ratings.
    """
    # Effects are estimated as a whole in each of their rounds, factors from what effects leave.
    users = profiles.users
    residuals = profiles.values - model.mean - model.biases[profiles.items]
    if round_index <= options.bias_rounds:
        candidates, places = np.ones(users.size, dtype=np.bool_), np.arange(profiles.n_items)
        factors = np.ones((profiles.n_users, 1), dtype=np.float32)
        # The first round estimates the mean, so it takes ratings as they are.
        levels = own_levels(profiles, residuals, options) if round_index > 1 else np.zeros(profiles.n_users)
        residuals = residuals + model.biases[profiles.items]
    else:
        candidates, places = model.popular[profiles.items], np.cumsum(model.popular) - 1
        levels, own = own_factors(profiles, residuals, model, options)
        factors = clipped(own * model.gain)
    chances = model.weights[profiles.items] if options.sampling == "tail" else np.zeros_like(users)
    chosen = chosen_ratings(profiles, candidates, chances, options.ratings_per_user, random_words)
    targets = (residuals - levels[users])[chosen] / layout.clip
    return Contributions(
        offsets(np.bincount(users[chosen], minlength=profiles.n_users)),
        places[profiles.items[chosen]].astype(np.int32),
        np.trunc(np.clip(targets, -1, 1) * 2.0**TARGET_BITS).astype(np.int64),
        factors,
    )


def chosen_ratings(
    profiles: Profiles,
    candidates: NDArray[np.bool_],
    weights: NDArray[np.int64],
    limit: int,
    random_words: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Return the places of at most ``limit`` ratings of each user, ascending.

    They are drawn one after the other in proportion to their weights, which gives the ``limit`` smallest of
    exponential variables of these rates (Efraimidis and Spirakis [efraimidis2006]).

    Parameters
    ----------
    candidates : ndarray of bool, shape (ratings,)
        What may be drawn.
    weights : ndarray of int64, shape (ratings,)
        0 counts as 1.
    random_words : ndarray of uint64, shape (ratings,)
    """
    users, cells = profiles.users, np.flatnonzero(candidates)
    counts = np.bincount(users[cells], minlength=profiles.n_users)
    if (counts <= limit).all():
        return cells
    times = -np.log1p(-uniforms(random_words[cells])) / np.maximum(weights[cells], 1)
    order = cells[np.lexsort((times, users[cells]))]
    return np.sort(order[places_of(counts) < limit])


def own_levels(
    profiles: Profiles, residuals: NDArray[np.float64], options: FactorizationOptions
) -> NDArray[np.float64]:
    """Return how far each user rates above the items' effects, shrunk, shape (users,)."""
    sums = np.bincount(profiles.users, residuals, minlength=profiles.n_users)
    levels: NDArray[np.float64] = sums / (np.diff(profiles.indptr) + options.level_ridge)
    return levels


def own_factors(
    profiles: Profiles, residuals: NDArray[np.float64], model: ItemModel, options: FactorizationOptions
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the level and the factors that fit each user's ratings, shapes (users,) and (users, rank)."""
    of_items = with_level(model.all_factors, options.search_ridge, options.level_ridge)
    residual = Profiles(profiles.indptr, profiles.items, residuals, profiles.n_items)
    solved = solve_user_factors(residual, of_items, options.search_ridge)
    return solved[:, 0] * of_items[0, 0], solved[:, 1:]


def with_level(factors: NDArray[np.float64], ridge: float, level_ridge: float) -> NDArray[np.float64]:
    """Return item factors with a constant before them, of which users fit a multiple as their level.

    The constant is such that the ridge of the factors shrinks the level by ``level_ridge``.
    """
    constant = np.full((len(factors), 1), np.sqrt(ridge / level_ridge))
    return np.hstack([constant, factors])


def clipped(factors: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return factors whose norm is at most 1, shape (users, rank)."""
    norms = np.linalg.norm(factors, axis=1, keepdims=True)
    scale: NDArray[np.float64] = np.minimum(1.0, _BELOW_ONE / np.maximum(norms, np.finfo(float).tiny))
    bounded = np.where(np.isfinite(norms), factors * scale, 0.0)
    return bounded.astype(np.float32)
