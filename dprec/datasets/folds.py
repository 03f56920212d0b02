"""Train and test ratings that are distributed as two files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.ratings import Duplicates, RatingRows, Ratings, RatingScale

GIVEN = "given"
"""Name of the one division of data that come as a train and a test part."""


def read_fold(
    train: RatingRows,
    test: RatingRows,
    scale: RatingScale,
    duplicates: Duplicates,
    spaces: Sequence[tuple[NDArray[Any], NDArray[Any]]] = (),
) -> tuple[Ratings, Ratings]:
    """Put two parts into one space of users and items.

    Parameters
    ----------
    duplicates : {"error", "last"}
    spaces : sequence of tuple of ndarray
        Identifiers of users and of items that belong to the space even without a rating.

    Raises
    ------
    InputError
        When they have no user in common, or a test rating is also a train rating.
    """
    user_ids, train_users, test_users = _united(train.users, test.users, [users for users, _ in spaces])
    item_ids, train_items, test_items = _united(train.items, test.items, [items for _, items in spaces])
    train = replace(train, users=train_users, items=train_items)
    test = replace(test, users=test_users, items=test_items)
    learnt, tested = (
        Ratings.from_rows(rows, scale, duplicates=duplicates, user_ids=user_ids, item_ids=item_ids)
        for rows in (train, test)
    )
    if not np.any((learnt.counts > 0) & (tested.counts > 0)):
        raise InputError(
            test.source, f"none of the users of {train.source}", "test ratings of the same users"
        )
    leaks = np.flatnonzero(np.isin(tested.cells, learnt.cells))
    if leaks.size:
        user, item = user_ids[tested.users[leaks[0]]], item_ids[tested.items[leaks[0]]]
        row = int(np.flatnonzero((test.users == user) & (test.items == item))[0])
        raise test.error(
            row,
            f"the rating of item {item} by user {user} is in {train.source} too",
            "test ratings that are not train ratings",
        )
    return learnt, tested


def united(train: Ratings, test: Ratings) -> Ratings:
    """Return the ratings of both parts, which are in one space of users and items."""
    rows = [(part.user_ids[part.users], part.item_ids[part.items], part.values) for part in (train, test)]
    users, items, values = map(np.concatenate, zip(*rows, strict=True))
    return Ratings.from_triples(
        users, items, values, train.scale, user_ids=train.user_ids, item_ids=train.item_ids
    )


def without_times(ratings: Ratings) -> Ratings:
    """Return ratings without the times that only some splits need."""
    return ratings if ratings.times is None else replace(ratings, times=None)


def _united(
    first: NDArray[Any], second: NDArray[Any], more: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the identifiers in any column, and the first two columns in a common type."""
    columns = [first, second, *more]
    if len({column.dtype.kind for column in columns}) > 1:
        columns = [column.astype(np.str_) for column in columns]
    return np.unique(np.concatenate(columns)), columns[0], columns[1]
