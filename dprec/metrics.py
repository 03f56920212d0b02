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
from numpy.typing import ArrayLike

from dprec.arrays import (
    AnyArray,
    AnyInts,
    Bools,
    Floats,
    Ints,
    blocks,
    find,
    places_of,
    sortable,
    sum_of_parts,
    true_of_rows,
)
from dprec.components import imported_function
from dprec.errors import InputError, RunError, SettingError, one_line
from dprec.randomness import generator
from dprec.ratings import Ratings, held_by_tested, least_of_rows


@dataclass(frozen=True, eq=False)
class Hits:
    """At which places of users' lists an item is relevant."""

    hits: Bools
    """Shape (users, length)."""
    relevant: Ints
    """Relevant items of each user, listed or not; at least 1; shape (users,)."""

    @classmethod
    def at(cls, ranks: Floats, users: AnyInts, length: int) -> Self:
        """Return the hits of lists, given where in them each relevant item stands.

        Parameters
        ----------
        ranks : ndarray of float64, shape (relevant items,)
            From 1; NaN for an item that is not listed.
        users : ndarray of int, shape (relevant items,)
            Whose relevant item it is, from 0; every user has one.
        length : int
            Length of the lists.
        """
        relevant, listed = np.bincount(users), np.flatnonzero(ranks <= length)
        hits = np.zeros((relevant.size, length), dtype=np.bool_)
        hits[users[listed], ranks[listed].astype(np.int64) - 1] = True
        return cls(hits, relevant)

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
        return self.hits[:, :cutoff] @ gains[: self.length] / ideal

    def hit_rate(self, cutoff: int) -> Floats:
        """Return 1 for each user with a relevant item among the first ones, else 0."""
        return (self._hits_until(cutoff) > 0).astype(np.float64)

    def mrr(self, cutoff: int) -> Floats:
        """Return one over the rank of each user's first relevant item; 0 if it is beyond the cutoff."""
        if not self.length:
            return np.zeros(len(self.hits))
        first = self.hits[:, :cutoff].argmax(axis=1)
        return np.where(self._hits_until(cutoff) > 0, 1 / (1 + first), 0.0)

    def recall(self, cutoff: int) -> Floats:
        """Return the share of each user's relevant items that are among the first ones."""
        return self._hits_until(cutoff) / self.relevant

    def precision(self, cutoff: int) -> Floats:
        """Return the share of each user's first places that a relevant item fills."""
        return self._hits_until(cutoff) / cutoff

    def average_precision(self, cutoff: int) -> Floats:
        """Return each user's average precision, shape (users,): its mean over users is MAP.

        The precision at each rank up to the cutoff that holds a relevant item, summed, over the number of all
        relevant items, also where it is above the cutoff: ``map_cut`` of trec_eval.
        """
        hits = self.hits[:, :cutoff]
        at_ranks = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        return (at_ranks * hits).sum(axis=1) / self.relevant

    def _hits_until(self, cutoff: int) -> Ints:
        return self.hits[:, :cutoff].sum(axis=1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RankedHits(Hits):
    """Where the relevant items are in the users' lists."""

    lists: AnyInts
    """Recommended items, the best first; negative after the last one of a short list; shape (users, length).
    """

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
        return cls(_listed_cells(lists, users, relevant), relevant.counts[users], lists)

    def ranks(self, users: AnyInts, relevant: Ratings) -> Floats:
        """Return where in its user's list each relevant rating stands, NaN if nowhere, shape (ratings,).

        ``users``, ``relevant``: as in `of`.
        """
        rows, places = np.nonzero(self.hits)
        cells = users.astype(np.int64)[rows] * relevant.n_items + self.lists[rows, places]
        ranks = np.full(relevant.count, np.nan)
        ranks[find(relevant.cells, cells)[0]] = places + 1
        return ranks

    def distinct_items(self, cutoff: int) -> int:
        """Return how many different items anybody is recommended."""
        first = self.lists[:, :cutoff]
        return np.unique(first[first >= 0]).size


USER_METRICS = {
    "ndcg": Hits.ndcg,
    "hit_rate": Hits.hit_rate,
    "mrr": Hits.mrr,
    "recall": Hits.recall,
    "precision": Hits.precision,
    "map": Hits.average_precision,
}
"""The metrics that are means over users."""

LONGEST_LIST = 20
"""Length of the lists by which implicit data are judged."""

METRICS_OF_LISTS: dict[str, Callable[[Hits], Floats]] = {
    "ndcg_at_10": lambda hits: hits.ndcg(10),
    "recall_at_20": lambda hits: hits.recall(20),
    "hit_rate_at_10": lambda hits: hits.hit_rate(10),
    "mrr_at_10": lambda hits: hits.mrr(10),
    "map_at_10": lambda hits: hits.average_precision(10),
}
"""The metrics of implicit data that are means over users, by their keys in results."""


def accuracy_of_lists(ranked: RankedHits, users: AnyInts, test: Ratings, train: Ratings) -> dict[str, Any]:
    """Return how good lists of `LONGEST_LIST` items from the catalogue are, on implicit data.

    Parameters
    ----------
    ranked : RankedHits
    users : ndarray of int, shape (users,)
        Whose lists they are: those with a test item, ascending.

    Returns
    -------
    dict
        The keys of `METRICS_OF_LISTS`: means over these users. ``coverage``: share of the catalogue in
        anybody's first ten. ``popularity_lift``: by how much the mean popularity of these ten, averaged over
        users, exceeds that of the items that these users have, as a share of the latter (Abdollahpouri et al.
        [abdollahpouri2020]). ``tail_recall_at_20``: recall of test items that are not among the
        fifth of the catalogue that is most popular in training; None where there are none.
    """
    figures: dict[str, Any] = {
        name: float(per_user(ranked).mean()) for name, per_user in METRICS_OF_LISTS.items()
    }
    profiles, popularity = held_by_tested(train, test), np.bincount(train.items, minlength=train.n_items)
    # All but the fifth of the items that is most popular.
    tail = np.ones(train.n_items, dtype=np.bool_)
    tail[np.argsort(-popularity, kind="stable")[: math.ceil(0.2 * train.n_items)]] = False
    in_tail = tail[test.items]
    tested, owners = np.unique(test.users[in_tail], return_inverse=True)
    hits = Hits.at(ranked.ranks(users, test)[in_tail], owners, LONGEST_LIST)
    return {
        **figures,
        "coverage": ranked.distinct_items(10) / train.n_items,
        "popularity_lift": popularity_lift(*popularities(ranked.lists[:, :10], users, profiles, popularity)),
        "tail_recall_at_20": float(hits.recall(LONGEST_LIST).mean()) if tested.size else None,
    }


def popularity_lift(of_lists: Floats, of_profiles: Floats) -> float | None:
    """Return by how much the first of the means of `popularities` exceeds the other, as a share of it.

    Over the users for whom both are defined; None when there is none (Abdollahpouri et al.
    [abdollahpouri2020]).
    """
    defined = ~np.isnan(of_lists + of_profiles)
    return float(of_lists[defined].mean()) / float(of_profiles[defined].mean()) - 1 if defined.any() else None


def popularities(
    lists: AnyInts, users: AnyInts, profiles: Ratings, popularity: Ints | Floats
) -> tuple[Floats, Floats]:
    """Return the mean popularity of each user's list, and of what the user has, shape (users,) each.

    NaN where there is nothing. ``lists``, ``users``: as in `RankedHits.of`; ``popularity``, shape (items,).
    """
    listed = lists >= 0
    counts, lengths = profiles.counts[users], listed.sum(axis=1)
    of_all = np.bincount(profiles.users, weights=popularity[profiles.items], minlength=profiles.n_users)
    with np.errstate(invalid="ignore"):
        return np.where(listed, popularity[lists], 0).sum(axis=1) / lengths, of_all[users] / counts


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

    Raises
    ------
    InputError
        When a cutoff is below 1.
    """
    if min(cutoffs, default=1) < 1:
        raise InputError("cutoffs", str(min(cutoffs)), "at least 1 each")
    users = len(ranked.hits)
    figures: dict[str, dict[int, float | None]] = {
        name: {k: float(np.mean(metric(ranked, k))) if users else None for k in cutoffs}
        for name, metric in USER_METRICS.items()
    }
    figures["coverage"] = {k: ranked.distinct_items(k) / n_items if users else None for k in cutoffs}
    return figures


def graded_ndcg(
    lists: AnyInts, users: AnyInts, test: Ratings, cutoffs: Sequence[int]
) -> dict[int, float | None]:
    """Return the mean over users of the NDCG with graded gains at every cutoff, from 0 to 1.

    A test item at rank r gains the level of its rating, 1 for the lowest of the scale, over log2(1 + r); any
    other item gains nothing. A user's sum over the first items is divided by what the user's test items reach
    in the order of their levels, as many of them as the cutoff has places (Järvelin and Kekäläinen
    [jarvelin2002], section 2.2, with linear gains and the logarithm's argument moved by one): ``ndcg_cut`` of
    trec_eval with levels as relevance.

    Parameters
    ----------
    lists : ndarray of int, shape (users, length)
        Recommended items, the best first; negative after the last one of a short list.
    users : ndarray of int, shape (users,)
        Whose lists they are: those with a test rating, ascending.
    cutoffs : sequence of int
        At least 1 each.

    Returns
    -------
    dict
        None where there is no user.
    """
    if not users.size:
        return dict.fromkeys(cutoffs)
    gains, (listed, places, rated) = np.zeros(lists.shape), _find_listed(lists, users, test)
    gains[listed] = np.where(rated, test.levels[places], 0)
    discounts = np.log2(np.arange(2, 2 + max(lists.shape[1], test.counts.max())))
    # Users are contiguous in the ratings, so that sorting keeps each user's stretch in place.
    ordered, ranks = np.lexsort((-test.levels.astype(np.int64), test.users)), places_of(test.counts)
    best = test.levels[ordered] / discounts[ranks]
    figures: dict[int, float | None] = {}
    for cutoff in cutoffs:
        length = min(cutoff, lists.shape[1])
        dcg = gains[:, :length] @ (1 / discounts[:length])
        ideal = np.bincount(test.users, weights=np.where(ranks < cutoff, best, 0), minlength=test.n_users)
        figures[cutoff] = float(np.mean(dcg / ideal[users]))
    return figures


def _listed_cells(lists: AnyInts, users: AnyInts, ratings: Ratings) -> Bools:
    """Return which places of users' lists hold an item that the user has a rating for, shape of the lists."""
    listed, _, rated = _find_listed(lists, users, ratings)
    cells = np.zeros(listed.shape, dtype=np.bool_)
    cells[listed] = rated
    return cells


def _find_listed(lists: AnyInts, users: AnyInts, ratings: Ratings) -> tuple[Bools, Ints, Bools]:
    """Return which places of users' lists hold an item, its place in the ratings, and whether it is rated.

    The last two have an entry for each item that is listed; the place of one that is not rated is any.
    """
    listed = lists >= 0
    cells = (users.astype(np.int64)[:, None] * ratings.n_items + lists)[listed]
    return listed, *find(ratings.cells, cells)


@dataclass(frozen=True)
class RankingAccuracy:
    """Accuracy of the k items that a user would be recommended."""

    precision: float | None
    recall: float | None
    """Means over the users for whom they are defined; None when there is no such user."""
    f_score: float | None
    """Harmonic mean of the two."""


def root_mean_squared_error(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return sqrt(mean((prediction - rating)^2)).

    Parameters
    ----------
    predictions, truth : array_like, shape (ratings,)
        At least one of each.

    Raises
    ------
    InputError
        When there are other shapes, or no numbers.
    """
    predicted, rated = _paired(predictions, truth)
    return math.sqrt(_mean(lambda cells: np.square(predicted[cells] - rated[cells]), rated.size))


def mean_absolute_error(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return mean(abs(prediction - rating)); arguments and errors as of `root_mean_squared_error`."""
    predicted, rated = _paired(predictions, truth)
    return _mean(lambda cells: np.abs(predicted[cells] - rated[cells]), rated.size)


def _paired(predictions: ArrayLike, truth: ArrayLike) -> tuple[Floats, Floats]:
    """Return predictions and ratings as arrays of one length; raise InputError for any others."""
    accepted = "as many numbers as ratings, in one dimension, and one at least"
    try:
        pair = np.asarray(predictions, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("predictions", f"what is no numbers ({error})", accepted) from None
    predicted, rated = pair
    if predicted.shape != rated.shape or rated.ndim != 1 or not rated.size:
        found = f"predictions of shape {predicted.shape} for ratings of shape {rated.shape}"
        raise InputError("predictions", found, accepted)
    return pair


def _mean(read: Callable[[slice], Floats], size: int) -> float:
    """Return the mean over so many cells, of which a part at a time is held."""
    parts = (read(slice(start, start + _CELLS_AT_ONCE)) for start in range(0, size, _CELLS_AT_ONCE))
    return sum_of_parts(parts, size) / size


_CELLS_AT_ONCE = 1 << 18


def sign_accuracy(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Return the share of ratings of -1 and +1 whose sign is predicted; a prediction of 0 is +1.

    Arguments and errors are as of `root_mean_squared_error`.
    """
    predicted, rated = _paired(predictions, truth)
    return float(np.mean((predicted >= 0) == (rated > 0)))


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
    relevant = is_relevant(test, train, relevant_from)
    recommended = np.minimum(test.counts, k)
    listed = least_of_rows(lambda cells: ~sortable(predictions[cells]), test.indptr, recommended)
    hits, n_relevant = (true_of_rows(mask, test.indptr) for mask in (relevant & listed, relevant))
    return _ranking(hits, recommended, n_relevant)


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
    return test.select(is_relevant(test, train, relevant_from))


def is_relevant(test: Ratings, train: Ratings, relevant_from: float | None = None) -> Bools:
    """Return which test ratings make an item relevant, shape (test ratings,); see `ranking_accuracy`."""
    if test.scale.implicit:
        return np.ones(test.count, dtype=np.bool_)
    if relevant_from is not None:
        return test.values >= relevant_from
    means, relevant = train.user_means(), np.empty(test.count, dtype=np.bool_)
    for users in blocks(test.counts, _CELLS_AT_ONCE):
        cells = slice(test.indptr[users.start], test.indptr[users.stop])
        relevant[cells] = test.values_at(cells) >= np.repeat(means[users], test.counts[users])
    return relevant


def _ranking(hits: AnyArray, recommended: AnyArray, relevant: AnyArray) -> RankingAccuracy:
    """Return the means over users of what their hits are a share of."""
    precision, recall = (
        float(np.mean(hits[totals > 0] / totals[totals > 0])) if (totals > 0).any() else None
        for totals in (recommended, relevant)
    )
    if precision is None or recall is None:
        return RankingAccuracy(precision, recall, None)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return RankingAccuracy(precision, recall, f_score)


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
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):  # of functions that are not written in Python
            parameters = []
        arguments = {name: identifiers[name] for name in parameters if name in identifiers}
        # Copies, since a user-defined function may sort in place.
        value = function(test.values.copy(), predictions.copy(), **arguments)
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        raise InputError(reference, f"{type(error).__name__}: {one_line(error)}", ACCEPTED) from error
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
        found = f"it returned {value}" if isinstance(value, Real) else f"it returned a {type(value).__name__}"
        raise InputError(reference, found, ACCEPTED)
    return float(value)


CONFIDENCE = 0.95
"""Probability with which an interval is meant to hold."""

REPLICATES = 2000
"""Times that the users are drawn again: the ends of an interval are then off by a few hundredths of it."""


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
    random, totals = generator(0, "users drawn again"), np.empty((replicates, sums.shape[1]))
    at_once = max(1, (1 << 22) // users)
    for start in range(0, replicates, at_once):
        count = min(at_once, replicates - start)
        draws = random.integers(0, users, size=(count, users)) + np.arange(count)[:, None] * users
        times = np.bincount(draws.ravel(), minlength=count * users).reshape(count, users)
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
