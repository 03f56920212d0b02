"""Users and questions about them, in batches of the same padded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import places_of, rows_of
from dprec.ratings import Ratings

_MULTIPLE = 16
"""Padded sizes are multiples of this; a user's depends on its own size alone."""

_NUMBERS = 1 << 21
"""Numbers that the matrices of a batch may have."""


def thinned(ratings: Ratings, most: int) -> Ratings:
    """Return the profiles with at most so many ratings each, taken evenly from longer ones."""
    counts = ratings.counts
    kept = np.minimum(counts, most)
    users = rows_of(kept)
    chosen = np.zeros(ratings.count, dtype=np.bool_)
    chosen[ratings.indptr[users] + places_of(kept) * counts[users] // kept[users]] = True
    return ratings.select(chosen)


@dataclass(frozen=True, eq=False)
class Batch:
    """Users of one padded size, and what is asked about them."""

    users: NDArray[np.int64]
    """Shape (batch,)."""
    ratings: NDArray[np.int64]
    is_rating: NDArray[np.bool_]
    """Places in the users' ratings, and which are not padding; shape (batch, ratings)."""
    questions: NDArray[np.int64]
    is_question: NDArray[np.bool_]
    """Places in the list of questions, and which are not padding; shape (batch, questions)."""


def batches(ratings: Ratings, users: NDArray[np.integer]) -> Iterator[Batch]:
    """Yield the users who are asked about.

    Parameters
    ----------
    users : ndarray of int, shape (questions,)
        The user that each question is about, in any order.
    """
    order = np.argsort(users, kind="stable")
    asked, first, counts = np.unique(users[order], return_index=True, return_counts=True)
    begin, lengths = ratings.indptr[asked], ratings.counts[asked]
    sizes = np.column_stack([_padded(lengths), _padded(counts)])
    for size in np.unique(sizes, axis=0):
        members = np.flatnonzero((sizes == size).all(axis=1))
        step = max(1, _NUMBERS // int(size[0] * (size[0] + 2 * size[1])))
        for start in range(0, members.size, step):
            chunk = members[start : start + step]
            rated, is_rating = _grid(begin[chunk], lengths[chunk], int(size[0]))
            questions, is_question = _grid(first[chunk], counts[chunk], int(size[1]))
            yield Batch(asked[chunk].astype(np.int64), rated, is_rating, order[questions], is_question)


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
