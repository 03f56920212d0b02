"""What a device predicts without sending anything: the average of its own ratings."""

from __future__ import annotations

import numpy as np

from dprec.arrays import offsets
from dprec.completion.averages import Averages
from dprec.ratings import Ratings, RatingScale

_LEVELS_OF_MEANS = 201
"""Levels of the scale on which means are sent: 8 bits, the middle of the rating scale among them."""


def own_averages(train: Ratings, prior: float, prior_ratings: float) -> Averages:
    """Predict every rating of a user by the mean of the user's own, shrunk towards a public prior.

    Parameters
    ----------
    train : Ratings
        What the devices hold; the ratings of both domains where there are two.
    prior : float
        What is expected of a user without ratings, in rating units.
    prior_ratings : float
        How many ratings the prior counts for, from 0.

    Returns
    -------
    Averages
        Of user u with n ratings, ``(sum of the ratings + w prior) / (n + w)``, w being
        ``prior_ratings``; the prior itself where n + w is 0.
    """
    sums = np.bincount(train.users, weights=train.values, minlength=train.n_users)
    weights = train.counts + prior_ratings
    informed = weights > 0
    means = np.full(train.n_users, prior)
    means[informed] = (sums + prior_ratings * prior)[informed] / weights[informed]
    without = int((train.counts == 0).sum())
    return Averages(means, by_item=False, diagnostics={"prior": prior, "users_without_ratings": without})


def one_mean_per_user(train: Ratings) -> Ratings:
    """Return every user's mean as that user's rating of the only item of a catalogue.

    Returns
    -------
    Ratings
        On a continuous scale of the same range with 201 levels, so that any mechanism can send a mean. A
        user without ratings has no mean.
    """
    scale = RatingScale(np.linspace(train.scale.low, train.scale.high, _LEVELS_OF_MEANS), continuous=True)
    rated = train.counts > 0
    means = train.user_means()[rated]
    return Ratings(
        indptr=offsets(rated.astype(np.int64)),
        items=np.zeros(means.size, dtype=np.int32),
        levels=scale.level_of(means),
        scale=scale,
        user_ids=train.user_ids,
        item_ids=np.zeros(1, dtype=np.int64),
        exact=means,
    )
