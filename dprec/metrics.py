"""How accurate predictions and ranked lists are: figures, user-defined metrics, and intervals over users.

A test rating makes its item relevant or not; an item without one counts as not relevant, although the user
may like it. So the metrics compare lists with each other and do not estimate what users enjoy. Predicted
ratings order what users would like after choosing it, and so rank poorly over a whole catalogue (Cremonesi et
al. [cremonesi2010]).

The users are drawn again with replacement, all ratings of a user together, since they share the user's
profile and noise. Figures that are compared use the same draws, so what makes a user hard to predict for
both does not count (Efron and Tibshirani [efron1993]; chapter 13 has the percentile interval).
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Ints, find, places_of
from dprec.components import imported_function
from dprec.errors import InputError, RunError, SettingError, one_line
from dprec.randomness import generator
from dprec.ratings import Ratings


@dataclass(frozen=True, eq=False)
class RankedHits:
    """Where the relevant items are in the users' lists."""

    lists: AnyInts
    """Recommended items, the best first; negative after the last one of a short list; shape (users, length).
    """
    hits: Bools
    """Which of them are relevant; shape (users, length)."""
    relevant: Ints
    """Relevant items of each user, listed or not; at least 1; shape (users,)."""

    @classmethod
    def of(cls, lists: AnyInts, users: AnyInts, relevant: Ratings) -> Self:
        """Compare lists with the relevant test ratings.

        Parameters
        ----------
        lists : ndarray of int, shape (users, length)
        users : ndarray of int, shape (users,)
            Whose lists they are: users with a relevant rating, each once.
        relevant : Ratings
            The test ratings that make an item relevant.
        """
        return cls(lists, _listed_cells(lists, users, relevant), relevant.counts[users])

    @property
    def length(self) -> int:
        """Length of the lists."""
        return int(self.hits.shape[1])

    def ndcg(self, cutoff: int) -> Floats:
        """Return each user's normalised discounted cumulative gain, shape (users,), from 0 to 1.

        A relevant item at rank r gains 1 / log2(1 + r), divided by what the best list gains (Järvelin and
        Kekäläinen [jarvelin2002], section 2.2, with binary gains and the logarithm's argument moved by one).
        """
        gains = 1 / np.log2(np.arange(2, cutoff + 2))
        ideal = np.cumsum(gains)[np.minimum(self.relevant, cutoff) - 1]
        ndcg: Floats = self.hits[:, :cutoff] @ gains[: self.length] / ideal
        return ndcg

    def hit_rate(self, cutoff: int) -> Floats:
        """Return 1 for each user with a relevant item among the first ones, else 0."""
        return (self._hits_until(cutoff) > 0).astype(np.float64)

    def mrr(self, cutoff: int) -> Floats:
        """Return one over the rank of each user's first relevant item; 0 if it is beyond the cutoff."""
        hits = self.hits[:, :cutoff]
        if not self.length:
            return np.zeros(len(hits))
        return np.where(self._hits_until(cutoff) > 0, 1 / (1 + hits.argmax(axis=1)), 0.0)

    def recall(self, cutoff: int) -> Floats:
        """Return the share of each user's relevant items that are among the first ones."""
        recall: Floats = self._hits_until(cutoff) / self.relevant
        return recall

    def precision(self, cutoff: int) -> Floats:
        """Return the share of each user's first places that a relevant item fills."""
        precision: Floats = self._hits_until(cutoff) / cutoff
        return precision

    def _hits_until(self, cutoff: int) -> Ints:
        hits: Ints = self.hits[:, :cutoff].sum(axis=1, dtype=np.int64)
        return hits

    def distinct_items(self, cutoff: int) -> int:
        """Return how many different items anybody is recommended."""
        first = self.lists[:, :cutoff]
        return np.unique(first[first >= 0]).size


USER_METRICS = {
    "ndcg": RankedHits.ndcg,
    "hit_rate": RankedHits.hit_rate,
    "mrr": RankedHits.mrr,
    "recall": RankedHits.recall,
    "precision": RankedHits.precision,
}
"""The metrics that are means over users."""


def ranking_figures(
    ranked: RankedHits, cutoffs: Sequence[int], n_items: int
) -> dict[str, dict[int, float | None]]:
    """Return every metric at every cutoff: the means over users, and the share of items that are listed.

    Parameters
    ----------
    cutoffs : sequence of int
        At least 1 each.
    n_items : int
        Items that might be recommended.

    Returns
    -------
    dict
        The keys of `USER_METRICS` and ``coverage``; None where there is no user.
    """
    users = len(ranked.hits)
    figures: dict[str, dict[int, float | None]] = {
        name: {k: float(np.mean(metric(ranked, k))) if users else None for k in cutoffs}
        for name, metric in USER_METRICS.items()
    }
    figures["coverage"] = {k: ranked.distinct_items(k) / n_items if users else None for k in cutoffs}
    return figures


def _listed_cells(lists: AnyInts, users: AnyInts, ratings: Ratings) -> Bools:
    """Return which places of users' lists hold an item that the user has a rating for, shape of the lists."""
    listed = lists >= 0
    _, present = find(ratings.cells, (users.astype(np.int64)[:, None] * ratings.n_items + lists)[listed])
    rated = np.zeros(listed.shape, dtype=np.bool_)
    rated[listed] = present
    return rated


@dataclass(frozen=True)
class RankingAccuracy:
    """Accuracy of the k items that a user would be recommended."""

    precision: float | None
    recall: float | None
    """Means over the users for whom they are defined; None when there is no such user."""
    f_score: float | None
    """Harmonic mean of the two."""


def root_mean_squared_error(predictions: Floats, truth: Floats) -> float:
    """Return sqrt(mean((prediction - rating)^2))."""
    return float(np.sqrt(np.mean((predictions - truth) ** 2)))


def mean_absolute_error(predictions: Floats, truth: Floats) -> float:
    """Return mean(abs(prediction - rating))."""
    return float(np.mean(np.abs(predictions - truth)))


def sign_accuracy(predictions: Floats, truth: Floats) -> float:
    """Return the share of ratings of -1 and +1 whose sign is predicted; a prediction of 0 is +1."""
    return float(np.mean((predictions >= 0) == (truth > 0)))


def ranking_accuracy(
    predictions: Floats, test: Ratings, train: Ratings, k: int, relevant_from: float | None = None
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
    lists: AnyInts, users: AnyInts, test: Ratings, train: Ratings, relevant_from: float | None = None
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
    hits = _listed_cells(lists, users, relevant)
    return _ranking(hits.sum(axis=1), (lists >= 0).sum(axis=1), relevant.counts[users])


def relevant_ratings(test: Ratings, train: Ratings, relevant_from: float | None = None) -> Ratings:
    """Return the test ratings that make an item relevant; the arguments are those of `ranking_accuracy`."""
    return test.select(_relevant(test, train, relevant_from))


def _relevant(test: Ratings, train: Ratings, relevant_from: float | None) -> Bools:
    if relevant_from is not None:
        return test.values >= relevant_from
    tested = np.flatnonzero(test.counts)
    relevant: Bools = test.values >= np.repeat(train.user_means(tested), test.counts[tested])
    return relevant


def _ranking(hits: AnyArray, recommended: AnyArray, wanted: AnyArray) -> RankingAccuracy:
    """Return the means over users of what their hits are a share of."""
    precision = _mean_ratio(hits, recommended)
    recall = _mean_ratio(hits, wanted)
    if precision is None or recall is None:
        return RankingAccuracy(precision, recall, None)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return RankingAccuracy(precision, recall, f_score)


def _mean_ratio(numerators: AnyArray, denominators: AnyArray) -> float | None:
    defined = denominators > 0
    if not defined.any():
        return None
    return float(np.mean(numerators[defined] / denominators[defined]))


ACCEPTED = "a function of ratings and predictions, and perhaps users and items, that returns a finite number"


def name_of(reference: str) -> str:
    """Return the name under which results hold a metric: that of its function."""
    return re.split("[:.]", reference)[-1]


def check_names(references: Sequence[str]) -> None:
    """Refuse functions that cannot be imported, or two of one name.

    Raises SettingError without a key.
    """
    names = [name_of(reference) for reference in references]
    for name, reference in zip(names, references, strict=True):
        imported_function(reference)
        if names.count(name) > 1:
            raise SettingError("", f"two functions named {name}", "functions of different names")


def metric(reference: str, test: Ratings, predictions: Floats) -> float:
    """Return what a user-defined metric says of some predictions.

    Parameters
    ----------
    reference : str
        ``module:function``. It is called with the true ratings and the predictions, float64 of shape (test
        ratings,), and with their users' and items' identifiers if it has parameters named users and items.
    predictions : ndarray of float64, shape (test ratings,)

    Raises
    ------
    InputError
        Naming the function, when it raises an exception or returns anything but a finite number.
    """
    function = imported_function(reference)
    try:
        identifiers = {"users": test.user_ids[test.users], "items": test.item_ids[test.items]}
        wanted = {name: identifiers[name] for name in _parameters(function) if name in identifiers}
        # Copies, since a user-defined function may sort in place.
        value = function(test.values.copy(), predictions.copy(), **wanted)
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        raise InputError(reference, f"{type(error).__name__}: {one_line(error)}", ACCEPTED) from error
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
        found = f"it returned {value}" if isinstance(value, Real) else f"it returned a {type(value).__name__}"
        raise InputError(reference, found, ACCEPTED)
    return float(value)


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of functions that are not written in Python
        return []


CONFIDENCE = 0.95
"""Probability with which an interval is meant to hold."""

REPLICATES = 2000
"""Times that the users are drawn again: the ends of an interval are then off by a few hundredths of it."""

_SEED = 0
_CELLS_AT_ONCE = 1 << 22


def resampled_sums(sums: Floats, replicates: int = REPLICATES) -> Floats:
    """Return the totals over users who are drawn again, shape (replicates, columns).

    Parameters
    ----------
    sums : ndarray of float64, shape (users, columns)
        What each user adds to each total.

    Notes
    -----
    The draws depend on the number of users alone, so totals of two calls are paired.
    """
    users = len(sums)
    random, totals = generator(_SEED, "users drawn again"), np.empty((replicates, sums.shape[1]))
    at_once = max(1, _CELLS_AT_ONCE // users)
    for start in range(0, replicates, at_once):
        count = min(at_once, replicates - start)
        drawn = random.integers(0, users, size=(count, users)) + np.arange(count)[:, None] * users
        times = np.bincount(drawn.ravel(), minlength=count * users).reshape(count, users)
        totals[start : start + count] = times.astype(np.float64) @ sums
    return totals


def interval(replicated: Floats) -> tuple[float, float]:
    """Return the ends of the middle 95 % of the replicates (the percentile interval).

    Parameters
    ----------
    replicated : ndarray of float64, shape (replicates,)
        A replicate without a value, NaN, is left out.
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(replicated, [tail, 1 - tail])
    return float(low), float(high)
