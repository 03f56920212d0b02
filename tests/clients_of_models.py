"""Federated models of one client each, which a configuration can name."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.components import option
from dprec.federated import DrawsNegatives, FederatedModel, Parameters, Profile, State, Update, others
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class OwnFactors(FederatedModel):
    """Items' factors are learned together; a user's are kept on the device, where they begin at random."""

    rank: int = option("Number of factors.", 3, ge=1)
    rate: float = option("Length of a step.", 0.1, gt=0)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        mean = (scale.low + scale.high) / 2
        return (
            np.column_stack([np.full(n_items, mean), 0.3 * random.standard_normal((n_items, self.rank))]),
        )

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        return (np.append(1.0, 0.3 * random.standard_normal(self.rank)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        (items,), (own,) = parameters, state
        # A device learns from half of its ratings in a round.
        part = random.permutation(profile.items.size)[: -(-profile.items.size // 2)]
        places = profile.items[part]
        errors = profile.values[part] - items[places] @ own
        change = np.zeros_like(items)
        change[places] = self.rate * errors[:, None] * own
        moved = self.rate * errors @ items[places] / max(1, part.size)
        loss = float((errors**2).mean()) if part.size else float("nan")
        return Update((change,), (own + np.append(0.0, moved[1:]),), loss)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        scores: Floats = parameters[0] @ state[0]
        return scores


@dataclass(frozen=True, kw_only=True)
class SometimesNaN(OwnFactors):
    """Updates of users who hold many ratings are not finite."""

    most: int = option("Ratings that are not too many.", 5)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        made = super().update(parameters, profile, random, state)
        if profile.items.size <= self.most:
            return made
        return made._replace(change=(np.full_like(made.change[0], np.nan),))


@dataclass(frozen=True, kw_only=True)
class Runaway(OwnFactors):
    """Every step takes the parameters much further from 0, and in two rounds out of single precision."""

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        return (parameters[0] * 1e25,)


@dataclass(frozen=True, kw_only=True)
class OfLength(FederatedModel):
    """Every update is as long as its user has ratings, whatever is learned."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return (np.full(n_items, scale.low),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        change = np.zeros(profile.n_items)
        change[0] = profile.items.size
        return Update((change,))

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        return parameters

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        return parameters[0]


@dataclass(frozen=True, kw_only=True)
class RememberSpared(DrawsNegatives):
    """Devices learn nothing but what they were told to spare, and rank it first."""

    predicted: ClassVar[Literal["ratings", "lists"]] = "lists"

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return (np.zeros(1),)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        return (np.zeros(n_items),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        assert not np.isin(others(random, profile, 1_000), [*profile.items, *profile.spared]).any()
        known = state[0].copy()
        known[profile.spared] = 1.0
        return Update((np.zeros(1),), (known,))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        return state[0]
