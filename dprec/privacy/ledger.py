"""The privacy ledger: what each user has spent, in the two units in which protocols are compared.

Losses are charged as they happen, by whoever took part; the ledger never assumes that everybody
did. The history of charges is all that it keeps, what a user has spent in sum is derived. The two
units are kept apart: *per rating* compares two profiles that differ in the value of one rating,
*per user* two profiles that differ arbitrarily.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Loss = float | NDArray[np.float64]
"""A privacy loss, a natural logarithm from 0 to infinity: one of all participants, or shape (users,)."""


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


@dataclass(frozen=True, eq=False)
class Charge:
    """What one participation cost those who took part in it.

    Parameters
    ----------
    round_index : int
        The round that it belongs to, from 1; 0 for none, where nothing is sent.
    users : ndarray of uint8, shape (ceil(users / 8),)
        Who took part: a bit per user, in user order, the highest bit of a byte first.
    per_rating, per_user : float, or ndarray of float64 of shape (users,)
        The losses; one number where all participants lose the same. Of users who did not take part,
        and per rating of those without a rating to protect, the entries mean nothing.
    """

    round_index: int
    users: NDArray[np.uint8]
    per_rating: Loss
    per_user: Loss

    def took_part(self, n_users: int) -> NDArray[np.bool_]:
        """Return who took part, shape (users,)."""
        return np.unpackbits(self.users, count=n_users).view(np.bool_)


@dataclass(eq=False)
class PrivacyLedger:
    """Privacy losses of every user, added up by basic composition.

    Parameters
    ----------
    rated : ndarray of bool, shape (users,)
        Who has a rating to protect; everybody where it is hidden which items are rated.
    history : list of Charge
        All that was charged, in order.
    """

    rated: NDArray[np.bool_]
    history: list[Charge] = field(default_factory=list)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.rated.size

    @property
    def per_rating(self) -> NDArray[np.float64]:
        """What each user has spent for a rating, shape (users,).

        Infinite for what was sent unprotected; NaN for users without a rating to protect, and for
        those who took part in nothing.
        """
        took_part = np.zeros(self.n_users, dtype=np.bool_)
        for charge in self.history:
            took_part |= charge.took_part(self.n_users)
        return np.where(took_part & self.rated, self._sums("per_rating"), np.nan)

    @property
    def per_user(self) -> NDArray[np.float64]:
        """What each user has spent for everything sent, shape (users,); infinite where unprotected."""
        return self._sums("per_user")

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the ledger keeps; charges share what is equal."""
        arrays = {id(self.rated): self.rated.nbytes}
        for charge in self.history:
            for part in (charge.users, charge.per_rating, charge.per_user):
                if isinstance(part, np.ndarray):
                    arrays[id(part)] = part.nbytes
        return sum(arrays.values())

    def charge(self, round_index: int, users: NDArray[np.bool_], per_rating: Loss, per_user: Loss) -> None:
        """Add the losses of one participation; where nobody took part there is none.

        Parameters
        ----------
        round_index : int
            The round that it belongs to, from 1; 0 for none, where nothing is sent.
        users : ndarray of bool, shape (users,)
            Who took part.
        per_rating, per_user : float, or ndarray of float64 of shape (users,)
            Their losses; entries of others, and per rating of users without a rating, are not read.

        Raises
        ------
        ValueError
            When an array is not one of all users, or a loss is negative or NaN.
        """
        for column in (users, per_rating, per_user):
            if isinstance(column, np.ndarray) and column.shape != self.rated.shape:
                raise ValueError(f"an array of shape {column.shape} for {self.n_users} users")
        if not users.any():
            return
        charge = Charge(
            round_index,
            np.packbits(users),
            _compact(per_rating, users & self.rated),
            _compact(per_user, users),
        )
        self.history.append(_sharing(charge, self.history[-1]) if self.history else charge)

    def _sums(self, unit: Literal["per_rating", "per_user"]) -> NDArray[np.float64]:
        """Add up a column of the history, charge by charge."""
        spent = np.zeros(self.n_users)
        for charge in self.history:
            np.add(spent, getattr(charge, unit), out=spent, where=charge.took_part(self.n_users))
        return spent


def _compact(losses: Loss, charged: NDArray[np.bool_]) -> Loss:
    """Return losses as one number where all who are charged lose the same."""
    own = losses[charged] if isinstance(losses, np.ndarray) else np.array([losses])
    if np.isnan(own).any() or (own < 0).any():
        raise ValueError("a privacy loss that is negative or not a number")
    if own.size and (own == own[0]).all():
        return float(own[0])
    return np.where(np.isnan(losses), 0.0, losses) if own.size else 0.0


def _sharing(charge: Charge, before: Charge) -> Charge:
    """Return a charge that holds the arrays of the one before where they are the same."""
    if np.array_equal(charge.users, before.users):
        charge = replace(charge, users=before.users)
    if np.array_equal(charge.per_rating, before.per_rating):
        charge = replace(charge, per_rating=before.per_rating)
    if np.array_equal(charge.per_user, before.per_user):
        charge = replace(charge, per_user=before.per_user)
    return charge
