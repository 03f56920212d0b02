"""What a user costs in a round of federated matrix factorisation, in both forms of a model, and elsewhere.

    python benchmarks/federated_clients.py [--users 10000] [--pfl PYTHON] [--flower 1000]

The per-client form computes one user at a time, as authors write it; the whole-partition form computes all
users of a node at once. Both are whole rounds in this process: questions, updates, clipping, rounding, adding
up and the ledgers, but no evaluation. ``--pfl``: an interpreter that has pfl 0.6 and PyTorch, for
`pfl_federated.py`. ``--flower``: nodes of stock Flower on Ray, one for each user, that compute nothing and
send as many numbers. Prints processor microseconds per user and round, without the first round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from process_memory import measured
from scale import stock_rounds

from dprec.arrays import Floats
from dprec.completion import Profiles
from dprec.datasets import Synthetic
from dprec.federated import FederatedModel, Parameters, Profile, State, Update
from dprec.predictions import Predict
from dprec.protocols.base import Public
from dprec.protocols.federated import FederatedProtocol
from dprec.randomness import RunKeys
from dprec.ratings import Ratings, RatingScale
from simulation.configuration.models import SimulationOptions
from simulation.engine.session import open_session
from strategies.training import BroadcastRounds


@dataclass(frozen=True, kw_only=True)
class PerClient(FederatedModel):
    """Items' biases and factors; a user's factors begin anew in every round, as in `pfl_federated.py`."""

    rank: int = 16
    rate: float = 0.1
    epochs: int = 2

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return small factors."""
        return (0.1 * random.standard_normal((n_items, self.rank + 1)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return what two full-batch steps of SGD change."""
        before = parameters[0][profile.items]
        table, own = before, np.ones(self.rank + 1)
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
        table, counts = before, np.diff(profiles.indptr)[profiles.users]
        for _ in range(self.epochs):
            errors = table.sum(axis=1) - profiles.values
            table = table - (2 * self.rate / counts * errors)[:, None]
        changes = np.zeros((profiles.n_users, *parameters[0].shape))
        changes[profiles.users, profiles.items] = table - before
        return (changes,)

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        """Return the same as `predict`."""
        return lambda users, items: parameters[0].sum(axis=1)[items]


def microseconds(model: FederatedModel, train: Ratings, rounds: int, users_per_node: int) -> float:
    """Return the processor time of a user in a round, in this process."""
    protocol = FederatedProtocol(model=model, rounds=rounds).suited(Public.of(train))
    options, keys = SimulationOptions(backend="local"), RunKeys.derive(1)
    with open_session(options, -(-train.n_users // users_per_node)) as session:
        group = session.install(
            train,
            users_per_node=users_per_node,
            keys=keys.installed,
            faults=options.faults,
            protocol=protocol.installed,
        )
        strategy = BroadcastRounds(
            protocol=protocol,
            public=Public.of(train),
            seed=1,
            public_seed=keys.installed.public_seed,
            group=group,
            roster=session.roster(train.n_users, users_per_node),
            rated=train.counts > 0,
        )
        taken = []
        for _ in range(rounds):
            started = time.process_time()
            strategy.run_round(session.grid)
            taken.append(time.process_time() - started)
    return 1e6 * statistics.median(taken[1:]) / train.n_users


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--users", type=int, default=10_000)
    arguments.add_argument("--items", type=int, default=1_682)
    arguments.add_argument("--ratings", type=int, default=100, help="of each user")
    arguments.add_argument("--rank", type=int, default=16)
    arguments.add_argument("--rounds", type=int, default=4)
    arguments.add_argument("--pfl", help="an interpreter that has pfl 0.6 and PyTorch")
    arguments.add_argument("--flower", type=int, default=0, help="nodes of stock Flower; 0 for none")
    chosen = arguments.parse_args()
    made = Synthetic(users=chosen.users, items=chosen.items, ratings=chosen.users * chosen.ratings)
    train = made.load()
    print(f"{'':24}{'us/user/round':>14}")
    for model in (PerClient(rank=chosen.rank), WholePartition(rank=chosen.rank)):
        each = microseconds(model, train, chosen.rounds, 1_000)
        print(f"{type(model).__name__:24}{each:>14.0f}", flush=True)
    if chosen.pfl:
        script = Path(__file__).with_name("pfl_federated.py")
        sizes = [f"--{name}={getattr(chosen, name)}" for name in ("items", "rank", "ratings")]
        told = subprocess.run(
            [chosen.pfl, str(script), "--users=1000", *sizes], check=True, capture_output=True, text=True
        ).stdout
        print(f"{'pfl-research 0.6':24}{float(told.splitlines()[-1]):>14.0f}", flush=True)
    if chosen.flower:
        floats = chosen.items * (chosen.rank + 1)
        stock = argparse.Namespace(workers=2, stock_repeats=2, stock_floats=floats)
        [(rounds, _)] = measured(stock_rounds, chosen.flower, stock)
        print(f"{'stock Flower':24}{1e6 * statistics.median(rounds.processor) / chosen.flower:>14.0f}")


if __name__ == "__main__":
    main()
