"""Games for the tests of attacks: what was seen of ratings, real reports, and runs that are repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dprec.accounting import NoisySum, PrivacyAccountant, PrivacyBudget, PrivacyUnit
from dprec.arrays import Bools, Floats, Ints, offsets
from dprec.attacks import MaliciousUsers, Shown, Transcript
from dprec.catalogue import UsersTable
from dprec.mechanisms import Mechanism
from dprec.observations import Observations, RowReports
from dprec.randomness import DeviceDraws, generator
from dprec.ratings import Ratings, RatingScale
from dprec.reports import Wanted
from tests import make
from tests.make import STARS


@dataclass(frozen=True, eq=False)
class Played:
    """What was seen of given ratings, in a game that cannot be played again."""

    truth: Ratings
    transcript: Transcript
    users: UsersTable | None = None
    epsilon: float = np.inf
    """Of a cell."""
    epsilon_per_user: float = np.inf
    delta: float = 1e-6
    seed: int = 1
    hides_item_sets: bool = True
    given: PrivacyAccountant | None = None
    """In place of the one of these two epsilons."""
    accountant: PrivacyAccountant = field(init=False)

    def __post_init__(self) -> None:
        everybody = np.ones(self.truth.n_users, dtype=np.bool_)
        accountant = self.given or PrivacyAccountant(everybody)
        if self.given is None:
            accountant.step(1, everybody, self.epsilon, self.epsilon_per_user)
        object.__setattr__(self, "accountant", accountant)

    @property
    def shown(self) -> Shown:
        """Refuse: nobody is shown anything."""
        raise NotImplementedError

    def with_malicious_users(self, malicious: MaliciousUsers) -> Shown:
        """Refuse: nobody lies."""
        raise NotImplementedError

    def again(self, present: Bools, number: int) -> Transcript:
        """Refuse: no attack here asks for another run."""
        raise NotImplementedError

    def saying(self, transcript: Transcript) -> Played:
        """Return the game with another transcript."""
        return replace(self, transcript=transcript)


@dataclass
class Repeated:
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
        return transcript_of(self.truth, **self.said(present, number))

    @property
    def transcript(self) -> Transcript:
        """The run of everybody."""
        return Repeated(self.truth, self.said).again(np.ones(self.truth.n_users, dtype=np.bool_), 0)

    @property
    def accountant(self) -> PrivacyAccountant:
        """Of one sum with noise."""
        everybody = np.ones(self.truth.n_users, dtype=np.bool_)
        accountant = PrivacyAccountant(rated=everybody)
        accountant.step(1, everybody, np.inf, np.inf, NoisySum(self.distance))
        return accountant


def transcript_of(truth: Ratings, **said: Any) -> Transcript:
    """Return the transcript of a run about ratings."""
    return Transcript(n_users=truth.n_users, n_items=truth.n_items, scale=truth.scale, **said)


def seen_by_all(truth: Ratings, *reports: Observations, trusted: bool = False) -> Transcript:
    """Return the transcript of reports on ratings."""
    return transcript_of(truth, reports=reports, trusted=trusted)


def hidden_rows(truth: Ratings, epsilon: float, seed: int) -> tuple[Observations, Floats, Ints]:
    """Return whether each cell is said to be rated, by randomised response.

    Also the probabilities of no and yes of every level, "not rated" first, and the answers.
    """
    lie = 1 / (1 + np.exp(epsilon))
    rated = truth.to_sets().toarray() > 0
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
    seen = make.observations(users, items, 0.0, rated.shape, truth.scale, evidence=evidence)
    return seen, given, answers.astype(np.int64)


def of_kinds(users: int, items: int, share: float, seed: int) -> Ratings:
    """Return ratings of a few kinds of users, who rate other items; popular items are the first."""
    random = np.random.default_rng(seed)
    popularity = share * np.exp(-np.arange(items) / items)
    kinds = random.random((4, items)) < 0.5
    cells = random.random((users, items)) < popularity * np.where(
        kinds[random.integers(4, size=users)], 1.8, 0.2
    )
    return make.rated(cells, random.integers(1, 6, size=int(cells.sum())))


def people(users: int = 200, items: int = 60, seed: int = 1, scale: RatingScale = STARS) -> Ratings:
    """Return ratings of some items more than of others, with item and user biases."""
    random = generator(seed, "people who are attacked")
    cells = random.random((users, items)) < np.linspace(0.05, 0.6, items)
    users_of, items_of = np.nonzero(cells)
    latent = random.normal(0, 0.7, items)[items_of] + random.normal(0, 0.7, users)[users_of]
    latent += random.normal(0, 0.7, latent.size)
    middle = (scale.levels + 1) / 2
    levels = np.clip(np.rint(middle + 0.4 + latent * scale.levels / 4), 1, scale.levels).astype(np.int64)
    return make.rated(cells, scale.values[levels - 1], scale)


def nothing_said(truth: Ratings) -> Played:
    """Return the game of a run in which nothing is sent."""
    accountant = PrivacyAccountant(rated=truth.counts > 0)
    accountant.step(1, truth.counts > 0, 0.0, 0.0)
    return Played(truth, transcript_of(truth), given=accountant, hides_item_sets=False)


def reported(
    truth: Ratings, mechanism: Mechanism, epsilon: float | None, per: PrivacyUnit = "rating", seed: int = 1
) -> Played:
    """Return the game of real reports of all users."""
    budget = None if epsilon is None else PrivacyBudget(epsilon=epsilon, per=per)
    family = mechanism.family(budget, truth.scale, truth.n_items)
    reader, users = family.reader(truth.n_users, Wanted(symbols=True)), np.arange(truth.n_users)
    values = np.zeros(truth.count) if truth.scale.implicit else truth.values
    draws = partial(DeviceDraws.of, bytes([seed] * 16), 0, offsets(truth.counts), truth.items, values)
    accepted = reader.take(users, family.encode(make.reported_profiles(truth), draws))
    told: Ints | None = reader.told
    accountant = family.accountant(truth.counts, accepted, told)
    return Played(truth, seen_by_all(truth, reader.observations()), given=accountant, hides_item_sets=False)
