"""Protocols with rounds: what every device holds between two messages, and what the server learns.

In a round the server sends what it holds; devices answer; the server learns from what they say together. A
device answers no more rounds than its budget was divided by, and each for one question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dprec.arrays import Bools, Floats
from dprec.completion import Profiles
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.protocols.predicting import predictions_on_devices
from dprec.randomness import subset, words
from dprec.ratings import Ratings


class Device(ABC):
    """What every device of a population holds between two messages; `Protocol.device` reads it."""

    @abstractmethod
    def encode(self) -> bytes:
        """Return the bytes by which devices are sent this."""

    @property
    def question(self) -> bytes:
        """What answers are bound to, and the words that they are drawn with; by default, what is sent."""
        return self.encode()

    @abstractmethod
    def predictions(self, profiles: Profiles) -> Floats:
        """Return what devices predict, or by what they rank, of every item, shape (users, items)."""

    def predicting(self, held: Ratings) -> Mapping[str, Any]:
        """Return what predicts cell by cell, `predict`, and maybe row by row, `predict_rows`.

        ``held``: what the devices hold.
        """
        return predictions_on_devices(held, self.predictions)


class Server(ABC):
    """What a server knows: a dataclass of arrays and numbers, from which an interrupted run resumes."""

    diagnostics: Mapping[str, Any] = MappingProxyType({})
    """JSON values about what was learned."""

    @property
    @abstractmethod
    def held(self) -> Device:
        """What devices hold of it, as they decode it; the next question is its bytes."""

    @property
    def learned(self) -> Device:
        """What devices are sent at the end; by default what they hold anyway."""
        return self.held


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(Options):
    """Which users are asked in a round; everybody by default.

    Who is asked depends on the seed and the user's number, never on the nodes.
    """

    fraction: float | None = option(
        "Share of the users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        gt=0,
        le=1,
    )
    count: int | None = option(
        "Number of users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        ge=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and self.count is not None:
            raise SettingError("", "a fraction and a count", "one of the two")

    def size(self, n_users: int) -> int:
        """Return how many of the users are asked; raises SettingError for nobody, or more than there are."""
        wanted = n_users if self.count is None else self.count
        if self.fraction is not None:
            wanted = round(self.fraction * n_users)
        if not 1 <= wanted <= n_users:
            key = "count" if self.count is not None else "fraction"
            selection = f"{getattr(self, key)} selects {wanted} of {n_users} users"
            raise SettingError(key, selection, "a value that selects at least one user and at most all")
        return wanted

    def draw(self, n_users: int, seed: int, round_index: int) -> Bools:
        """Return whether each user is asked in a round, shape (users,)."""
        return subset(self.size(n_users), words(seed, "sampling", 0, n_users, round_index=round_index))
