"""What a user costs in a round of federated matrix factorisation, in both forms of a model, and elsewhere.

On the ratings of MovieLens 100K. The per-client form computes one user at a time, as authors write it; the
whole-partition form computes all users of a node at once. Both are whole rounds in one process: questions,
updates, clipping, rounding, adding up and the ledgers, but no evaluation. pfl-research trains the same model
by PyTorch. Stock Flower has a node for each user too, which sends as many numbers through Ray and computes
nothing. Times are processor times, without the first round.
"""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from measuring import DATA, Figures, Line, Peer, beside, job, main

from dprec.arrays import Floats
from dprec.completion import Profiles
from dprec.datasets import MovieLens100K
from dprec.federated import FederatedModel, Parameters, Profile, State, Update
from dprec.predictions import Predict
from dprec.protocols.base import Public
from dprec.protocols.federated import FederatedProtocol
from dprec.randomness import RunKeys
from dprec.ratings import RatingScale
from simulation.configuration.models import SimulationOptions
from simulation.engine.session import open_session
from strategies.training import BroadcastRounds

RANK, ROUNDS, TOGETHER = 16, 4, 1_000
ITEMS, EACH = 1_682, "µs a user"


@dataclass(frozen=True, kw_only=True)
class PerClient(FederatedModel):
    """Items' biases and factors; a user's factors begin anew in every round, as in `peers.py`."""

    rank: int = RANK
    rate: float = 0.1
    epochs: int = 2

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return small factors."""
        return (0.1 * random.standard_normal((n_items, self.rank + 1)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return what two full-batch steps of SGD change."""
        table, own = (before := parameters[0][profile.items]), np.ones(self.rank + 1)
        for _ in range(self.epochs):
            errors = table @ own - profile.values
            table = table - (2 * self.rate / errors.size) * errors[:, None] * own
        change = np.zeros_like(parameters[0])
        change[profile.items] = table - before
        return Update((change,))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return sums of factors."""
        return parameters[0].sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class WholePartition(PerClient):
    """The same of all users of a node at once."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        """Return the same as `update`, of all."""
        before = parameters[0][profiles.items]
        table, rates = before, 2 * self.rate / np.diff(profiles.indptr)[profiles.users]
        for _ in range(self.epochs):
            table = table - (rates * (table.sum(axis=1) - profiles.values))[:, None]
        changes = np.zeros((profiles.n_users, *parameters[0].shape))
        changes[profiles.users, profiles.items] = table - before
        return (changes,)

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        """Return the same as `predict`."""
        return lambda users, items: parameters[0].sum(axis=1)[items]


FORMS = {each.__name__: each for each in (PerClient, WholePartition)}


def rounds(form: str, together: int) -> Figures:
    """Return the median of what a user costs in a round, with so many users on a node."""
    train, _ = MovieLens100K(path=str(DATA / "ml-100k")).load_fold("u1")
    protocol = FederatedProtocol(model=FORMS[form](), rounds=ROUNDS).suited(Public.of(train))
    options, keys = SimulationOptions(backend="local"), RunKeys.derive(1)
    with open_session(options, -(-train.n_users // together)) as session:
        given: Any = {"keys": keys.installed, "faults": options.faults, "protocol": protocol.installed}
        strategy = BroadcastRounds(
            protocol=protocol,
            public=Public.of(train),
            seed=1,
            public_seed=keys.installed.public_seed,
            group=session.install(train, users_per_node=together, **given),
            roster=session.roster(train.n_users, together),
            rated=train.counts > 0,
        )
        taken = []
        for _ in range(ROUNDS):
            started = time.process_time()
            strategy.run_round(session.grid)
            taken.append(time.process_time() - started)
    return {EACH: 1e6 * statistics.median(taken[1:]) / train.n_users}


SETTINGS = f"{ITEMS:,} items, rank {RANK}, {ITEMS * (RANK + 1):,} numbers"
PFL = beside("pfl", "pfl_federated", RANK, ROUNDS)
STOCK = job(__file__.replace("federated", "scale"), "stock_rounds", 300, ITEMS * (RANK + 1))
FLOWER = Peer("flwr", STOCK, here=True)
LINES = (
    Line("one user at a time", job(__file__, "rounds", "PerClient", TOGETHER), (), PFL, SETTINGS, (EACH,)),
    Line(
        "whole partitions", job(__file__, "rounds", "WholePartition", TOGETHER), (), None, SETTINGS, (EACH,)
    ),
    Line("a node for each user", job(__file__, "rounds", "PerClient", 1), (), FLOWER, SETTINGS, (EACH,)),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"rounds": rounds})
