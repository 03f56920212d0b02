"""The ratings that devices hold, and questions about them, in batches of users of the same padded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.ragged import offsets, places_of, rows_of

_MULTIPLE = 16
"""Padded sizes are multiples of this; a user's depends on its own size alone."""

_NUMBERS = 1 << 21
"""Numbers that the matrices of a batch may have."""


@dataclass(frozen=True, eq=False)
class OwnRatings:
    """The true ratings of all users, each on its own device.

    Parameters
    ----------
    indptr : ndarray of int64, shape (users + 1,)
    items : ndarray of int32, shape (ratings,)
    levels : ndarray of uint8, shape (ratings,)
        From 1.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    levels: NDArray[np.uint8]

    def at_most(self, most: int) -> OwnRatings:
        """Return the profiles with at most so many ratings each, taken evenly from longer ones."""
        counts = np.diff(self.indptr)
        kept = np.minimum(counts, most)
        if np.array_equal(kept, counts):
            return self
        users = rows_of(kept)
        chosen = self.indptr[users] + places_of(kept) * counts[users] // kept[users]
        return OwnRatings(offsets(kept), self.items[chosen], self.levels[chosen])


@dataclass(frozen=True, eq=False)
class Batch:
    """Users of one padded size, and what is asked about them.

    Parameters
    ----------
    users : ndarray of int64, shape (batch,)
    ratings, is_rating : ndarray of int64 and bool, shape (batch, ratings)
        Places in the own ratings, and which are not padding.
    questions, is_question : ndarray of int64 and bool, shape (batch, questions)
        Places in the list of questions, and which are not padding.
    """

    users: NDArray[np.int64]
    ratings: NDArray[np.int64]
    is_rating: NDArray[np.bool_]
    questions: NDArray[np.int64]
    is_question: NDArray[np.bool_]


def batches(own: OwnRatings, users: NDArray[np.integer]) -> Iterator[Batch]:
    """Yield the users who are asked about.

    Parameters
    ----------
    own : OwnRatings
    users : ndarray of int, shape (questions,)
        The user that each question is about, in any order.
    """
    order = np.argsort(users, kind="stable")
    asked, first, counts = np.unique(users[order], return_index=True, return_counts=True)
    sizes = np.column_stack([_padded(np.diff(own.indptr)[asked]), _padded(counts)])
    for size in np.unique(sizes, axis=0):
        members = np.flatnonzero((sizes == size).all(axis=1))
        step = max(1, _NUMBERS // int(size[0] * (size[0] + 2 * size[1])))
        for start in range(0, members.size, step):
            chunk = members[start : start + step]
            begin, length = own.indptr[asked[chunk]], np.diff(own.indptr)[asked[chunk]]
            ratings, is_rating = _grid(begin, length, int(size[0]))
            questions, is_question = _grid(first[chunk], counts[chunk], int(size[1]))
            yield Batch(asked[chunk].astype(np.int64), ratings, is_rating, order[questions], is_question)


def _padded(sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    padded: NDArray[np.int64] = np.maximum(-(-sizes // _MULTIPLE), 1) * _MULTIPLE
    return padded


def _grid(
    starts: NDArray[np.integer], lengths: NDArray[np.integer], width: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return places from each start on, one row each, and which belong to it; the others are 0."""
    columns = np.arange(width)
    inside = columns < lengths[:, None]
    return np.where(inside, starts[:, None] + columns, 0).astype(np.int64), inside
