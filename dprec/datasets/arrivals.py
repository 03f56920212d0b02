"""Populations that move: when generated users join and leave, items appear, and ratings are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprec.arrays import Floats, Int32s, Ints
from dprec.components import Options, option
from dprec.randomness import generator

_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Arrivals(Options):
    """Users who join at a rate and stay for a time, and items that appear; by default as in MovieLens 100K.

    There, 68 % of the users rate on a single day, the others stay for 72 days on average, and a fifth of the
    items have no rating in the first 60 of 215 days.
    """

    days: float = option("Days that the ratings span.", 215.0, gt=0, le=36_500)
    returning: float = option("Share of the users who stay; the others rate within a day.", 0.32, ge=0, le=1)
    stay: float = option("Mean of the days for which these stay, exponential.", 72.0, gt=0, le=36_500)
    new_items: float = option("Share of the items that are not there from the first day on.", 0.2, ge=0, lt=1)
    rated_again: float = option(
        "Probability that a user rates an item once more, of the same opinion and with other noise.",
        0.0,
        ge=0,
        le=1,
    )

    def drawn(self, users: int, items: int, seed: int) -> Presence:
        """Return who and what is there when."""
        random, span = generator(seed, "synthetic arrivals"), self.days * _DAY
        # The arrivals of a Poisson process, given how many there are, are independent and uniform.
        joined = span * random.random(users)
        stays = random.random(users) < self.returning
        left = joined + _DAY * np.where(stays, random.exponential(self.stay, users), 1.0)
        new = int(self.new_items * items)
        appeared = np.zeros(items)
        appeared[items - new :] = np.sort(span * random.random(new))
        return Presence(joined, np.minimum(left, span), appeared)


@dataclass(frozen=True, eq=False)
class Presence:
    """When users and items are there, in seconds since the first day."""

    joined: Floats
    left: Floats
    """Shape (users,)."""
    appeared: Floats
    """Ascending; shape (items,)."""

    @property
    def available(self) -> Ints:
        """How many items, the first of all, appear before a user leaves; shape (users,)."""
        return np.searchsorted(self.appeared, self.left)

    def until_left(self, users: Int32s, since: Floats, random: np.random.Generator) -> Floats:
        """Return a time for each rating, between another one and that at which its user leaves."""
        times: Floats = np.floor(since + random.random(since.size) * (self.left[users] - since))
        return times
