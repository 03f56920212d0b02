"""What a device predicts without sending anything: the average of its own ratings."""

from __future__ import annotations

import numpy as np

from dprec.completion.averages import Averages
from dprec.ratings import Ratings


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
