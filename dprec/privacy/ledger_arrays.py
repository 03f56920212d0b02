"""The privacy ledger as a few named arrays, for files: arrays that charges share are stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import Loss, PrivacyAccountant
from dprec.accounting.accountant import Charge

_ONE_NUMBER = -1
"""Instead of a row: the loss is the same for all participants."""


def ledger_arrays(ledger: PrivacyAccountant) -> dict[str, NDArray[Any]]:
    """Return a ledger as arrays.

    Returns
    -------
    dict of ndarray
        ``rated``: bool, shape (users,). ``rounds``: int64, shape (charges,). ``user_sets``: uint8,
        shape (distinct sets, ceil(users / 8)), packed as in `Charge`; ``users``: int64, the row of each
        charge. ``losses``: float64, shape (distinct losses by user, users). ``per_rating`` and
        ``per_user``: float64, the loss that is the same for all; ``per_rating_row`` and
        ``per_user_row``: int64, the row of a loss by user, or -1.
    """
    history, n_users = ledger.history, ledger.n_users
    user_sets, users = _distinct([charge.users for charge in history], (n_users + 7) // 8, np.uint8)
    columns = [charge.per_rating for charge in history] + [charge.per_user for charge in history]
    by_user = [loss for loss in columns if isinstance(loss, np.ndarray)]
    losses, places = _distinct(by_user, n_users, np.float64)
    rows = np.full(len(columns), _ONE_NUMBER, dtype=np.int64)
    rows[[isinstance(loss, np.ndarray) for loss in columns]] = places
    numbers = np.array([0.0 if isinstance(loss, np.ndarray) else loss for loss in columns])
    rating, user = slice(len(history)), slice(len(history), None)
    return {
        "rated": ledger.rated,
        "rounds": np.array([charge.round_index for charge in history], dtype=np.int64),
        "user_sets": user_sets,
        "users": users,
        "losses": losses,
        "per_rating": numbers[rating],
        "per_rating_row": rows[rating],
        "per_user": numbers[user],
        "per_user_row": rows[user],
    }


def ledger_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> PrivacyAccountant:
    """Return the ledger from which `ledger_arrays` made some arrays.

    Raises
    ------
    KeyError, IndexError, TypeError, ValueError
        When an array is missing, too short, of another type or for other users.
    """
    rated, rounds = arrays["rated"], arrays["rounds"]
    user_sets, losses = list(arrays["user_sets"]), list(arrays["losses"])
    if rated.dtype != np.bool_ or rated.ndim != 1:
        raise ValueError(f"rated is {rated.dtype} in {rated.ndim} dimensions")
    if any(row.shape != ((rated.size + 7) // 8,) for row in user_sets):
        raise ValueError("sets of users that are not the ledger's")
    if any(row.shape != rated.shape for row in losses):
        raise ValueError("losses of users that are not the ledger's")

    def loss(unit: str, charge: int) -> Loss:
        row = int(arrays[f"{unit}_row"][charge])
        return float(arrays[unit][charge]) if row == _ONE_NUMBER else losses[row]

    return PrivacyAccountant(
        rated,
        [
            Charge(
                int(round_index),
                user_sets[arrays["users"][charge]],
                loss("per_rating", charge),
                loss("per_user", charge),
            )
            for charge, round_index in enumerate(rounds)
        ],
    )


def _distinct(
    arrays: Sequence[NDArray[Any]], width: int, dtype: type[np.generic]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct arrays as rows, and the row of each; a shared array is one row."""
    rows = {id(array): array for array in arrays}
    places = {identity: row for row, identity in enumerate(rows)}
    table = np.stack(list(rows.values())) if rows else np.zeros((0, width), dtype=dtype)
    return table, np.array([places[id(array)] for array in arrays], dtype=np.int64)
