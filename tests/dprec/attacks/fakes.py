"""A game without a protocol, for attacks on what is released."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprec.accounting import NoisySum, PrivacyAccountant
from dprec.arrays import Bools
from dprec.attacks import Transcript
from dprec.ratings import Ratings, RatingScale


def ratings_of(users: int, items: int, share: float, seed: int) -> Ratings:
    """Return ratings of a few kinds of users, who rate other items; popular items are the first."""
    random = np.random.default_rng(seed)
    popularity = share * np.exp(-np.arange(items) / items)
    kinds = random.random((4, items)) < 0.5
    rated = random.random((users, items)) < popularity * np.where(
        kinds[random.integers(4, size=users)], 1.8, 0.2
    )
    rows, columns = np.nonzero(rated)
    values = random.integers(1, 6, size=rows.size).astype(np.float64)
    ids: Any = {"user_ids": np.arange(users), "item_ids": np.arange(items)}
    return Ratings.from_triples(rows, columns, values, RatingScale.evenly(1, 5, 1), **ids)


@dataclass
class FakeGame:
    """A game whose runs a function makes, from who takes part and the number of the run; 0 is the first."""

    truth: Ratings
    said: Callable[[Bools, int], dict[str, Any]]
    distance: float = 1.0
    """How far one profile moves what is released, in deviations of its noise."""
    hides_item_sets: bool = True
    users: None = None
    delta: float = 1e-6
    seed: int = 3
    runs: list[int] = field(default_factory=list)

    def again(self, present: Bools, number: int) -> Transcript:
        """Return a run of those present."""
        self.runs.append(number)
        sizes: Any = {"n_users": self.truth.n_users, "n_items": self.truth.n_items, "scale": self.truth.scale}
        return Transcript(**sizes, **self.said(present, number))

    @property
    def transcript(self) -> Transcript:
        """The run of everybody."""
        own = FakeGame(self.truth, self.said)
        return own.again(np.ones(self.truth.n_users, dtype=np.bool_), 0)

    @property
    def accountant(self) -> PrivacyAccountant:
        """Of one sum with noise."""
        everybody = np.ones(self.truth.n_users, dtype=np.bool_)
        accountant = PrivacyAccountant(rated=everybody)
        accountant.step(1, everybody, np.inf, np.inf, NoisySum(self.distance))
        return accountant
