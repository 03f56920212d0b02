"""A game about given ratings, for tests of attacks that look at one transcript."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools, Floats, Ints
from dprec.attacks import Transcript
from dprec.catalogue import UsersTable
from dprec.observations import Observations, RowReports
from dprec.ratings import Ratings


@dataclass(frozen=True)
class Played:
    """What was seen of given ratings."""

    truth: Ratings
    transcript: Transcript
    users: UsersTable | None = None
    epsilon: float = np.inf
    """Of a cell."""
    epsilon_per_user: float = np.inf
    delta: float = 1e-6
    seed: int = 1
    hides_item_sets: bool = True
    accountant: PrivacyAccountant = field(init=False)

    def __post_init__(self) -> None:
        everybody = np.ones(self.truth.n_users, dtype=np.bool_)
        accountant = PrivacyAccountant(everybody)
        accountant.step(1, everybody, self.epsilon, self.epsilon_per_user)
        object.__setattr__(self, "accountant", accountant)

    def again(self, present: Bools, number: int) -> Transcript:
        """Play no second time."""
        raise NotImplementedError


def seen_by_all(truth: Ratings, *reports: Observations, trusted: bool = False) -> Transcript:
    """Return the transcript of reports on ratings."""
    shape = truth.n_users, truth.n_items
    return Transcript(n_users=shape[0], n_items=shape[1], scale=truth.scale, reports=reports, trusted=trusted)


def hidden_rows(truth: Ratings, epsilon: float, seed: int) -> tuple[Observations, Floats, Ints]:
    """Return whether each cell is said to be rated, by randomised response.

    Also the probabilities of no and yes of every level, "not rated" first, and the answers.
    """
    lie = 1 / (1 + np.exp(epsilon))
    rated = np.zeros((truth.n_users, truth.n_items), dtype=np.bool_)
    rated[truth.users, truth.items] = True
    answers = rated ^ (np.random.default_rng(seed).random(rated.shape) < lie)
    given = np.array([[1 - lie, lie], *[[lie, 1 - lie]] * truth.scale.levels])
    users, items = np.nonzero(answers)
    evidence = RowReports(
        (given[1:],),
        np.ones(users.size, dtype=np.int64),
        np.zeros(users.size, dtype=np.int64),
        unrated=given[0],
        unsent=np.array([True, False]),
        reported=np.ones(truth.n_users, dtype=np.bool_),
    )
    values = np.zeros(users.size)
    seen = Observations.of(users, items, values, rated.shape, truth.scale, evidence=evidence)
    return seen, given, answers.astype(np.int64)
