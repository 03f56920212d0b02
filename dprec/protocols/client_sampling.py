"""Which clients take part in a round of a federated model, drawn such that it amplifies privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.accounting import ClientSampling, FixedSize, Poisson
from dprec.arrays import Bools
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import subset, uniforms, words


@dataclass(frozen=True, kw_only=True)
class SampledClients(Options):
    """Who is asked in a round; everybody by default.

    Draws depend on the seed, the round and the user's number, never on the nodes.
    """

    rate: float | None = option(
        "Probability with which each user is asked in a round, whoever else is (Poisson sampling).",
        None,
        gt=0,
        le=1,
    )
    clients: int | None = option("Number of users who are asked in a round, drawn anew in each.", None, ge=1)
    users: int | None = option(
        "Users among whom clients are drawn; by default those of the run.", None, reader="server", ge=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None and self.clients is not None:
            raise SettingError("", "a rate and a number of clients", "one of the two")

    def among(self, users: int) -> Self:
        """Return the sampling of so many users; raises SettingError for too few of them."""
        if self.clients is not None and self.clients > users:
            raise SettingError("clients", f"{self.clients} of {users} users", f"at most {users}")
        return replace(self, users=users)

    @property
    def drawn(self) -> ClientSampling | None:
        """How clients are drawn; None where everybody is asked."""
        if self.rate is not None:
            return Poisson(self.rate)
        if self.clients is None:
            return None
        # Before the number of users is known, nothing is amplified.
        return FixedSize(self.clients, self.users or self.clients)

    def expected(self, users: int) -> float:
        """Return the public number by which a sum is divided: of users who are asked, on average."""
        return float(self.clients or (self.rate or 1.0) * users)

    def draw(self, n_users: int, seed: int, round_index: int) -> Bools:
        """Return whether each user is asked in a round, shape (users,)."""
        user_words = words(seed, "clients of a round", 0, n_users, round_index=round_index)
        if self.clients is not None:
            return subset(self.clients, user_words)
        return np.ones(n_users, dtype=np.bool_) if self.rate is None else uniforms(user_words) < self.rate
