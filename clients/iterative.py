"""The device's part of iterative factorisation: solve for its user's factors, report on the gradient.

What a device guarantees against any server: in a run it sends at most one report per round, in no more
rounds than its budget was divided by, each within one round's share. This holds because

- budget, number of rounds and kind of report are installed on the device; no request carries them;
- a node answers a round once (see `clients.memory`), and refusals depend on the requests alone;
- for any finite item factors every user has a report, and its length does not depend on the ratings.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from flwr.app import Context

from clients.memory import Memory
from clients.population import Partition, draws_of_rounds
from clients.replies import AddUp
from dprec.arrays import Floats, offsets
from dprec.completion import Profiles, inner_products, solve_user_factors
from dprec.exchange import FinalFactors, GradientRequest, IterativeSetup, refusing_malformed
from dprec.gradients import RoundDraws
from dprec.personalization import OrdinalProcess
from dprec.wire import Factors, decode_broadcast


def gradient_reports(
    partition: Partition, request: GradientRequest, context: Context
) -> tuple[list[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when the broadcast is malformed, the budget was divided by fewer rounds, the round has been
    answered for other factors, or a later one has been answered.
    """
    population, setup = partition.population, partition.population.installed(IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    broadcast = _decoded(request.factors, setup, memory, population.n_items)
    memory.answer_once(request.round_index, broadcast.tobytes())
    _hold(broadcast, setup, memory)
    factors = broadcast.astype(np.float64)
    profiles = profiles_of(partition)
    user_factors = solve_user_factors(profiles, factors, setup.ridge)
    epsilon = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round
    devices = draws_of_rounds(partition, "gradient report").asked(broadcast.tobytes())
    draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
    reports = setup.gradient.encode(profiles, user_factors, factors, epsilon, draws)
    return reports, partial(setup.gradient.decode, shape=(population.n_items, setup.rank))


def receive_factors(partition: Partition, final: FinalFactors, context: Context) -> Factors:
    """Return the item factors of a message that asks for no report; raises Refusal for malformed ones."""
    population, setup = partition.population, partition.population.installed(IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    factors = _decoded(final.factors, setup, memory, population.n_items)
    _hold(factors, setup, memory)
    base = np.zeros(population.n_items)
    population.show(ReceivedFactors(partition, factors.astype(np.float64), setup.ridge, base))
    return factors


@dataclass(frozen=True, eq=False)
class ReceivedFactors:
    """Item factors, from which each device predicts with factors that it fits to its user; see `Received`."""

    partition: Partition
    item_factors: Floats
    """Shape (items, rank)."""
    ridge: float
    """As for `solve_user_factors`."""
    base: Floats
    """What is predicted without factors; shape (items,)."""

    def predictions(self, process: OrdinalProcess) -> Floats:
        """Predict every item, shape (users, items)."""
        profiles = profiles_of(self.partition)
        residuals = replace(profiles, values=profiles.values - self.base[profiles.items])
        own = solve_user_factors(residuals, self.item_factors, self.ridge)
        users, items = np.indices((len(own), len(self.item_factors)))
        predicted = inner_products(own, self.item_factors, users.ravel(), items.ravel())
        return predicted.reshape(users.shape) + self.base


def profiles_of(partition: Partition) -> Profiles:
    """Return the true ratings of a partition."""
    return Profiles(
        offsets(partition.counts), partition.items, partition.values, partition.population.n_items
    )


def _decoded(broadcast: bytes, setup: IterativeSetup, memory: Memory, n_items: int) -> Factors:
    """Decode a broadcast, which may contain only what has changed since the last one."""
    shape = (n_items, setup.rank)
    with refusing_malformed():
        return decode_broadcast(broadcast, setup.broadcast, shape, memory.held(setup.broadcast, shape))


def _hold(factors: Factors, setup: IterativeSetup, memory: Memory) -> None:
    """Keep a broadcast if later ones may contain only what has changed."""
    if setup.broadcast.delta:
        memory.hold(factors)
