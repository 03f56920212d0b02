"""Predictions as they must be, one finite number for each cell, and the lists that follow from them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint64s, segments
from dprec.errors import InputError
from dprec.progress import Progress, silent
from dprec.randomness import public_words
from dprec.ratings import Ratings

PredictT = TypeVar("PredictT", bound=Callable[..., Any])


def checked_predictions(predictions: Any, shape: tuple[int, ...], component: str) -> Floats:
    """Return a component's predictions, or raise InputError for another shape or no finite numbers."""
    accepted = f"one finite number for each cell, shape {shape}"
    try:
        values = np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"predictions of type {type(predictions).__name__}"
        raise InputError(component, found, accepted) from None
    if values.shape != shape or predictions is None:
        found = "no predictions" if predictions is None else f"predictions of shape {values.shape}"
        raise InputError(component, found, accepted)
    wrong = values.size - int(np.count_nonzero(np.isfinite(values)))
    if wrong:
        found = f"{wrong} of {values.size} predictions that are NaN or infinite"
        raise InputError(component, found, accepted)
    return values


def checked(predict: PredictT, component: str) -> PredictT:
    """Return a function that predicts cells, or all items of users, and checks its predictions.

    It is given users and items, or users and the number of items.
    """

    @functools.wraps(predict)
    def predicting(users: AnyInts, items: AnyInts | int) -> Floats:
        shape = (users.size, items) if isinstance(items, int) else users.shape
        return checked_predictions(predict(users, items), shape, component)

    return predicting  # type: ignore[return-value]


_CELLS = 1 << 20
"""Cells that are predicted at once."""

_AT_HAND = 1 << 16
"""Cells of whole users that are predicted cell by cell at once, so that a processor keeps them at hand."""

NO_ITEM = -1
"""What ends the list of a user with fewer items to recommend."""

Predict = Callable[[AnyInts, AnyInts], Floats]
"""From arrays of users and items to predicted ratings, not clipped, shape (cells,)."""

PredictRows = Callable[[AnyInts, int], Floats]
"""From an array of users and the number of items to predicted ratings of all items, shape (users, items)."""

Candidates = Callable[[AnyInts], Bools]
"""From an array of users to which items may be recommended to each, shape (users, items)."""


@dataclass(frozen=True, eq=False)
class Unrated:
    """All items that a user has not rated."""

    rated: Ratings
    """What is left out."""
    allowed: Bools | None = None
    """Which items may be recommended to anybody; by default all; shape (items,)."""

    def __call__(self, users: AnyInts) -> Bools:
        """Return which items are candidates of each user, shape (users, items)."""
        allowed = np.ones(self.rated.n_items, dtype=np.bool_) if self.allowed is None else self.allowed
        candidates = np.repeat(allowed[None, :], users.size, axis=0)
        candidates[cells_of(self.rated, users)] = False
        return candidates


@dataclass(frozen=True, eq=False)
class Sampled:
    """A user's relevant items, among items that are drawn from those that the user has not rated.

    What is measured on a sample compares with no other sample and no full ranking (Krichene and Rendle
    [krichene2020]).
    """

    unrated: Unrated
    tested: Ratings
    """Never drawn, as they have a rating."""
    relevant: Ratings
    """The test ratings that make an item relevant."""
    negatives: int
    """Items that are drawn for each user, without replacement; all, where there are fewer."""
    seed: int
    """The draws depend on it, on the user and on the item alone."""

    def __call__(self, users: AnyInts) -> Bools:
        """Return which items are candidates of each user, shape (users, items)."""
        drawable = self.unrated(users)
        drawable[cells_of(self.tested, users)] = False
        n_items = drawable.shape[1]
        # Public words of all items of some users, shape (users, items).
        cells = np.repeat(users, n_items), np.tile(np.arange(n_items), users.size)
        words = public_words(self.seed, *cells).reshape(users.size, n_items)
        draws = np.where(drawable, words >> np.uint64(1), _LAST)
        last = min(self.negatives, n_items) - 1
        is_candidate: Bools = draws <= np.partition(draws, last, axis=1)[:, last : last + 1]
        is_candidate &= drawable
        is_candidate[cells_of(self.relevant, users)] = True
        return is_candidate


def cells_from_rows(predict_rows: PredictRows, n_items: int) -> Predict:
    """Return a function that predicts cells, from one that predicts all items of users."""

    def predicting(users: AnyInts, items: AnyInts) -> Floats:
        distinct, rows = np.unique(users, return_inverse=True)
        order, predictions = np.argsort(rows, kind="stable"), np.empty(items.shape)
        starts, step = np.searchsorted(rows[order], np.arange(distinct.size + 1)), max(1, _CELLS // n_items)
        for start in range(0, distinct.size, step):
            stop = min(start + step, distinct.size)
            cells = order[starts[start] : starts[stop]]
            table = predict_rows(distinct[start:stop], n_items)
            predictions[cells] = table[rows[cells] - start, items[cells]]
        return predictions

    return predicting


_LAST = np.uint64((1 << 64) - 1)
"""Comes after every draw of 63 bits."""


def cells_of(ratings: Ratings, users: AnyInts) -> tuple[Ints, AnyInts]:
    """Return the rated cells of some users: each one's place among the users, and the item."""
    rows = users.astype(np.int64)
    counts = ratings.counts[rows]
    cells = segments(ratings.indptr[rows], counts)
    return np.repeat(np.arange(rows.size), counts), ratings.items[cells]


@dataclass(frozen=True, eq=False)
class Lists:
    """The best items of users."""

    users: AnyInts
    """Shape (users,)."""
    items: Ints
    """The best first, `NO_ITEM` after the last of a short list; shape (users, length)."""
    scores: Floats
    """What they are ordered by; shape (users, length)."""


def scored_lists(
    predict: Predict,
    candidates: Candidates,
    users: AnyInts,
    n: int,
    n_items: int,
    *,
    predict_rows: PredictRows | None = None,
    progress: Progress = silent,
) -> Lists:
    """Return lists of each user's best candidates, of min(n, items) at most.

    Equal predictions are in the order of `words_of_ties`.
    Memory does not grow with the number of users, and with the number of items only by a row per user.
    ``predict_rows`` predicts all items of users at once, where that costs less than cell by cell.
    """
    from dprec.kernels.rows import choose_best

    lists = np.full((users.size, min(n, n_items)), NO_ITEM, dtype=np.int64)
    predicted = np.full(lists.shape, -np.inf)
    step, ties = max(1, _CELLS // max(1, n_items)), words_of_ties(n_items)
    for start in range(0, users.size, step):
        block_users = users[start : start + step].astype(np.int64)
        is_candidate = candidates(block_users)
        if predict_rows is None:
            scores, n_at_once = np.empty(is_candidate.shape), max(1, _AT_HAND // max(1, n_items))
            for first in range(0, block_users.size, n_at_once):
                rows, places = np.nonzero(is_candidate[first : first + n_at_once])
                rows += first
                scores[rows, places] = predict(block_users[rows], places)
        else:
            scores = predict_rows(block_users, n_items)
        block, shape = slice(start, start + step), (block_users.size, n_items)
        dense_scores = np.ascontiguousarray(np.broadcast_to(scores, shape), dtype=np.float64)
        candidate = np.ascontiguousarray(np.broadcast_to(is_candidate, shape))
        choose_best(lists[block], predicted[block], dense_scores, candidate, ties)
        progress("ranking", start + block_users.size, users.size)
    return Lists(users, lists, predicted)


def recommended(
    predict: Predict, rated: Ratings, users: AnyInts, n: int, candidates: Bools | None = None
) -> Ints:
    """Return each user's best unrated items, the best first; see `scored_lists`."""
    return scored_lists(predict, Unrated(rated, candidates), users, n, rated.n_items).items


def words_of_ties(n_items: int) -> Uint64s:
    """Return words by which items of equal predictions are ordered, the same for all users, shape (items,).

    They are fixed and say nothing of the items, so no place in the catalogue is an advantage.
    """
    items = np.arange(n_items)
    # The seed is that of no sample.
    return public_words(1 << 64, np.zeros_like(items), items)
