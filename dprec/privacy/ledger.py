"""The privacy ledger: what each user has spent, in both of the units that the papers quote.

Losses are charged as they happen, by whoever took part; the ledger never assumes that everybody
did. The two units are kept apart: *per rating* compares two profiles that differ in the value of
one rating, *per user* two profiles that differ arbitrarily.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Guarantee:
    """What a protocol promises to everybody who takes part in it.

    Parameters
    ----------
    trusts_server : bool
        Whether the server sees true ratings.
    hides_rated_items : bool
        Whether it stays hidden which items a user rated.
    notes : tuple of str
        What a reader of the figures must know about the guarantee.
    """

    trusts_server: bool
    hides_rated_items: bool
    notes: tuple[str, ...] = ()


class PrivacyLedger:
    """Privacy losses of every user, added up by basic composition.

    Parameters
    ----------
    users : int

    Attributes
    ----------
    per_rating, per_user : ndarray of float64, shape (users,)
        Natural logarithms; infinite for what was sent unprotected, NaN per rating for a user who
        has no rating to protect.
    """

    def __init__(self, users: int) -> None:
        self.per_rating = np.full(users, np.nan)
        self.per_user = np.zeros(users)

    def charge(
        self,
        users: NDArray[np.integer] | NDArray[np.bool_] | slice,
        per_rating: NDArray[np.float64],
        per_user: NDArray[np.float64],
    ) -> None:
        """Add the losses of one participation.

        Parameters
        ----------
        users : ndarray of int or bool, or slice
            Who took part, each once.
        per_rating, per_user : ndarray of float64
            Their losses; NaN per rating where there is no rating.
        """
        spent = self.per_rating[users]
        self.per_rating[users] = np.where(
            np.isnan(spent), per_rating, spent + np.where(np.isnan(per_rating), 0.0, per_rating)
        )
        self.per_user[users] += per_user
