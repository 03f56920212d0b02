"""The privacy ledger: what each user has spent, in the two units in which protocols are compared.

Losses are charged as they happen, to those who took part; the ledger never assumes that everybody
did. It keeps only the history of charges; what a user has spent in total is derived. The two units are
kept separate: *per rating* compares two profiles that differ in the value of one rating, *per user* two
profiles that differ arbitrarily.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Loss = float | NDArray[np.float64]
"""A privacy loss, a natural logarithm from 0 to infinity: one for all participants, or shape (users,)."""


@dataclass(frozen=True, eq=False)
class Charge:
    """The losses of those who took part in one exchange."""

    round_index: int
    """The round that it belongs to, from 1; 0 for none, where nothing is sent."""
    users: NDArray[np.uint8]
    """Who took part: one bit per user, in user order, the highest bit of a byte first;
    shape (ceil(users / 8),).
    """
    per_rating: Loss
    per_user: Loss
    """The losses; one number if all participants lose the same. Entries of users who did not take part have
    no meaning; nor have those per rating of users without a rating to protect. Shape (users,).
    """

    def took_part(self, n_users: int) -> NDArray[np.bool_]:
        """Return who took part, shape (users,)."""
        return np.unpackbits(self.users, count=n_users).view(np.bool_)


@dataclass(eq=False)
class PrivacyAccountant:
    """Privacy losses of every user, added up by basic composition."""

    rated: NDArray[np.bool_]
    """Users who have a rating to protect; everybody if the rated items are hidden; shape (users,)."""
    history: list[Charge] = field(default_factory=list)
    """All charges, in order."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.rated.size

    @property
    def per_rating(self) -> NDArray[np.float64]:
        """What each user has spent per rating, shape (users,).

        Infinite for what was sent unprotected; NaN for users without a rating to protect, and for
        those who never took part.
        """
        took_part = np.zeros(self.n_users, dtype=np.bool_)
        for charge in self.history:
            took_part |= charge.took_part(self.n_users)
        return np.where(took_part & self.rated, self._sums("per_rating"), np.nan)

    @property
    def per_user(self) -> NDArray[np.float64]:
        """What each user has spent for everything sent, shape (users,); infinite if unprotected."""
        return self._sums("per_user")

    @property
    def exchanges(self) -> NDArray[np.int64]:
        """In how many exchanges each user took part, shape (users,)."""
        count = np.zeros(self.n_users, dtype=np.int64)
        for charge in self.history:
            count += charge.took_part(self.n_users)
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the ledger keeps; consecutive charges share equal arrays."""
        arrays = {id(self.rated): self.rated.nbytes}
        for charge in self.history:
            for part in (charge.users, charge.per_rating, charge.per_user):
                if isinstance(part, np.ndarray):
                    arrays[id(part)] = part.nbytes
        return sum(arrays.values())

    def charge(self, round_index: int, users: NDArray[np.bool_], per_rating: Loss, per_user: Loss) -> None:
        """Add the losses of those who took part in one exchange; nothing is added if nobody did.

        Parameters
        ----------
        round_index : int
            The round that it belongs to, from 1; 0 for none, where nothing is sent.
        users : ndarray of bool, shape (users,)
            Who took part.
        per_rating, per_user : float, or ndarray of float64 of shape (users,)
            Their losses; entries of others, and those per rating of users without a rating, are ignored.

        Raises
        ------
        ValueError
            When an array does not cover all users, or a loss is negative or NaN.
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
    """Return losses, as one number if all who are charged lose the same."""
    own = losses[charged] if isinstance(losses, np.ndarray) else np.array([losses])
    if np.isnan(own).any() or (own < 0).any():
        raise ValueError("a privacy loss that is negative or not a number")
    if own.size and (own == own[0]).all():
        return float(own[0])
    return np.where(np.isnan(losses), 0.0, losses) if own.size else 0.0


def _sharing(charge: Charge, before: Charge) -> Charge:
    """Return a charge that shares those arrays of the previous one that are equal."""
    if np.array_equal(charge.users, before.users):
        charge = replace(charge, users=before.users)
    if np.array_equal(charge.per_rating, before.per_rating):
        charge = replace(charge, per_rating=before.per_rating)
    if np.array_equal(charge.per_user, before.per_user):
        charge = replace(charge, per_user=before.per_user)
    return charge
