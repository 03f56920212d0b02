"""Games for the tests of attacks: ratings with structure, and real reports about them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dprec.accounting import PrivacyAccountant, PrivacyBudget, PrivacyUnit
from dprec.arrays import Bools, Ints, offsets
from dprec.attacks import Transcript
from dprec.catalogue import UsersTable
from dprec.mechanisms import Mechanism
from dprec.randomness import DeviceDraws, generator
from dprec.ratings import Ratings, RatingScale
from dprec.reports import Profiles, Wanted

STARS = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, eq=False)
class FakeGame:
    """A game on what is given, which cannot be played again."""

    transcript: Transcript
    truth: Ratings
    accountant: PrivacyAccountant
    delta: float = 1e-6
    seed: int = 1
    users: UsersTable | None = None

    def again(self, present: Bools, number: int) -> Transcript:
        """Refuse."""
        raise AssertionError("no attack here asks for another run")

    def saying(self, transcript: Transcript) -> "FakeGame":
        """Return the game with another transcript."""
        return replace(self, transcript=transcript)


def people(users: int = 200, items: int = 60, seed: int = 1, scale: RatingScale = STARS) -> Ratings:
    """Return ratings of some items more than of others, with item and user biases."""
    random = generator(seed, "people who are attacked")
    popularity = np.linspace(0.05, 0.6, items)
    users_of, items_of = np.nonzero(random.random((users, items)) < popularity)
    latent = random.normal(0, 0.7, items)[items_of] + random.normal(0, 0.7, users)[users_of]
    latent += random.normal(0, 0.7, latent.size)
    middle = (scale.levels + 1) / 2
    levels = np.clip(np.rint(middle + 0.4 + latent * scale.levels / 4), 1, scale.levels).astype(np.int64)
    columns = users_of, items_of, scale.values[levels - 1]
    return Ratings.from_triples(*columns, scale, user_ids=np.arange(users), item_ids=np.arange(items))


def nothing_said(truth: Ratings) -> FakeGame:
    """Return the game of a run in which nothing is sent."""
    transcript = Transcript(n_users=truth.n_users, n_items=truth.n_items, scale=truth.scale)
    accountant = PrivacyAccountant(rated=truth.counts > 0)
    accountant.step(1, truth.counts > 0, 0.0, 0.0)
    return FakeGame(transcript, truth, accountant)


def reported(
    truth: Ratings, mechanism: Mechanism, epsilon: float | None, per: PrivacyUnit = "rating", seed: int = 1
) -> FakeGame:
    """Return the game of real reports of all users."""
    budget = None if epsilon is None else PrivacyBudget(epsilon=epsilon, per=per)
    family = mechanism.family(budget, truth.scale, truth.n_items)
    reader, users = family.reader(truth.n_users, Wanted(symbols=True)), np.arange(truth.n_users)
    profiles = Profiles(truth.counts, truth.items, truth.levels)
    values = np.zeros(truth.count) if truth.scale.implicit else truth.values
    draws = partial(DeviceDraws.of, bytes([seed] * 16), 0, offsets(truth.counts), truth.items, values)
    accepted = reader.take(users, family.encode(profiles, draws))
    told: Ints | None = reader.told
    accountant = family.accountant(truth.counts, accepted, told)
    start = nothing_said(truth)
    transcript = replace(start.transcript, reports=(reader.observations(),))
    return replace(start, transcript=transcript, accountant=accountant)
