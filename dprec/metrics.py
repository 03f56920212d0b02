"""How accurate predictions are, measured against the true ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import places_of
from dprec.metrics import listed_cells
from dprec.ratings import Ratings


@dataclass(frozen=True)
class RankingAccuracy:
    """Accuracy of the k items that a user would be recommended."""

    precision: float | None
    recall: float | None
    """Means over the users for whom they are defined; None when there is no such user."""
    f_score: float | None
    """Harmonic mean of the two."""


def root_mean_squared_error(predictions: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return sqrt(mean((prediction - rating)^2))."""
    return float(np.sqrt(np.mean((predictions - truth) ** 2)))


def mean_absolute_error(predictions: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return mean(abs(prediction - rating))."""
    return float(np.mean(np.abs(predictions - truth)))


def sign_accuracy(predictions: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return the share of ratings of -1 and +1 whose sign is predicted; a prediction of 0 is +1."""
    return float(np.mean((predictions >= 0) == (truth > 0)))


def ranking_accuracy(
    predictions: NDArray[np.float64],
    test: Ratings,
    train: Ratings,
    k: int,
    relevant_from: float | None = None,
) -> RankingAccuracy:
    """Rank each user's test items by prediction and compare the first k with the relevant ones.

    Parameters
    ----------
    predictions : ndarray of float64, shape (test ratings,)
    test, train : Ratings
        In the same identifier spaces.
    k : int
        Length of the list; a user with fewer test items is recommended all of them.
    relevant_from : float, optional
        A test rating of at least this is relevant; by default, the user's mean train rating, or the mean of
        all train ratings for a user without any.

    Notes
    -----
    Equal predictions rank in the order of the items. Precision averages over the users with a test
    rating, recall over those with a relevant one (Neera et al. [neera2023], section 5.2, Table 3).
    """
    relevant = _relevant(test, train, relevant_from)
    # Users are contiguous in the ratings, so the ranking keeps each user's stretch in place.
    ranking = np.lexsort((test.items, -predictions, test.users))
    ranks = places_of(test.counts)
    hits = np.bincount(test.users, weights=relevant[ranking] & (ranks < k), minlength=test.n_users)
    recommended = np.minimum(test.counts, k)
    wanted = np.bincount(test.users, weights=relevant, minlength=test.n_users)
    return _ranking(hits, recommended, wanted)


def recommendation_accuracy(
    lists: NDArray[np.integer],
    users: NDArray[np.integer],
    test: Ratings,
    train: Ratings,
    relevant_from: float | None = None,
) -> RankingAccuracy:
    """Compare recommended items with the relevant test items.

    Parameters
    ----------
    lists : ndarray of int, shape (users, length)
        Items recommended to each user, from whatever candidates; -1 after the last one of a short list.
    users : ndarray of int, shape (users,)
        Those with a test rating, each once.
    test, train, relevant_from
        As in `ranking_accuracy`.

    Notes
    -----
    An item without a test rating counts as not relevant, although the user may like it. So precision is far
    lower than over test items alone and compares lists, not users' satisfaction.
    """
    relevant = relevant_ratings(test, train, relevant_from)
    hits = listed_cells(lists, users, relevant)
    return _ranking(hits.sum(axis=1), (lists >= 0).sum(axis=1), relevant.counts[users])


def relevant_ratings(test: Ratings, train: Ratings, relevant_from: float | None = None) -> Ratings:
    """Return the test ratings that make an item relevant; the arguments are those of `ranking_accuracy`."""
    return test.select(_relevant(test, train, relevant_from))


def _relevant(test: Ratings, train: Ratings, relevant_from: float | None) -> NDArray[np.bool_]:
    if relevant_from is not None:
        return test.values >= relevant_from
    tested = np.flatnonzero(test.counts)
    relevant: NDArray[np.bool_] = test.values >= np.repeat(train.user_means(tested), test.counts[tested])
    return relevant


def _ranking(hits: NDArray[Any], recommended: NDArray[Any], wanted: NDArray[Any]) -> RankingAccuracy:
    """Return the means over users of what their hits are a share of."""
    precision = _mean_ratio(hits, recommended)
    recall = _mean_ratio(hits, wanted)
    if precision is None or recall is None:
        return RankingAccuracy(precision, recall, None)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return RankingAccuracy(precision, recall, f_score)


def _mean_ratio(numerators: NDArray[Any], denominators: NDArray[Any]) -> float | None:
    defined = denominators > 0
    if not defined.any():
        return None
    return float(np.mean(numerators[defined] / denominators[defined]))
