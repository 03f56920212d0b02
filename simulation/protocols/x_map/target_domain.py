"""Recommendation in the target domain, from the users' own ratings there and from their AlterEgos."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import rows_of
from dprec.completion import Observations
from dprec.crossdomain import (
    AlterEgos,
    CrossDomainRatings,
    ItemBasedRecommender,
    RatedItems,
    RecommendationOptions,
    SimilarityKind,
)
from dprec.predictions import Predict


def target_recommender(
    observed: Observations,
    egos: AlterEgos,
    train: CrossDomainRatings,
    options: RecommendationOptions,
    *,
    similarity: SimilarityKind,
    deviations: bool,
    seed: int,
) -> ItemBasedRecommender:
    """Return the recommender for target items.

    Items are compared by the ratings that were received for them; a user's profile holds the user's own
    ratings in the target domain, and the AlterEgo.

    Parameters
    ----------
    observed : Observations
        What was received, of both domains.
    train : CrossDomainRatings
        Only the bounds of the domains are used, not the ratings.
    similarity : {"adjusted-cosine", "cosine"}
    deviations : bool
        Whether AlterEgos hold deviations from the items' means rather than ratings.
    """
    start, stop = train.target_start, train.target_stop
    own = (observed.items >= start) & (observed.items < stop)
    users, targets, values = observed.users[own], observed.items[own] - start, observed.values[own]
    shape = (train.n_users, train.n_targets)
    received = sp.coo_array((values, (users, targets)), shape=shape).tocsr()
    items = RatedItems.of(received, similarity, options.prior_ratings)
    made_for = rows_of(np.diff(egos.indptr))
    made = egos.values if deviations else egos.values - items.means[egos.targets]
    profiles = sp.coo_array(
        (
            np.concatenate([values - items.means[targets], made]),
            (np.concatenate([users, made_for]), np.concatenate([targets, egos.targets])),
        ),
        shape=shape,
    ).tocsr()
    return ItemBasedRecommender(options, similarity, items, profiles, seed)


def predictor(
    recommender: ItemBasedRecommender, means: NDArray[np.float64], train: CrossDomainRatings
) -> Predict:
    """Return a predictor for all items; a source item is predicted by its mean.

    Parameters
    ----------
    means : ndarray of float64, shape (items,)
    train : CrossDomainRatings
        Only the bounds of the domains are used.
    """

    def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        predictions: NDArray[np.float64] = means[items].copy()
        wanted = np.flatnonzero((items >= train.target_start) & (items < train.target_stop))
        predictions[wanted] = recommender.predict(users[wanted], items[wanted] - train.target_start)
        return predictions

    return predict
